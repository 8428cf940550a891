"""Clips of other lengths: joined neighbours and short phrases, of training clips alone, as one edit."""

from pathlib import Path

import pytest

from tests.dataset.building import built, recordings
from utils.dataset import editor, length_mix
from utils.dataset.errors import EditError
from utils.dataset.statistics import DatasetLengths
from utils.dataset.store import load_dataset
from utils.media import audio
from utils.recognition.spans import Span
from utils.studio.paths import Project


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = Project(tmp_path / "project")
    built(recordings(tmp_path / "in", 3, seconds=24.0), project)
    return project.dataset


def test_joined_clips_are_neighbours_of_the_training_list_with_their_pause(folder: Path) -> None:
    before = load_dataset(folder)
    train = {clip.id: clip for clip in before.kept if clip.split == "train"}
    made = length_mix.add_lengths(folder, share=1.0, max_seconds=12.0).clips
    assert made
    for clip in made:
        inside = [one for one in train.values() if one.recording == clip.recording and _within(one.span, clip.span)]
        inside.sort(key=lambda one: one.span.start)
        assert len(inside) > 1
        assert clip.text == " ".join(one.text for one in inside)
        assert (clip.split, clip.status) == ("train", "kept")
        assert clip.span.seconds <= 12.0
        assert audio.duration(folder / clip.audio) == pytest.approx(clip.span.seconds, abs=0.01)
    assert {clip.id for clip in before.kept} <= {clip.id for clip in load_dataset(folder).kept}
    assert not length_mix.add_lengths(folder, share=1.0, max_seconds=12.0).clips  # there are no others
    editor.undo(folder)
    assert load_dataset(folder).kept == before.kept


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def test_a_short_clip_is_a_phrase_between_pauses(folder: Path) -> None:
    first = next(clip for clip in load_dataset(folder).kept if clip.split == "train")
    both = editor.merge_next(folder, first.id).clips[0]
    editor.set_text(folder, both.id, "ሰላም። እንዴት ነህ?")
    spans = length_mix.phrase_spans(folder, load_dataset(folder).clips[both.id])
    assert [text for text, _ in spans] == ["ሰላም።", "እንዴት ነህ?"]
    assert spans[0][1].end < spans[1][1].start
    editor.set_text(folder, both.id, "ሰላም። እንዴት። ነህ?")  # three phrases, and two stretches of speech
    assert length_mix.phrase_spans(folder, load_dataset(folder).clips[both.id]) == []


def test_values_out_of_range_are_refused(folder: Path) -> None:
    with pytest.raises(EditError) as caught:
        length_mix.add_lengths(folder, share=2.0)
    assert caught.value.problem == "lengths"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ([3.0] * 50 + [11.0], ["0 / 51", "4-6", "6-8", "8-10"]),
        ([1.0] + [3.0] * 99, ["1 / 100", "3.0"]),
        ([1.0, 3.0, 5.0, 7.0, 9.0, 11.0], []),
    ],
)
def test_gaps_are_named(seconds: list[float], words: list[str]) -> None:
    gaps = DatasetLengths(tuple(seconds)).gaps()
    assert [gap.what for gap in gaps] == words


def test_every_clip_is_counted_once() -> None:
    counts = DatasetLengths((0.5, 2.0, 14.9, 28.05), tokens=(10, 402)).counts()
    assert {name: count for name, count in counts["seconds"].items() if count} == {
        "0-2": 1, "2-4": 1, "12-15": 1, "20-28": 1
    }  # fmt: skip
    assert {name: count for name, count in counts["tokens"].items() if count} == {"0-20": 1, "300-402": 1}
