"""Building a dataset: every second accounted for, incremental, and indifferent to bad files and kills."""

import csv
import dataclasses
import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.dataset.building import SETTINGS, Says, built, recordings, silent
from tests.dataset.recordings import generated, recording
from utils.core.errors import DataError, StorageError
from utils.core.paths import Project
from utils.dataset.build import build
from utils.dataset.clip import Recording, ScanResult
from utils.dataset.metadata import HEADER
from utils.dataset.statistics import account
from utils.dataset.store import Store
from utils.runs.job import StopRequested

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def listed(place: Project, name: str) -> list[dict[str, str]]:
    """Read a list as plain coqui-tts does."""
    with (place.dataset / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="|"))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_recordings_become_a_standard_dataset(place: Project, tmp_path: Path) -> None:
    report = built(recordings(tmp_path / "in", 3, seconds=20), place)
    rows = listed(place, "metadata_train.csv") + listed(place, "metadata_eval.csv")
    assert len(rows) == len(report.contents.kept) > 3
    assert (place.dataset / "metadata_train.csv").read_text(encoding="utf-8").startswith(HEADER + "\n")
    assert (place.dataset / "lang.txt").read_text(encoding="utf-8") == "am\n"
    assert listed(place, "metadata_eval.csv")
    for row in rows:
        info = soundfile.info(place.dataset / row["audio_file"])
        assert (info.samplerate, info.channels, info.subtype) == (22050, 1, "PCM_16")
        assert 1.0 <= info.duration <= 11.6
        assert row["text"]
        assert row["speaker_name"].startswith("speaker")


def test_all_audio_is_accounted_for(place: Project, tmp_path: Path) -> None:
    found = recordings(tmp_path / "in", 2)
    ledger = account(built(found, place).contents)
    assert ledger.seconds == pytest.approx(16, abs=0.1)
    assert ledger.kept + sum(ledger.aside.values()) + ledger.between == pytest.approx(16, abs=0.1)
    assert ledger.kept > 8


def test_clips_are_equally_loud_and_end_in_silence(place: Project, tmp_path: Path) -> None:
    for clip in built(recordings(tmp_path / "in", 1), place).contents.kept:
        samples, rate = soundfile.read(place.dataset / clip.audio)
        assert abs(samples[0]) < 1e-3 > abs(samples[-1])
        assert np.abs(samples).max() <= 0.9
        assert abs(samples.mean()) < 1e-3
        assert samples.size == pytest.approx(clip.span.seconds * rate, abs=2)


def test_adding_a_recording_twice_adds_nothing(place: Project, tmp_path: Path) -> None:
    found = recordings(tmp_path / "in", 2)
    built(found, place)
    before = files(place.dataset)
    report = built(found, place)
    assert (report.added, report.known) == (0, 2)
    assert files(place.dataset) == before


def test_a_copy_under_another_name_adds_nothing(place: Project, tmp_path: Path) -> None:
    found = recordings(tmp_path / "in", 2)
    clips = built(found, place).contents.clips
    copy = dataclasses.replace(
        found.recordings[0], path=Path(shutil.copy(found.recordings[0].path, tmp_path / "c.wav"))
    )
    for _ in range(2):
        report = built(ScanResult((copy, copy)), place)
        assert (report.added, report.known) == (0, 2)
        assert report.contents.clips == clips


def test_a_dataset_grows_and_what_it_had_stays(place: Project, tmp_path: Path) -> None:
    first = built(recordings(tmp_path / "in", 2), place).contents.clips
    second = built(recordings(tmp_path / "in", 4), place)
    assert second.added == 2
    assert {name: second.contents.clips[name] for name in first} == first


def test_a_second_run_is_quick(place: Project, tmp_path: Path) -> None:
    found = recordings(tmp_path / "in", 4, seconds=60)
    took = []
    for _ in range(2):
        begin = time.perf_counter()
        built(found, place)
        took.append(time.perf_counter() - begin)
    assert took[1] < 0.02 * took[0], took


def test_a_bad_file_that_was_removed_is_forgotten(place: Project, tmp_path: Path) -> None:
    good = recordings(tmp_path / "in", 1).recordings
    (tmp_path / "bad.wav").write_bytes(b"")
    assert built(ScanResult((Recording(tmp_path / "bad.wav", "s"), *good)), place).contents.failed
    (tmp_path / "bad.wav").unlink()
    assert built(ScanResult(good), place).contents.failed == []


@pytest.mark.slow
def test_worker_processes_make_the_same_dataset(place: Project, tmp_path: Path) -> None:
    found = recordings(tmp_path / "in", 4)
    other = Project(tmp_path / "other")
    built(found, place)
    built(found, other, SETTINGS.model_copy(update={"workers": 2}))
    assert Store(place.dataset).read().clips == Store(other.dataset).read().clips


def test_only_recordings_without_text_are_transcribed(place: Project, tmp_path: Path) -> None:
    with_text = recordings(tmp_path / "in", 1)
    silent_one = dataclasses.replace(recordings(tmp_path / "in", 1, first=5).recordings[0], cues=())
    says = Says()
    found = ScanResult((*with_text.recordings, silent_one))
    contents = build(found, place, SETTINGS, silent, recogniser=says).contents
    mine = [clip for clip in contents.clips.values() if clip.source == str(silent_one.path)]
    assert says.heard == len(mine) > 0
    assert {clip.text for clip in mine} == {says.text}
    assert all(clip.scores.confidence == pytest.approx(0.9) for clip in mine)
    assert all(clip.scores.confidence is None for clip in contents.clips.values() if clip not in mine)


