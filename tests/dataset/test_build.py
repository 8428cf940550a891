"""Building a dataset: every second accounted for, incremental, and indifferent to bad files."""

import csv
import dataclasses
import os
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import soundfile

from tests.dataset import building as made
from tests.dataset.building import SETTINGS, SaysTheSame, built, recordings
from tests.dataset.recordings import generated, recording
from utils.core.errors import StorageError
from utils.dataset.clip import Recording, ScanResult
from utils.dataset.errors import DatasetError, NothingTranscribedError
from utils.dataset.facts import Bad, Reason, TextsDiffer
from utils.dataset.metadata import HEADER
from utils.dataset.statistics import account
from utils.dataset.store import Store
from utils.media.facts import AudioCutOff, AudioDamaged, AudioFileError
from utils.recognition.facts import RecogniserError
from utils.studio.paths import Project


class Built(NamedTuple):
    scan: ScanResult
    project: Project
    report: made.Built


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A dataset of three recordings that no test changes."""
    folder = tmp_path_factory.mktemp("built")
    scan, project = recordings(folder / "in", 3, seconds=20), Project(folder / "project")
    return Built(scan, project, built(scan, project))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def without_text(folder: Path, number: int = 0) -> Recording:
    return dataclasses.replace(recordings(folder, 1, first=number).recordings[0], cues=())


def test_recordings_become_a_standard_dataset(done: Built) -> None:
    folder, clips = done.project.dataset, done.report.contents.kept
    listed = []
    for side in ("train", "eval"):
        with (folder / f"metadata_{side}.csv").open(newline="", encoding="utf-8") as file:
            assert file.readline() == f"{HEADER}\n"
            listed += [row[0] for row in csv.reader(file, delimiter="|")]  # as plain coqui-tts reads it
    assert sorted(listed) == sorted(clip.audio for clip in clips)
    assert {clip.split for clip in clips} == {"train", "eval"}
    assert (folder / "lang.txt").read_text(encoding="utf-8") == "am\n"
    for clip in clips:
        info = soundfile.info(folder / clip.audio)
        assert (info.samplerate, info.channels, info.subtype) == (22050, 1, "PCM_16")
        assert 1.0 <= info.duration <= 11.6
        samples, rate = soundfile.read(folder / clip.audio)
        assert abs(samples[0]) < 1e-3 > abs(samples[-1])
        assert np.abs(samples).max() <= 0.9
        assert abs(samples.mean()) < 1e-3
        assert samples.size == pytest.approx(clip.span.seconds * rate, abs=2)
    total = account(done.report.contents).total
    assert total.seconds == pytest.approx(60, abs=0.1)
    assert total.kept + sum(part.seconds for part in total.excluded) + total.between == pytest.approx(60, abs=0.1)
    assert total.kept > 30
    assert total in done.report.facts


def test_adding_a_recording_again_or_in_another_language_changes_nothing(done: Built) -> None:
    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in done.project.dataset.rglob("*") if path.is_file()}

    before = files()
    report = built(done.scan, done.project)
    with pytest.raises(DatasetError) as caught:
        built(done.scan, done.project, SETTINGS.model_copy(update={"language": "om"}))
    assert (caught.value.problem, caught.value.detail) == ("language", "am")
    assert (report.prepared.added, report.prepared.known, files()) == (0, 3, before)


def test_a_dataset_grows_only_by_what_is_new(project: Project, tmp_path: Path) -> None:
    scan = recordings(tmp_path / "in", 2)
    clips = built(scan, project).contents.clips
    first = scan.recordings[0]
    copy = dataclasses.replace(first, path=Path(shutil.copy(first.path, tmp_path / "copy.wav")))
    for _ in range(2):
        report = built(ScanResult((copy, copy)), project)
        assert (report.prepared.added, report.prepared.known, report.contents.clips) == (0, 2, clips)
    soundfile.write(tmp_path / "again.flac", *soundfile.read(first.path), subtype="PCM_16")
    same_audio = dataclasses.replace(first, path=tmp_path / "again.flac")
    grown = built(ScanResult((*recordings(tmp_path / "in", 4).recordings, same_audio)), project)
    assert grown.prepared.added == 3
    assert {name: grown.contents.clips[name] for name in clips} == clips
    assert {clip.reason for clip in grown.contents.clips.values() if clip.source.endswith("flac")} == {"duplicate"}


def test_a_bad_file_that_was_removed_is_forgotten(project: Project, tmp_path: Path) -> None:
    good = recordings(tmp_path / "in", 1).recordings
    (tmp_path / "bad.wav").write_bytes(b"")
    assert built(ScanResult((Recording(tmp_path / "bad.wav", "s"), *good)), project).contents.failed
    (tmp_path / "bad.wav").unlink()
    assert built(ScanResult(good), project).contents.failed == []


def test_only_recordings_without_text_are_transcribed(project: Project, tmp_path: Path) -> None:
    bare, recogniser = without_text(tmp_path / "in", 5), SaysTheSame()
    scan = ScanResult((*recordings(tmp_path / "in", 1).recordings, bare))
    clips = list(built(scan, project, SETTINGS, recogniser).contents.clips.values())
    transcribed = [clip for clip in clips if clip.source == str(bare.path)]
    assert recogniser.count == len(transcribed) > 0
    assert {(clip.text, clip.scores.confidence) for clip in transcribed} == {(recogniser.text, 0.9)}
    assert all(clip.scores.confidence is None for clip in clips if clip not in transcribed)


def test_without_its_recogniser_a_build_keeps_the_recordings_that_have_text(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RecogniserError("large-v3", "missing", "offline")

    missing = SaysTheSame()
    monkeypatch.setattr(missing, "transcribe", fail)
    bare = [without_text(tmp_path / "in", number) for number in (5, 6)]
    with pytest.raises(NothingTranscribedError):
        built(ScanResult(tuple(bare)), project, SETTINGS, missing)
    scan = ScanResult((*bare, *recordings(tmp_path / "in", 1).recordings))
    contents = built(scan, project, SETTINGS, missing).contents
    assert contents.kept
    assert {source.path for source in contents.failed} == {str(recording.path) for recording in bare}
    assert contents.failed[0].bad == Bad(bare[0].path, RecogniserError("large-v3", "missing", "offline"))
    contents = built(scan, project, SETTINGS, SaysTheSame()).contents
    assert contents.failed == []


def test_a_given_text_is_compared_with_a_recogniser_but_never_replaced(project: Project, tmp_path: Path) -> None:
    scan = recordings(tmp_path, 1)
    report = built(scan, project, SETTINGS, SaysTheSame("ሌላ ቃል"), SaysTheSame("ሌላ ጽሑፍ"))
    given = " ".join(cue.text for cue in scan.recordings[0].cues)
    kept = report.contents.kept
    assert kept
    assert all(clip.text in given for clip in kept)
    assert {clip.other_text for clip in Store(project.dataset).clips(status="kept")} == {"ሌላ ጽሑፍ"}
    assert TextsDiffer(len(kept), kept[0].text, "ሌላ ጽሑፍ") in report.facts


def test_a_text_that_is_not_used_is_stored_with_its_clips(project: Project, tmp_path: Path) -> None:
    scan = recordings(tmp_path, 1)
    other = tuple(dataclasses.replace(cue, text=f"{cue.text} ሌላ") for cue in scan.recordings[0].cues)
    scan = ScanResult((dataclasses.replace(scan.recordings[0], other=other),))
    for clip in built(scan, project).contents.kept:
        assert clip.other_text.replace(" ሌላ", "") == clip.text


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (SaysTheSame(), SaysTheSame("ሰላም ለሁላችሁም ዛሬ ጥሩ ቀን!"), None),
        (SaysTheSame(), SaysTheSame("ዝናቡ ሌሊቱን ሙሉ አደረ"), "recognisers disagree"),
        (None, None, "empty text"),
    ],
)
def test_clips_without_text_or_with_two_are_excluded_with_their_audio(
    project: Project, tmp_path: Path, first: SaysTheSame | None, second: SaysTheSame | None, reason: Reason | None
) -> None:
    scan = ScanResult((without_text(tmp_path / "in"),))
    clips = built(scan, project, SETTINGS, first, second).contents.clips.values()
    assert {(clip.reason, clip.scores.second_cer is None) for clip in clips} == {(reason, second is None)}
    assert all((project.dataset / clip.audio).is_file() for clip in clips)


def test_a_recording_with_a_known_text_is_one_clip_without_its_silence(project: Project, tmp_path: Path) -> None:
    known = recording(8, seed=1, pauses=(2, 2), speech=[generated()[6]])
    path = known.save(tmp_path / "one.wav")
    (clip,) = built(ScanResult((Recording(path, "s", "ሰላም ለሁላችሁም ዛሬ ጥሩ ቀን ነው"),)), project).contents.clips.values()
    assert clip.span.start == pytest.approx(2 - SETTINGS.padding_seconds, abs=0.1)
    assert clip.status == "kept"


def test_a_recording_whose_end_is_missing_is_named_with_its_other_damage(project: Project, tmp_path: Path) -> None:
    path = recording(20.0, pauses=(0.7, 1.2), speech=generated()).save(tmp_path / "talk.flac")
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 7 // 10])
    source = built(ScanResult((Recording(path, "s", "ሰላም"),)), project).contents.files[str(path)]
    assert [type(warning) for warning in source.warnings[:2]] == [AudioCutOff, AudioDamaged]


def test_the_ledger_says_what_became_of_every_file(project: Project, tmp_path: Path) -> None:
    good = soundfile.read(recordings(tmp_path / "made", 1).recordings[0].path)[0]
    soundfile.write(tmp_path / "8 channels.wav", np.repeat(good[:, None], 8, axis=1), 16_000)
    soundfile.write(tmp_path / "invalid.wav", np.append(good, np.nan), 16_000, subtype="FLOAT")
    soundfile.write(tmp_path / "a cut.wav", recording(8, seed=9, pauses=(0.7, 1.2), speech=generated()).samples, 16_000)
    os.truncate(tmp_path / "a cut.wav", (tmp_path / "a cut.wav").stat().st_size // 2)
    (tmp_path / "empty.wav").touch()
    (tmp_path / "text.mp3").write_text("ይህ ድምፅ አይደለም።" * 50, encoding="utf-8")
    scan = ScanResult(tuple(Recording(path, "s", "ሰላም ለሁላችሁም ዛሬ" * 3) for path in sorted(tmp_path.glob("*.*"))))
    ledger = account(built(scan, project).contents)
    reasons = {bad.path.name: bad.reason for bad in ledger.failed}
    assert set(reasons) == {"empty.wav", "invalid.wav", "text.mp3"}
    assert reasons["empty.wav"] == AudioFileError(tmp_path / "empty.wav", "empty")
    finished = {Path(entry.source).name: entry for entry in ledger.recordings}
    assert set(finished) == {"a cut.wav", "8 channels.wav"}
    for name, seconds in (("a cut.wav", 4.0), ("8 channels.wav", 8.0)):
        assert finished[name].seconds == pytest.approx(seconds, abs=0.01)
        assert finished[name].kept > seconds / 2


def test_finished_recordings_survive_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    project = Project(small_disk)
    with pytest.raises(StorageError, match="cannot be written"):
        built(recordings(tmp_path / "in", 3), project)
    contents = Store(project.dataset).read()
    assert 0 < len(contents.recordings) < 3
    assert all((project.dataset / clip.audio).is_file() for clip in contents.kept)
