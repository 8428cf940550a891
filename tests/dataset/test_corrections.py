"""Changes that a person makes to clips, each of which can be taken back as a whole."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tests.dataset.building import built, recordings
from utils.core.errors import DataError
from utils.core.events import EventLog
from utils.core.paths import Project
from utils.dataset import corrections
from utils.dataset.clip import APPROVED, Clip
from utils.dataset.corrections import divided
from utils.dataset.manifest import Contents, Manifest, opened
from utils.dataset.validate import check
from utils.media import audio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of two recordings with real sound."""
    project = Project(tmp_path / "project")
    built(recordings(tmp_path / "in", 2, seconds=16.0), project)
    return project.dataset


def kept(folder: Path) -> list[Clip]:
    return sorted(opened(folder).kept, key=lambda clip: (clip.source, clip.span.start))


def plain(contents: Contents) -> dict[str, Clip]:
    """All clips that nobody took back, whatever side of the split they are on."""
    there = contents.clips.values()
    return {clip.id: dataclasses.replace(clip, split="") for clip in there if clip.reason != corrections.TAKEN_BACK}


def test_approved_clips_are_marked_and_stay_in_use(folder: Path) -> None:
    first, second, *_ = kept(folder)
    corrections.set_aside(folder, [second.id], "noise")
    corrections.approve(folder, [first.id, second.id])
    assert [clip.reason for clip in kept(folder)[:2]] == [APPROVED, APPROVED]
    corrections.restore(folder, [first.id])
    assert [clip.reason for clip in kept(folder)[:2]] == ["", APPROVED]


@pytest.mark.parametrize("reason", ["", "too short", APPROVED])
def test_words_that_are_kept_for_rules_are_no_reason(folder: Path, reason: str) -> None:
    with pytest.raises(DataError, match="cannot be the reason"):
        corrections.set_aside(folder, [kept(folder)[0].id], reason)


def test_a_split_shares_sound_and_words_out(folder: Path) -> None:
    clip = max(kept(folder), key=lambda one: one.span.seconds)
    first, second = corrections.split(folder, clip.id, clip.span.seconds / 2).clips
    assert first.span.end == pytest.approx(second.span.start)
    assert f"{first.text} {second.text}" == clip.text
    lengths = [audio.duration(folder / one.audio) for one in (first, second)]
    assert sum(lengths) == pytest.approx(clip.span.seconds, abs=0.01)
    assert opened(folder).clips[clip.id].reason == "split in two"
    assert list(check(folder, 11.6, "am")) == []


def test_a_trim_keeps_the_part_between_the_marks(folder: Path) -> None:
    clip = kept(folder)[0]
    (part,) = corrections.trim(folder, clip.id, 0.25, 1.0).clips
    assert (part.span.start, part.span.end) == (clip.span.start + 0.25, clip.span.start + 1.0)
    whole = audio.load(folder / clip.audio, 22_050)
    found = audio.load(folder / part.audio, 22_050)
    middle = slice(2000, 14_000)  # away from the fades
    assert np.abs(found[middle] - whole[round(0.25 * 22_050) :][middle]).max() < 1e-3


def test_joined_clips_hold_the_pause_between_them(folder: Path) -> None:
    first, second, *_ = kept(folder)
    (both,) = corrections.merge_next(folder, first.id).clips
    assert (both.span.start, both.span.end) == (first.span.start, second.span.end)
    assert both.text == f"{first.text} {second.text}"
    assert audio.duration(folder / both.audio) == pytest.approx(both.span.seconds, abs=0.01)
    assert {opened(folder).clips[one.id].reason for one in (first, second)} == {"joined"}


def test_without_the_recording_clips_are_not_joined(folder: Path) -> None:
    first = kept(folder)[0]
    Path(first.source).unlink()
    with pytest.raises(DataError, match="is gone"):
        corrections.merge_next(folder, first.id)


@pytest.mark.parametrize(
    "change",
    [
        corrections.approve,
        lambda folder, clips: corrections.set_aside(folder, clips, "noise"),
        lambda folder, clips: corrections.change_text(folder, clips[0], "ደህና ነኝ"),
        lambda folder, clips: corrections.split(folder, clips[0], 0.6),
        lambda folder, clips: corrections.trim(folder, clips[0], 0.2, 1.0),
        lambda folder, clips: corrections.merge_next(folder, clips[0]),
    ],
    ids=["approve", "aside", "text", "split", "trim", "merge"],
)
def test_every_change_is_taken_back_as_a_whole(folder: Path, change: object) -> None:
    before = plain(opened(folder))
    change(folder, [clip.id for clip in kept(folder)[:2]])  # type: ignore[operator]
    assert plain(opened(folder)) != before
    corrections.undo_last(folder)
    assert plain(opened(folder)) == before


