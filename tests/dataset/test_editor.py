"""The clip editor: what each edit does, and one history of undo and redo."""

import dataclasses
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.dataset.building import built, clip, recordings
from tests.ui.data_folders import many_clips
from utils.config import TrainConfig
from utils.dataset import editor, metadata
from utils.dataset.clip import Clip
from utils.dataset.errors import DatasetError, EditError
from utils.dataset.metadata import check, list_files, read_list
from utils.dataset.store import PAGE_SIZE, Store, View, load_dataset
from utils.media import audio
from utils.studio.paths import Project

Change = Callable[[Path, Sequence[str]], object]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of two recordings with real audio."""
    folder = tmp_path_factory.mktemp("original")
    project = Project(folder / "project")
    built(recordings(folder / "in", 2, seconds=16.0), project)
    return project.dataset


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "dataset")


def kept(folder: Path) -> list[Clip]:
    return sorted(load_dataset(folder).kept, key=lambda clip: (clip.source, clip.span.start))


def test_a_corrected_text_loses_the_scores_of_the_old_one(folder: Path) -> None:
    first, *_ = kept(folder)
    Store(folder).put([dataclasses.replace(first, scores=dataclasses.replace(first.scores, confidence=0.5))])
    (changed,) = editor.set_text(folder, first.id, " ደህና\nነኝ ").clips
    assert changed.text == "ደህና ነኝ"
    assert (changed.scores.confidence, changed.scores.chars_per_second) == (None, 5 / changed.span.seconds)
    assert "ደህና ነኝ" in {row.text for path in list_files(folder) for row in read_list(path)}


def test_an_approved_clip_is_used_even_if_it_was_excluded(folder: Path) -> None:
    first, second, *_ = kept(folder)
    editor.exclude(folder, [second.id], "noise")
    editor.approve(folder, [first.id, second.id])
    assert [clip.reason for clip in kept(folder)[:2]] == ["approved", "approved"]
    editor.restore(folder, [first.id])
    assert [clip.reason for clip in kept(folder)[:2]] == [None, "approved"]


def test_a_split_divides_audio_with_its_words(folder: Path) -> None:
    clip = max(kept(folder), key=lambda clip: clip.span.seconds)
    first, second = editor.split_clip(folder, clip.id, clip.span.seconds / 2).clips
    assert first.span.end == pytest.approx(second.span.start)
    assert (first.text, second.text) == editor.divide(clip.text, 0.5)
    assert editor.divide("ሀሀሀሀሀሀ ለ ሐ", 0.75) == ("ሀሀሀሀሀሀ", "ለ ሐ")  # by letters, between words
    lengths = [audio.duration(folder / part.audio) for part in (first, second)]
    assert sum(lengths) == pytest.approx(clip.span.seconds, abs=0.01)
    assert load_dataset(folder).clips[clip.id].status == "excluded"
    assert list(check(folder, 11.6, "am")) == []


def test_a_trim_keeps_the_audio_between_the_marks(folder: Path) -> None:
    other = max(kept(folder), key=lambda clip: clip.span.seconds)
    (part,) = editor.trim(folder, other.id, 0.25, 1.0).clips
    assert (part.span.start, part.span.end) == (other.span.start + 0.25, other.span.start + 1.0)
    whole, trimmed = (audio.load(folder / path, 22_050) for path in (other.audio, part.audio))
    middle = slice(2000, 14_000)  # away from the fades
    assert np.abs(trimmed[middle] - whole[round(0.25 * 22_050) :][middle]).max() < 1e-3
    assert load_dataset(folder).clips[other.id].status == "excluded"
    assert list(check(folder, 11.6, "am")) == []


def test_merged_clips_hold_the_pause_between_them_which_needs_their_recording(folder: Path) -> None:
    first, second, *_ = kept(folder)
    (both,) = editor.merge_next(folder, first.id).clips
    assert (both.span.start, both.span.end) == (first.span.start, second.span.end)
    assert both.text == f"{first.text} {second.text}"
    assert audio.duration(folder / both.audio) == pytest.approx(both.span.seconds, abs=0.01)
    assert {load_dataset(folder).clips[clip.id].status for clip in (first, second)} == {"excluded"}
    Store(folder).put([dataclasses.replace(first, source="gone.wav")])
    with pytest.raises(EditError, match="is missing"):
        editor.merge_next(folder, first.id)


EDITS: dict[str, Change] = {
    "approve": editor.approve,
    "exclude": lambda folder, clips: editor.exclude(folder, clips, "noise"),
    "text": lambda folder, clips: editor.set_text(folder, clips[0], "ደህና ነኝ"),
    "split": lambda folder, clips: editor.split_clip(folder, clips[0], 0.6),
    "trim": lambda folder, clips: editor.trim(folder, clips[0], 0.2, 1.0),
    "merge": lambda folder, clips: editor.merge_next(folder, clips[0]),
    "speaker": lambda folder, _: editor.rename_speakers(folder, {"speaker0": "አበበ"}),
    "evaluation split": lambda folder, _: editor.resplit(folder, 0.5, "time"),
}


@pytest.mark.parametrize("name", EDITS)
def test_every_edit_is_one_step_of_undo(folder: Path, name: str) -> None:
    before = load_dataset(folder)
    EDITS[name](folder, [clip.id for clip in kept(folder)[:2]])
    after = load_dataset(folder)
    assert after != before
    assert editor.last_edit(folder) == name
    editor.undo(folder)
    assert load_dataset(folder) == before
    assert editor.redo(folder).name == name
    assert load_dataset(folder) == after


def test_edits_are_undone_in_turn(folder: Path) -> None:
    before = load_dataset(folder)
    first, second, *_ = kept(folder)
    editor.set_text(folder, first.id, "አንድ")
    editor.set_text(folder, first.id, "ሁለት")
    assert editor.undo(folder).clips[0].text == "አንድ"
    editor.undo(folder)
    assert load_dataset(folder) == before
    with pytest.raises(EditError, match="nothing to undo"):
        editor.undo(folder)
    assert editor.redo(folder).clips[0].text == "አንድ"
    editor.undo(folder)
    editor.approve(folder, [first.id, second.id])
    with pytest.raises(EditError, match="nothing to redo"):
        editor.redo(folder)


def test_one_clip_is_reverted_by_itself(folder: Path) -> None:
    first, second, *_ = kept(folder)
    editor.approve(folder, [first.id, second.id])
    editor.exclude(folder, [second.id], "noise")
    assert editor.revert(folder, first.id).clips[0] == first
    assert editor.revert(folder, first.id).clips[0].reason == "approved"
    assert load_dataset(folder).clips[second.id].reason == "noise"


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda folder, name: editor.split_clip(folder, name, 0.1), "too_short"),
        (lambda folder, name: editor.trim(folder, name, 0.5, 0.6), "too_short"),
        (lambda folder, name: editor.trim(folder, name, 0.0, 99.0), "unchanged"),
        (lambda folder, name: editor.set_text(folder, name, " "), "empty_text"),
        (lambda folder, name: editor.approve(folder, [name, "nobody"]), "no_clip"),
        (lambda folder, name: editor.exclude(folder, [name], ""), "no_reason"),
        (editor.revert, "not_changed"),
        (lambda folder, _: editor.rename_speakers(folder, {"speaker0": "a|b"}), "speaker_name"),
    ],
)
def test_an_edit_that_fails_changes_nothing(folder: Path, edit: Callable[[Path, str], object], problem: str) -> None:
    before = load_dataset(folder)
    with pytest.raises(EditError) as caught:
        edit(folder, kept(folder)[0].id)
    assert caught.value.problem == problem
    assert load_dataset(folder) == before
    assert editor.last_edit(folder) == ""


@pytest.mark.parametrize("before", ['["text"]', '{"text": 5}', "{"])
def test_a_damaged_history_changes_no_clip(tmp_path: Path, before: str) -> None:
    Store(tmp_path).put([clip(0, split="train")])
    editor.set_text(tmp_path, "r0-0", "አንድ")
    with Store(tmp_path).transaction() as db:
        db.execute("UPDATE changes SET before = ?", [before])
    dataset = load_dataset(tmp_path)
    with pytest.raises(DatasetError, match="damaged edit history"):
        editor.undo(tmp_path)
    assert load_dataset(tmp_path) == dataset


def test_speakers_are_swapped_at_once(tmp_path: Path) -> None:
    speakers = ("Abebe", "abebe", "ሰላም", "Abebe")
    Store(tmp_path).put([clip(number, speaker=name) for number, name in enumerate(speakers)])
    assert editor.rename_speakers(tmp_path, {"abebe": "Abebe", "Abebe": "abebe"}) == {"abebe": 1, "Abebe": 2}
    assert [each.speaker for each in load_dataset(tmp_path).kept] == ["abebe", "Abebe", "ሰላም", "abebe"]


def test_a_run_keeps_the_clips_that_it_started_with(tmp_path: Path) -> None:
    project, config = Project(tmp_path), TrainConfig()
    built(recordings(tmp_path / "in", 2, seconds=16.0), project)
    run = project.runs / "20260101-000000-train"
    run.mkdir(parents=True)
    before = metadata.clips_of_run(run, config, project.dataset)
    metadata.store_clips_of_run(run, config, before)
    editor.set_text(project.dataset, before.train[0].id, "ሌላ ጽሑፍ")
    editor.exclude(project.dataset, [before.train[1].id], "noise")
    assert metadata.clips_of_run(run, config, project.dataset) == before
    assert metadata.fingerprint(metadata.read_clips(config, project.dataset).clips) != metadata.fingerprint(
        before.clips
    )


@pytest.mark.slow
@pytest.mark.alone
def test_an_edit_among_fifty_thousand_clips_takes_50_ms(tmp_path: Path) -> None:
    clips, durations = many_clips(tmp_path, 50_000), []
    for number in range(20):
        name = clips[number * 97].id
        began = time.perf_counter()
        edit = editor.approve if number % 2 else lambda folder, names: editor.set_text(folder, names[0], "ደህና ነኝ")
        edit(tmp_path, [name])
        store = Store(tmp_path)
        page, shown = store.page(View(), 1 + number), store.find([name])[name]
        counts = store.reasons(), store.totals()
        following, last = store.following(shown), editor.last_edit(tmp_path)
        durations.append(time.perf_counter() - began)
        assert len(page.clips) == PAGE_SIZE
        assert all((*counts, following, last))
    assert sorted(durations)[len(durations) // 2] < 0.05, durations
