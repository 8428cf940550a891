"""The plan of a run: true epochs, the same for every cut, little padding, and every number known beforehand."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.training.made_clips import epoch_of, made_lengths
from tests.training.test_references import plan_of
from utils.config import TrainConfig
from utils.training.batches import BatchSpec, PlannedUpdate, UpdatePlan, masked_codes, split_batches
from utils.training.clips import ClipLengths, ClipLimits, usable
from utils.training.errors import SettingRefusedError
from utils.training.facts import Exclusion

LENGTHS = made_lengths(1003)
BY_CLIPS = UpdatePlan(LENGTHS, 16, seed=3)
BY_POSITIONS = UpdatePlan(LENGTHS, 16, positions=4000, seed=3)
BOTH = pytest.mark.parametrize("plan", [BY_CLIPS, BY_POSITIONS], ids=["clips", "positions"])


def same(one: PlannedUpdate, other: PlannedUpdate) -> bool:
    pairs = zip(vars(one).values(), vars(other).values(), strict=True)
    return all(np.array_equal(*pair) for pair in pairs)


@BOTH
def test_each_epoch_has_every_clip_once_in_an_order_that_a_seed_repeats(plan: UpdatePlan) -> None:
    epochs = [epoch_of(plan, epoch) for epoch in range(3)]
    for updates in epochs:
        assert sorted(np.concatenate([update.clips for update in updates])) == list(range(1003))
    again, other = (epoch_of(UpdatePlan(LENGTHS, 16, positions=plan.positions, seed=seed), 2) for seed in (3, 4))
    assert all(map(same, epochs[2], again))
    assert not any(map(same, epochs[2], other))
    assert not any(map(same, epochs[2], epochs[1]))


@pytest.mark.parametrize(
    ("start", "frames", "codes", "masked"),
    [
        (7, 86, 100, (1, 23)),
        (100, 200, 100, (25, 75)),  # one half
        (100, 204, 100, (0, 0)),  # more than one half: all of it counts
        (272, 130, 100, (68, 100)),  # the last frame stands at the end; what follows the codes is always learnt
    ],
)
def test_the_codes_under_the_reference_are_left_out(
    start: int, frames: int, codes: int, masked: tuple[int, int]
) -> None:
    ranges = masked_codes(*(np.array([value]) for value in (start, frames, codes)))
    assert tuple(ranges[0]) == masked


def test_nothing_is_left_out_where_the_settings_say_so() -> None:
    plan = UpdatePlan.from_config(TrainConfig(batch_size=8, grad_acumm=2, mask_reference=False), LENGTHS)
    assert not any(update.masked.any() for update in epoch_of(plan, 0))
    assert any(update.masked.any() for update in epoch_of(BY_CLIPS, 0))
    assert sum(update.audio_count for update in epoch_of(plan, 0)) == (LENGTHS.codes + 4).sum()
    assert sum(update.text_count for update in epoch_of(plan, 0)) == (LENGTHS.ids + 1).sum()


@pytest.mark.parametrize("plan", [BY_CLIPS, BY_POSITIONS, plan_of("other_clip")], ids=["clips", "positions", "pairs"])
@pytest.mark.parametrize("spec", [BatchSpec(3), BatchSpec(5, world=3), BatchSpec(4, token_budget=2000)], ids=str)
def test_however_an_update_is_split_its_clips_and_crops_are_the_same(plan: UpdatePlan, spec: BatchSpec) -> None:
    for update in epoch_of(plan, 0)[:20]:
        ranks = [split_batches(update, replace(spec, rank=rank)) for rank in range(spec.world)]
        assert len({len(groups) for groups in ranks}) == 1
        groups = list(itertools.chain(*ranks))
        columns = [
            [part.clips, part.references, part.starts, *part.masked.T, part.positions] for part in (update, *groups)
        ]
        whole, *parts = [np.stack(part).T.tolist() for part in columns]
        assert sorted(itertools.chain(*parts)) == sorted(whole)
        assert {group.frames for group in groups} == {update.frames}
        for group in groups:
            assert len(group.clips) <= spec.batch_size or spec.token_budget
            assert len(group.clips) * group.longest <= (spec.token_budget or 10**9)


def test_a_clip_that_exceeds_the_token_budget_is_refused() -> None:
    with pytest.raises(SettingRefusedError, match=r"batch_tokens: the longest clip takes \d+ positions"):
        UpdatePlan.from_config(TrainConfig(batch_tokens=100), LENGTHS)


def test_little_is_padding() -> None:
    """Measured for 3000 clips in batches of 8 or of 3000 positions: 1.7 %; with random batches, 34 %."""
    lengths = made_lengths(3000)
    for budget, plan in {0: UpdatePlan(lengths, 16), 3000: UpdatePlan(lengths, 0, positions=6000)}.items():
        spec = BatchSpec(8, token_budget=budget)
        groups = [group for update in epoch_of(plan, 0) for group in split_batches(update, spec)]
        padded = sum(group.longest * len(group.clips) for group in groups)
        assert 1 - sum(group.positions.sum() for group in groups) / padded < 0.03


@pytest.mark.parametrize(
    ("seconds", "ids", "limits", "reason"),
    [
        (0.5, 1, ClipLimits(), None),
        (15.0, 402, ClipLimits(), None),
        (28.09, 402, ClipLimits(seconds=28.09), None),  # 605 codes
        (28.1, 9, ClipLimits(seconds=99), ("many_codes", 605)),
        (9.0, 403, ClipLimits(text_tokens=999), ("model_text", 402)),
        (0.49, 9, ClipLimits(), ("too_short", 0.5)),
        (15.1, 9, ClipLimits(), ("too_long", 15)),
        (9.0, 201, ClipLimits(text_tokens=200), ("long_text", 200)),
        (9.0, 0, ClipLimits(), ("no_text", 1)),
        (9.0, 9, ClipLimits(codes=193), ("many_codes", 193)),
        (9.0, 60, ClipLimits(model_text=50), ("model_text", 50)),
        (9.0, 60, ClipLimits(model_codes=99), ("many_codes", 99)),
    ],
)
def test_a_clip_outside_the_limits_is_excluded_with_a_reason(
    seconds: float, ids: int, limits: ClipLimits, reason: tuple[Exclusion, float] | None
) -> None:
    samples, codes = round(seconds * 22_050), -(-round(seconds * 22_050) // 1024)
    columns = [samples, 99_000], [codes, 97], [samples // 256 + 1, 387], [ids, 5]
    usable_clips, reasons = usable(ClipLengths(*(np.array(column) for column in columns)), limits)
    assert usable_clips.tolist() == ([1] if reason else [0, 1])
    assert reasons == ({0: reason} if reason else {})


def test_references_last_3_to_6_seconds_or_as_long_as_the_shortest_clip() -> None:
    seen = set()
    for update in epoch_of(BY_CLIPS, 0):
        shortest = min(LENGTHS.select(update.clips).frames)
        assert update.frames * 256 / 22_050 + 0.02 >= 3 or update.frames + 43 > shortest
        seen.add(update.frames / 43)
    assert max(seen) == 12
