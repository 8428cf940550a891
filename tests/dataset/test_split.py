"""The split: whole recordings or speakers, stable, and never empty where that can be helped."""

import dataclasses
import itertools
from collections.abc import Iterable

import pytest

from tests.dataset.building import clip
from utils.dataset.clip import Clip
from utils.dataset.facts import HeldOut
from utils.dataset.split import By, assign


def clips(recordings: int, each: int = 4) -> list[Clip]:
    numbers = itertools.product(range(recordings), range(each))
    return [clip(number, recording=f"r{name}", speaker=f"s{name % 3}") for name, number in numbers]


def split(given: Iterable[Clip], share: float = 0.05, by: By = "recording") -> list[Clip]:
    given = list(given)
    splits = assign(given, share, by).splits
    return [dataclasses.replace(clip, split=splits.get(clip.id, clip.split)) for clip in given]


@pytest.mark.parametrize("count", [2, 3, 13])
@pytest.mark.parametrize("share", [0.01, 0.5])
@pytest.mark.parametrize("by", ["recording", "speaker"])
def test_a_split_keeps_groups_whole(count: int, share: float, by: By) -> None:
    given = clips(count)
    sides = {(getattr(clip, by), clip.split) for clip in split(given, share, by)}
    assert len(sides) == len({getattr(clip, by) for clip in given})
    assert {side for _, side in sides} == {"train", "eval"}


def test_the_share_holds_over_many_recordings_in_any_order() -> None:
    sides = {clip.id: clip.split for clip in split(clips(3000, 1))}
    assert 0.04 < list(sides.values()).count("eval") / 3000 < 0.06
    assert sides == {clip.id: clip.split for clip in split(reversed(clips(3000, 1)))}


def test_what_has_a_split_keeps_it_when_the_dataset_grows() -> None:
    first = split(clips(3))
    grown = split(first + [clip(number, recording=f"n{name}") for name in range(40) for number in range(2)], 0.2)
    assert grown[: len(first)] == first
    assert all(each.split for each in grown)
    done = split([*clips(1, 20), clip(30).excluded("noisy")], 0.1)
    assert done[-1].split == ""
    assert assign([*done[:-1], clip(30)], 0.1, "recording").splits == {"r0-30": "eval"}  # joins its neighbours
    first = split([clip(number, speaker="abebe") for number in range(10)], 0.2)
    more = [clip(0, recording="r1", speaker="abebe"), clip(0, recording="r2", speaker="almaz")]
    assert [each.split for each in split([*first, *more], 0.01, "speaker")[-2:]] == ["train", "train"]


def test_what_cannot_be_split_as_asked_is_split_otherwise() -> None:
    assert [each.id for each in split(clips(3, 10), 0.1, "time") if each.split == "eval"] == ["r0-9", "r1-9", "r2-9"]
    choice = assign(clips(1, 20), 0.1, "recording")
    assert choice.note == HeldOut("one_recording")
    assert [choice.splits[f"r0-{number}"] for number in range(20)] == ["train"] * 18 + ["eval"] * 2
    assert assign(clips(1, 1), 0.5, "recording").splits == {"r0-0": "train"}
    choice = assign([clip(number, recording=f"r{number}") for number in range(4)], 0.05, "speaker")
    assert choice.note == HeldOut("one_speaker")
    assert set(choice.splits.values()) == {"train", "eval"}
