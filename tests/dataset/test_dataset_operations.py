"""What is done with a finished dataset: merge, filter, export, check, count."""

import dataclasses
import json
import re
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import soundfile
from pyarrow import parquet

from tests.dataset.building import SETTINGS, built, clip, recordings
from tests.xtts.small_vocabulary import write_vocabulary
from utils.config import DatasetConfig
from utils.core.errors import StorageError
from utils.dataset import editor, statistics
from utils.dataset.bulk_edits import LIMITS, merge, refilter
from utils.dataset.clip import Clip, Source
from utils.dataset.errors import DatasetError
from utils.dataset.export import export
from utils.dataset.facts import Reason
from utils.dataset.filters import filtered
from utils.dataset.metadata import check, read_list, write_lists
from utils.dataset.pipeline import process_recording
from utils.dataset.store import Dataset, Store, load_dataset
from utils.recognition.levels import ClipScores
from utils.recognition.spans import Span
from utils.studio.paths import Project
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

RATE = 22_050
STRICT = DatasetConfig(min_snr_db=20)


def dataset(folder: Path, names: tuple[str, ...] = ("r0", "r1"), each: int = 3) -> Path:
    """Write a dataset of tones; the last clip of each recording is excluded."""
    (folder / "wavs").mkdir(parents=True)
    store = Store(folder)
    for side, name in zip(("train", "eval", "train", "train"), names, strict=False):
        clips = [clip(number, recording=name, text=f"ሰላም {name} {number}", split=side) for number in range(each)]
        clips[-1] = dataclasses.replace(clips[-1].excluded("noisy"), split="")
        for number, row in enumerate(clips):
            tone = 0.1 * np.sin(np.arange(4 * RATE) * (0.01 + 0.001 * number))
            soundfile.write(folder / row.audio, tone, RATE, subtype="PCM_16")
        store.add(Source(name, f"/in/{name}.wav", 10, 20, 10.0 * each), clips)
    write_lists(folder, "am")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return dataset(tmp_path / "a")