@pytest.mark.parametrize(
    ("opinion", "reason"), [("ሰላም ለሁላችሁም ዛሬ ጥሩ ቀን!", ""), ("ዝናቡ ሌሊቱን ሙሉ አደረ", "recognisers disagree")]
)
def test_a_second_recogniser_can_exclude_a_clip(place: Project, tmp_path: Path, opinion: str, reason: str) -> None:
    bare = dataclasses.replace(recordings(tmp_path / "in", 1).recordings[0], cues=())
    clips = build(ScanResult((bare,)), place, SETTINGS, silent, recogniser=Says(), second=Says(opinion)).contents.clips
    assert {clip.reason for clip in clips.values()} == {reason}
    assert all(clip.scores.second_cer is not None for clip in clips.values())


def test_without_a_recogniser_clips_have_no_text(place: Project, tmp_path: Path) -> None:
    found = recordings(tmp_path / "in", 1)
    contents = built(ScanResult((dataclasses.replace(found.recordings[0], cues=()),)), place).contents
    assert {clip.reason for clip in contents.clips.values()} == {"empty text"}
    assert all((place.dataset / clip.audio).is_file() for clip in contents.clips.values())


def test_a_recording_with_a_known_text_is_one_clip_without_its_silence(place: Project, tmp_path: Path) -> None:
    speech = generated()[6]
    known = recording(8, seed=1, pauses=(2, 2), speech=[speech])
    path = known.save(tmp_path / "one.wav")
    (clip,) = built(ScanResult((Recording(path, "s", "ሰላም ለሁላችሁም ዛሬ ጥሩ ቀን ነው"),)), place).contents.clips.values()
    assert clip.span.start == pytest.approx(2 - SETTINGS.padding_seconds, abs=0.1)
    assert clip.status == "kept"


def test_the_same_audio_in_another_recording_is_a_duplicate(place: Project, tmp_path: Path) -> None:
    (found,) = recordings(tmp_path / "in", 1).recordings
    samples, rate = soundfile.read(found.path)
    soundfile.write(tmp_path / "again.flac", samples, rate, subtype="PCM_16")
    again = dataclasses.replace(found, path=tmp_path / "again.flac")
    contents = built(ScanResult((found, again)), place).contents
    copies = [clip for clip in contents.clips.values() if clip.source.endswith("again.flac")]
    assert copies
    assert {clip.reason for clip in copies} == {"duplicate"}


def test_characters_that_would_break_a_list_are_removed_only_there(place: Project, tmp_path: Path) -> None:
    found = recordings(tmp_path / "in", 2)
    text = '"ሰላም|ለሁላችሁም"\nዛሬ'
    odd = [
        dataclasses.replace(one, cues=tuple(dataclasses.replace(cue, text=text) for cue in one.cues), speaker="a|b")
        for one in found.recordings
    ]
    report = built(ScanResult(tuple(odd)), place)
    rows = listed(place, "metadata_train.csv") + listed(place, "metadata_eval.csv")
    assert len(rows) == len(report.contents.kept) > 0
    assert all(row["text"].startswith("ሰላም ለሁላችሁም ዛሬ") and row["speaker_name"] == "a b" for row in rows)
    assert all(text in clip.text for clip in report.contents.kept)


def test_another_language_is_refused(place: Project, tmp_path: Path) -> None:
    found = recordings(tmp_path / "in", 1)
    built(found, place)
    with pytest.raises(DataError, match="'am', not 'om'"):
        built(found, place, SETTINGS.model_copy(update={"language": "om"}))


def test_progress_is_emitted_with_the_time_left(place: Project, tmp_path: Path) -> None:
    events: list[dict[str, object]] = []
    build(
        recordings(tmp_path / "in", 3), place, SETTINGS, lambda kind, **fields: events.append({"kind": kind} | fields)
    )
    told = [event for event in events if event["kind"] == "progress"]
    assert (told[-1]["step"], told[-1]["total"], told[-1]["percent"]) == (3, 3, 100.0)
    assert told[0]["seconds_left"] is not None


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_stopped_build_continues(place: Project, tmp_path: Path, workers: int) -> None:
    found = recordings(tmp_path / "in", 4)
    settings = SETTINGS.model_copy(update={"workers": workers})

    def stop_after_the_first() -> None:
        if Store(place.dataset).read().recordings:
            raise StopRequested("save")

    with pytest.raises(StopRequested):
        build(found, place, settings, silent, check_stop=stop_after_the_first)
    finished = len(Store(place.dataset).read().recordings)
    assert 0 < finished < 4
    report = built(found, place, settings)
    assert (report.added, report.known) == (4 - finished, finished)


@pytest.mark.slow
def test_a_worker_that_dies_loses_only_its_recording(
    place: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = recordings(tmp_path / "in", 3)
    monkeypatch.setattr("utils.dataset.build.make_clips", die_on_talk1)
    report = built(found, place, SETTINGS.model_copy(update={"workers": 2}))
    assert report.added == 2
    ((path, sentence),) = [(problem.path.name, problem.sentence) for problem in report.bad]
    assert path == "talk1.wav"
    assert "crashed" in sentence


def die_on_talk1(task: object, tell: object) -> object:
    from utils.dataset.build import make_clips

    if task.recording.path.name == "talk1.wav":  # type: ignore[attr-defined]
        os.kill(os.getpid(), signal.SIGKILL)
    return make_clips(task, tell)  # type: ignore[arg-type]


def test_a_full_disk_is_reported_and_finished_recordings_stay(small_disk: Path, tmp_path: Path) -> None:
    place = Project(small_disk)
    found = recordings(tmp_path / "in", 3)
    with pytest.raises(StorageError, match="cannot be written"):
        built(found, place)
    contents = Store(place.dataset).read()
    assert 0 < len(contents.recordings) < 3
    assert all((place.dataset / clip.audio).is_file() for clip in contents.kept)
