"""The split: whole recordings or speakers, stable, and never empty where that can be helped."""

import dataclasses
from collections.abc import Iterable

import pytest

from tests.dataset.building import clip
from utils.dataset.clip import Clip
from utils.dataset.split import assign


def clips(recordings: int, each: int = 4) -> list[Clip]:
    return [
        clip(number, recording=f"r{one}", speaker=f"s{one % 3}") for one in range(recordings) for number in range(each)
    ]


def settled(found: Iterable[Clip], share: float = 0.05, by: str = "recording") -> list[Clip]:
    found = list(found)
    splits = assign(found, share, by).splits  # type: ignore[arg-type]
    return [dataclasses.replace(one, split=splits.get(one.id, one.split)) for one in found]


def recordings_of(found: Iterable[Clip], split: str) -> set[str]:
    return {one.recording for one in found if one.split == split}


@pytest.mark.parametrize("count", range(2, 30))
@pytest.mark.parametrize("share", [0.01, 0.05, 0.5])
def test_a_recording_is_whole_on_one_side_and_no_side_is_empty(count: int, share: float) -> None:
    found = settled(clips(count), share)
    train, held = recordings_of(found, "train"), recordings_of(found, "eval")
    assert train
    assert held
    assert not train & held
    assert len(train | held) == count


def test_the_share_is_kept_over_many_recordings() -> None:
    assert 0.04 < len(recordings_of(settled(clips(3000, 1)), "eval")) / 3000 < 0.06


def test_a_speaker_is_whole_on_one_side() -> None:
    found = settled(clips(9), by="speaker")
    sides = {side: {one.speaker for one in found if one.split == side} for side in ("train", "eval")}
    assert sides["train"]
    assert sides["eval"]
    assert not sides["train"] & sides["eval"]


def test_what_has_a_split_keeps_it_when_the_dataset_grows() -> None:
    first = settled(clips(3))
    grown = settled(first + [clip(number, recording=f"n{one}") for one in range(40) for number in range(2)], 0.2)
    assert grown[: len(first)] == first
    assert all(one.split for one in grown)


def test_the_order_of_the_recordings_does_not_matter() -> None:
    one = {found.id: found.split for found in settled(clips(20))}
    assert one == {found.id: found.split for found in settled(reversed(clips(20)))}


def test_one_recording_is_split_by_time_and_that_is_said() -> None:
    found = assign(clips(1, 20), 0.1, "recording")
    assert "one recording" in found.note
    assert [found.splits[f"r0-{number}"] for number in range(20)] == ["train"] * 18 + ["eval"] * 2


def test_one_clip_is_for_training() -> None:
    assert assign(clips(1, 1), 0.5, "recording").splits == {"r0-0": "train"}


def test_split_by_time_takes_the_end_of_each_recording() -> None:
    found = settled(clips(3, 10), 0.1, "time")
    assert [one.id for one in found if one.split == "eval"] == ["r0-9", "r1-9", "r2-9"]


def test_one_speaker_is_split_by_recording_and_that_is_said() -> None:
    choice = assign([clip(number, recording=f"r{number}") for number in range(4)], 0.05, "speaker")
    assert "one speaker" in choice.note
    assert set(choice.splits.values()) == {"train", "eval"}


def test_what_is_set_aside_has_no_split() -> None:
    found = [clip(0), clip(1).excluded("noisy"), clip(0, recording="r1")]
    assert set(assign(found, 0.05, "recording").splits) == {"r0-0", "r1-0"}


def test_a_clip_that_comes_back_joins_its_neighbours() -> None:
    found = settled([*clips(1, 20)], 0.1)
    back = clip(30, recording="r0")
    assert assign([*found, back], 0.1, "recording").splits == {back.id: "eval"}


def test_a_speaker_of_whom_a_part_was_held_back_goes_on_with_the_training() -> None:
    first = settled([clip(number, speaker="abebe") for number in range(10)], 0.2)
    more = [clip(0, recording="r1", speaker="abebe"), clip(0, recording="r2", speaker="almaz")]
    grown = settled([*first, *more], 0.01, "speaker")
    assert [one.split for one in grown[-2:]] == ["train", "train"]
