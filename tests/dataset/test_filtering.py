"""Judging a finished dataset again, and giving its speakers other names."""

import dataclasses
import re
from pathlib import Path

from tests.dataset.building import SETTINGS, built, clip, recordings
from utils.config import DatasetConfig
from utils.core.paths import Project
from utils.dataset import editor
from utils.dataset.bulk_edits import LIMITS, refilter
from utils.dataset.clip import APPROVED, Clip, Scores, Source
from utils.dataset.metadata import write_lists
from utils.dataset.store import Store, load_dataset

STRICT = DatasetConfig(min_snr_db=20)


def dataset(folder: Path, *clips: Clip) -> Path:
    """Write a dataset without any audio behind it."""
    Store(folder).add(Source("r0", "/in/r0.wav", 10, 20, 60.0), clips)
    write_lists(folder, "am")
    return folder


def noisy(number: int, snr_db: float, **changes: object) -> Clip:
    return dataclasses.replace(clip(number, scores=Scores(snr_db=snr_db), split="train"), **changes)  # type: ignore[arg-type]


def mixed(folder: Path) -> Path:
    """Write clips of every standing: the first stays, the second fails 20 dB, the others are aside."""
    return dataset(
        folder,
        noisy(0, 30.0),
        noisy(1, 15.0),
        noisy(2, 25.0, split="").excluded("noisy"),
        noisy(3, 5.0, split="").excluded("noisy"),
        noisy(4, 30.0, split="").excluded("a cough"),
        noisy(5, 30.0, split="").excluded("duplicate"),
        noisy(6, 30.0, split="", audio="").excluded("too short"),
        noisy(7, 30.0, split="", text="?").excluded("too slow"),
        noisy(8, 5.0, reason=APPROVED),
    )


def standing(folder: Path) -> dict[str, str]:
    return {clip.id.removeprefix("r0-"): clip.reason or clip.status for clip in load_dataset(folder).clips.values()}


def test_a_dry_run_counts_by_reason_and_changes_nothing(tmp_path: Path) -> None:
    folder = mixed(tmp_path)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    lines = str(refilter(folder, STRICT, apply=False)).splitlines()
    assert lines[0] == "to be excluded            1 clips, 4.0 s"
    assert lines[-1] == "kept afterwards           3 clips, 12.0 s"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_fails_is_set_aside_and_what_a_rule_set_aside_comes_back(tmp_path: Path) -> None:
    folder = mixed(tmp_path)
    before = load_dataset(folder)
    refilter(folder, STRICT, apply=True)
    after = {"0": "kept", "1": "noisy", "2": "kept", "3": "noisy", "4": "a cough", "5": "duplicate", "6": "too short"}
    assert standing(folder) == after | {"7": "empty text", "8": APPROVED}
    assert load_dataset(folder).clips["r0-2"].split == "train"
    assert refilter(folder, STRICT, apply=True).after == ()
    editor.undo(folder)
    assert load_dataset(folder) == before


def test_a_filter_is_undone_for_one_clip_or_by_the_earlier_limits(tmp_path: Path) -> None:
    folder = mixed(tmp_path)
    before = load_dataset(folder).clips
    refilter(folder, STRICT, apply=True)
    assert editor.revert(folder, "r0-1").clips == (before["r0-1"],)
    assert editor.revert(folder, "r0-2").clips[0].reason == "noisy"
    refilter(folder, STRICT, apply=True)
    refilter(folder, DatasetConfig(min_snr_db=10), apply=True)
    assert load_dataset(folder).clips["r0-1"] == before["r0-1"]


def test_of_two_clips_with_the_same_sound_one_is_in_use(tmp_path: Path) -> None:
    same = [noisy(number, 15.0, content="c", split="").excluded("noisy") for number in range(2)]
    folder = dataset(tmp_path / "both", *same)
    refilter(folder, DatasetConfig(), apply=True)
    assert standing(folder) == {"0": "kept", "1": "duplicate"}
    other = noisy(1, 30.0, content="c", split="").excluded("low confidence")
    folder = dataset(tmp_path / "one leaves", noisy(0, 15.0, content="c"), other)
    refilter(folder, STRICT, apply=True)
    assert standing(folder) == {"0": "noisy", "1": "kept"}


def test_a_corrected_text_is_judged_by_its_own_pace(tmp_path: Path) -> None:
    wrong = Scores(chars_per_second=40.0, confidence=0.1, second_cer=0.9)
    folder = dataset(tmp_path, clip(0), clip(1, scores=wrong).excluded("too fast"))
    assert refilter(folder, DatasetConfig(), apply=False).after == ()
    editor.set_text(folder, "r0-1", "ሰላም ለሁላችሁም")
    refilter(folder, DatasetConfig(), apply=True)
    assert load_dataset(folder).clips["r0-1"].status == "kept"
    assert load_dataset(folder).clips["r0-1"].scores == Scores(chars_per_second=9 / 4)


def test_the_limits_of_the_build_change_nothing_and_none_is_missing(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    built(recordings(tmp_path / "in", 2), project)
    assert refilter(project.dataset, SETTINGS, apply=False).after == ()
    limits = {"min_pause_seconds", "min_speech_seconds"} | set(LIMITS)  # those two decide where is cut
    assert {name for name in DatasetConfig.model_fields if re.match("min_|max_", name)} == limits
    longest = max(clip.span.seconds for clip in load_dataset(project.dataset).kept)
    shorter = SETTINGS.model_copy(update={"max_seconds": longest - 0.01})
    assert {clip.reason for clip in refilter(project.dataset, shorter, apply=True).after} == {"too long"}
    refilter(project.dataset, SETTINGS, apply=True)
    assert max(clip.span.seconds for clip in load_dataset(project.dataset).kept) == longest