def test_a_merge_does_what_its_dry_run_says(folder: Path, tmp_path: Path) -> None:
    mine, other = folder, dataset(tmp_path / "b", ("r1", "r2", "r3"))
    Store(other).put([dataclasses.replace(load_dataset(other).clips["r3-0"], content="c-r0-0")])
    (other / "wavs" / "r3-1.wav").unlink()
    before = {path: path.stat().st_mtime_ns for path in mine.rglob("*")}
    plan = merge(mine, other, dry_run=True)
    assert str(plan.total).startswith("2 new recordings with 5 clips (0.1 min in use). Already there: 1.")
    assert (plan.known, plan.duplicates, plan.missing) == (1, 1, ("wavs/r3-1.wav",))
    assert {path: path.stat().st_mtime_ns for path in mine.rglob("*")} == before
    new = {name: row for name, row in load_dataset(other).clips.items() if row.recording == "r2" or name == "r3-2"}
    expected = load_dataset(mine).clips | new
    assert merge(mine, other, dry_run=False) == plan
    merged = load_dataset(mine).clips
    assert merged.pop("r3-0").reason == "duplicate"
    assert merged == expected
    assert all((mine / row.audio).is_file() for row in merged.values())
    texts = [row.text for row in read_list(mine / "metadata_eval.csv")]
    assert texts == ["ሰላም r1 0", "ሰላም r1 1", "ሰላም r2 0", "ሰላም r2 1"]
    assert merge(mine, other, dry_run=False).recordings == ()
    (other / "lang.txt").write_text("om\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="is in another language"):
        merge(mine, other, dry_run=True)


def without_audio(folder: Path, *clips: Clip) -> Path:
    Store(folder).add(Source("r0", "/in/r0.wav", 10, 20, 60.0), clips)
    write_lists(folder, "am")
    return folder


def noisy(number: int, snr_db: float, excluded: Reason | None = None, **changes: Any) -> Clip:
    made = clip(number, scores=ClipScores(snr_db=snr_db), split="" if excluded else "train", **changes)
    return made.excluded(excluded) if excluded else made


def standing(folder: Path) -> dict[str, str]:
    return {clip.id.removeprefix("r0-"): clip.reason or clip.status for clip in load_dataset(folder).clips.values()}


def test_filters_can_be_applied_again(tmp_path: Path) -> None:
    mixed = without_audio(
        tmp_path,
        noisy(0, 30.0),
        noisy(1, 15.0),
        noisy(2, 25.0, "noisy"),
        noisy(3, 5.0, "noisy"),
        noisy(4, 30.0, "other"),
        noisy(5, 30.0, "duplicate"),
        noisy(6, 30.0, "too short", audio=""),
        noisy(7, 30.0, "too slow", text="?"),
        noisy(8, 5.0, reason="approved"),
    )
    before = load_dataset(mixed)
    lines = str(refilter(mixed, STRICT, apply=False)).splitlines()
    assert lines[0] == "to be excluded            1 clips, 4.0 s"
    assert lines[-1] == "in use afterwards         3 clips, 12.0 s"
    assert load_dataset(mixed) == before
    refilter(mixed, STRICT, apply=True)
    after = {"0": "kept", "1": "noisy", "2": "kept", "3": "noisy", "4": "other", "5": "duplicate", "6": "too short"}
    assert standing(mixed) == after | {"7": "empty text", "8": "approved"}
    assert load_dataset(mixed).clips["r0-2"].split == "train"
    assert refilter(mixed, STRICT, apply=True).after == ()
    editor.undo(mixed)
    assert load_dataset(mixed) == before


DOUBTED: dict[str, Any] = {"reason": "word not spoken", "note": "ሰላም"}


@pytest.mark.parametrize("limits", [[STRICT], [STRICT, DatasetConfig(max_seconds=3), STRICT]])
def test_a_clip_that_was_doubted_is_doubted_again(tmp_path: Path, limits: list[DatasetConfig]) -> None:
    folder = without_audio(tmp_path, noisy(0, 15.0, **DOUBTED), noisy(1, 15.0))
    before = load_dataset(folder).clips
    for each in limits:
        refilter(folder, each, apply=True)
        assert load_dataset(folder).kept == []
    refilter(folder, DatasetConfig(), apply=True)
    assert load_dataset(folder).clips == before


@pytest.mark.parametrize("judged", [clip(0, **DOUBTED), clip(0, **DOUBTED, status="excluded")])
def test_silence_in_a_build_keeps_what_was_found_about_the_text(tmp_path: Path, judged: Clip) -> None:
    check = Mock(**{"cut.return_value": ([], [], [], {}), "judge.return_value": judged})
    (silent,) = recordings(tmp_path, 1).recordings
    silent = dataclasses.replace(silent, cues=silent.cues[:1])
    _, made = process_recording(silent, Source("r0", str(silent.path)), DatasetConfig(min_speech_ratio=1), check=check)
    ((clip, _),) = made
    assert clip.reason == "no speech"
    again = filtered(clip, None)
    assert (again.status, again.reason, again.note) == (judged.status, judged.reason, judged.note)


def test_a_corrected_text_is_not_doubted_again(tmp_path: Path) -> None:
    folder = without_audio(tmp_path, noisy(0, 15.0, **DOUBTED))
    refilter(folder, STRICT, apply=True)
    editor.set_text(folder, "r0-0", "ሰላም ለሁላችሁም")
    refilter(folder, DatasetConfig(), apply=True)
    assert standing(folder) == {"0": "kept"}


@pytest.mark.parametrize("decide", [editor.approve, editor.restore, partial(editor.exclude, reason="noise")])
def test_a_decision_of_a_person_ends_a_doubt(tmp_path: Path, decide: Callable[[Path, list[str]], object]) -> None:
    folder = without_audio(tmp_path, noisy(0, 15.0, **DOUBTED))
    refilter(folder, STRICT, apply=True)
    decide(folder, ["r0-0"])
    assert load_dataset(folder).clips["r0-0"].before == ""


def test_of_two_clips_with_the_same_sound_one_is_in_use(tmp_path: Path) -> None:
    both = without_audio(tmp_path / "both", *(noisy(number, 15.0, "noisy", content="c") for number in range(2)))
    refilter(both, DatasetConfig(), apply=True)
    assert standing(both) == {"0": "kept", "1": "duplicate"}
    leaving, coming = noisy(0, 15.0, content="c"), noisy(1, 30.0, "low confidence", content="c")
    refilter(without_audio(tmp_path / "one leaves", leaving, coming), STRICT, apply=True)
    assert standing(tmp_path / "one leaves") == {"0": "noisy", "1": "kept"}


def test_a_corrected_text_is_judged_by_its_own_pace(tmp_path: Path) -> None:
    wrong = ClipScores(chars_per_second=40.0, confidence=0.1, second_cer=0.9)
    folder = without_audio(tmp_path, clip(0), clip(1, scores=wrong).excluded("too fast"))
    assert refilter(folder, DatasetConfig(), apply=False).after == ()
    editor.set_text(folder, "r0-1", "ሰላም ለሁላችሁም")
    refilter(folder, DatasetConfig(), apply=True)
    corrected = load_dataset(folder).clips["r0-1"]
    assert (corrected.status, corrected.scores) == ("kept", ClipScores(chars_per_second=9 / 4))


def test_every_limit_of_the_build_can_be_applied_again(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    built(recordings(tmp_path / "in", 2), project)
    assert refilter(project.dataset, SETTINGS, apply=False).after == ()
    limits = {"min_pause_seconds", "min_speech_seconds"} | set(LIMITS)  # those two decide where is cut
    assert {name for name in DatasetConfig.model_fields if re.match("min_|max_", name)} == limits


def test_a_zip_holds_a_dataset(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(export(folder, tmp_path / "all.zip", "zip")) as archive:
        archive.extractall(tmp_path / "b")
    ours = [dataclasses.replace(clip, source=Path(clip.source).name) for clip in load_dataset(folder).kept]
    assert load_dataset(tmp_path / "b").kept == ours
    assert list(check(tmp_path / "b", 11.6, "am")) == []


def test_ljspeech_names_each_file_of_its_folder(folder: Path, tmp_path: Path) -> None:
    target = export(folder, tmp_path / "lj", "ljspeech")
    lines = (target / "metadata.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "r0-0|ሰላም r0 0|ሰላም r0 0"
    assert sorted(path.stem for path in (target / "wavs").iterdir()) == [line.partition("|")[0] for line in lines]


def test_an_export_overwrites_nothing(folder: Path, tmp_path: Path) -> None:
    earlier = export(folder, tmp_path / "lj", "ljspeech")
    with pytest.raises(StorageError, match="already exists"):
        export(folder, earlier, "parquet")
    assert (earlier / "metadata.csv").is_file()


def test_half_an_export_is_not_left_behind(folder: Path, tmp_path: Path) -> None:
    (folder / "wavs" / "r0-1.wav").unlink()
    with pytest.raises(StorageError):
        export(folder, tmp_path / "half", "ljspeech")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_parquet_holds_the_audio(folder: Path, tmp_path: Path) -> None:
    target = export(folder, tmp_path / "hf", "parquet")
    names = sorted(path.name for path in (target / "data").iterdir())
    assert names == ["train-00000-of-00001.parquet", "validation-00000-of-00001.parquet"]
    table = parquet.read_table(target / "data" / names[0])
    assert json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]["audio"]["_type"] == "Audio"
    first = table.to_pylist()[0]
    assert first["audio"]["bytes"] == (folder / "wavs" / "r0-0.wav").read_bytes()
    assert (first["text"], first["speaker_name"], first["end"]) == ("ሰላም r0 0", "speaker", 4.0)


def test_each_problem_is_named_with_its_line(folder: Path) -> None:
    for name, seconds in (("../outside.wav", 1), ("wavs/long.wav", 12), ("wavs/new.wav", 1)):
        soundfile.write(folder / name, np.zeros(seconds * RATE), RATE)
    (folder / "wavs" / "broken.wav").write_bytes(b"RIFF")
    problems = {
        "wavs/gone.wav|ሰላም|s": "train.csv:4: No such audio file: wavs/gone.wav.",
        "wavs/broken.wav|ሰላም|s": "train.csv:5: wavs/broken.wav is not a readable audio file.",
        "wavs/r0-2.wav|  |s": "train.csv:6: wavs/r0-2.wav has no text.",
        "wavs/r1-2.wav|ሰላም": "line 7: 2/3 cells",
        "wavs/r0-0.wav|ሰላም|s": "train.csv:8: wavs/r0-0.wav is already in metadata_train.csv:2.",
        "wavs/long.wav|ሰላም|s": "train.csv:9: wavs/long.wav (12.00 s) is too long; the maximum is 11.6 s.",
        "wavs/new.wav|ሰላም r1 0|speaker": "eval.csv:2: The text of wavs/r1-0.wav is also in metadata_train.csv:10.",
        "../outside.wav|ሰላም|s": "train.csv:11: ../outside.wav is outside",
    }
    path = folder / "metadata_train.csv"
    path.write_text("\n".join([path.read_text(encoding="utf-8").rstrip(), *problems, ""]), encoding="utf-8")
    reported = list(map(str, check(folder, 11.6, "am")))
    assert len(reported) == len(problems), reported
    assert all(problem in "\n".join(reported) for problem in problems.values()), reported


def test_what_training_cannot_use_is_a_problem(tmp_path: Path) -> None:
    folder = dataset(tmp_path, ("r0",), each=4)
    wav = folder / "wavs" / "r0-2.wav"
    wav.write_bytes(wav.read_bytes()[:50_000])
    editor.set_text(folder, "r0-0", "ሰላም 日")
    editor.set_text(folder, "r0-1", "ሰላም ለሁላችሁም " * 60)
    tokenizer = prepare_tokenizer(Vocabulary.load(write_vocabulary(tmp_path)), "am")
    found = {(problem.path.name, problem.line, problem.issue) for problem in check(folder, 11.6, "am", tokenizer)}
    assert found == {
        ("metadata_eval.csv", 1, "empty_list"),
        ("metadata_train.csv", 2, "no_symbol"),
        ("metadata_train.csv", 3, "many_tokens"),
        ("metadata_train.csv", 4, "changed"),
    }


def span(start: float, end: float, reason: Reason | None = None) -> Clip:
    row = clip(0, id=f"{start}-{end}", span=Span(start, end))
    return row.excluded(reason) if reason else row


@pytest.mark.parametrize(
    ("clips", "kept", "excluded"),
    [
        ([span(1, 3), span(4, 6, "noisy"), span(7, 7.5, "too short")], 2, {"noisy": 2, "too short": 0.5}),
        ([span(1, 3, "noisy"), span(2, 5)], 3, {"noisy": 1}),
        ([span(1, 3), span(2, 5)], 4, {}),
        ([span(8, 12), span(-1, 1)], 3, {}),
    ],
    ids=["by reason", "a second in two clips counts for the kept one", "or once", "only within the recording"],
)
def test_every_second_is_accounted_for_once(clips: list[Clip], kept: float, excluded: dict[str, float]) -> None:
    rows = {str(number): row for number, row in enumerate(clips)}
    ledger = statistics.account(Dataset(rows, {"r0": Source("r0", "a.wav", seconds=10.0)})).total
    assert ledger.kept == pytest.approx(kept)
    assert {str(part.reason): part.seconds for part in ledger.excluded} == pytest.approx(excluded)
    assert ledger.between == pytest.approx(10 - kept - sum(excluded.values()))