def test_changes_are_taken_back_one_after_the_other(folder: Path) -> None:
    name = kept(folder)[0].id
    before = plain(opened(folder))
    corrections.change_text(folder, name, "አንድ")
    corrections.change_text(folder, name, "ሁለት")
    assert corrections.undo_last(folder).clips[0].text == "አንድ"
    corrections.undo_last(folder)
    assert plain(opened(folder)) == before
    assert corrections.last(folder) is None
    with pytest.raises(DataError, match="nothing to take back"):
        corrections.undo_last(folder)


def test_a_change_of_another_process_is_seen(folder: Path) -> None:
    first, second, *_ = opened(folder).kept
    corrections.approve(folder, [first.id])
    Manifest(folder).change([second.aside("of another process")])
    corrections.restore(folder, [first.id])
    assert opened(folder).clips[second.id].reason == "of another process"
    corrections.undo_last(folder)
    assert second.id not in {clip.id for clip in opened(folder).kept}


def test_a_change_that_failed_leaves_nothing(folder: Path) -> None:
    first, *_ = opened(folder).kept
    corrections.approve(folder, [first.id])
    with pytest.raises(DataError, match="no clip"):
        corrections.set_aside(folder, [first.id, "unknown"], "to my ear")
    corrections.restore(folder, [first.id])
    assert opened(folder).clips[first.id].reason == ""


def test_a_change_from_elsewhere_is_not_overwritten(folder: Path) -> None:
    from utils.dataset import editing

    name = kept(folder)[0].id
    corrections.change_text(folder, name, "አንድ")
    editing.change_text(folder, name, "ከሌላ ቦታ")
    with pytest.raises(DataError, match="changed since"):
        corrections.undo_last(folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda folder, name: corrections.split(folder, name, 0.1), "Both parts"),
        (lambda folder, name: corrections.trim(folder, name, 0.5, 0.6), "has to last"),
        (lambda folder, name: corrections.trim(folder, name, 0.0, 99.0), "Start and end are those"),
        (lambda folder, name: corrections.change_text(folder, name, " "), "is empty"),
        (lambda folder, name: corrections.approve(folder, [name, "nobody"]), "no clip 'nobody'"),
    ],
)
def test_what_cannot_be_leaves_everything_as_it_was(folder: Path, change: object, reason: str) -> None:
    before = (folder / "manifest.csv").read_bytes()
    with pytest.raises(DataError, match=reason):
        change(folder, kept(folder)[0].id)  # type: ignore[operator]
    assert (folder / "manifest.csv").read_bytes() == before
    assert corrections.last(folder) is None


@pytest.mark.parametrize(
    ("text", "share", "parts"),
    [
        ("ሀ ለ ሐ መ", 0.5, ("ሀ ለ", "ሐ መ")),
        ("ሀሀሀሀሀሀ ለ", 0.9, ("ሀሀሀሀሀሀ", "ለ")),
        ("አንድ", 0.7, ("አንድ", "")),
        ("አንድ", 0.2, ("", "አንድ")),
        ("", 0.5, ("", "")),
    ],
)
def test_words_are_divided_by_their_letters(text: str, share: float, parts: tuple[str, str]) -> None:
    assert divided(text, share) == parts


@pytest.mark.parametrize(
    "changed",
    [
        {"text": [5, "NOW"]},
        {"status": ["gone", "kept"]},
        {"text": ["before"]},
        {"colour": ["red", "blue"]},
        {"scores": [{"beauty": "high"}, "SCORES"]},
        ["text"],
    ],
)
def test_a_damaged_note_takes_nothing_back_and_spoils_no_clip(folder: Path, changed: object) -> None:
    clip = kept(folder)[0]
    now = {"NOW": clip.text, "kept": "kept", "SCORES": dataclasses.asdict(clip.scores)}
    if isinstance(changed, dict):
        changed = {name: [values[0], *(now.get(one, one) for one in values[1:])] for name, values in changed.items()}
    with EventLog(folder / corrections.JOURNAL) as journal:
        journal.emit("edit", what="text", changed={clip.id: changed}, added=[])
    before = opened(folder)
    with pytest.raises(DataError, match="is damaged"):
        corrections.undo_last(folder)
    assert opened(folder) == before
