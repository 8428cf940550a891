"""What watches a run, on scripted losses and shortages of memory."""

import numpy as np
import pytest

from utils.training.guards import EarlyStopping, MicroBatches, NonFiniteGuard, OverfittingGuard, StepStatus
from utils.training.memory import NotEnoughMemoryError
from utils.training.packing import Example, PackedBatch, SpecialTokens, pack

GO, SKIP, BACK, UP = StepStatus.APPLIED, StepStatus.SKIPPED, StepStatus.ROLL_BACK, StepStatus.FAILED
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("losses", "verdicts"),
    [
        ([1.0, 2.0], [GO, GO]),
        ([NAN, 1.0, INF, 1.0, -INF], [SKIP, GO, SKIP, GO, SKIP]),
        ([NAN, NAN, 1.0, NAN, NAN, NAN], [SKIP, SKIP, GO, SKIP, SKIP, BACK]),
        ([NAN] * 12, [SKIP, SKIP, BACK] * 3 + [SKIP, SKIP, UP]),
    ],
)
def test_bad_updates_are_left_out_then_the_run_goes_back_then_stops(
    losses: list[float], verdicts: list[StepStatus]
) -> None:
    guard, results = NonFiniteGuard(), []
    for loss in losses:
        results.append(guard.check(loss, 1.0))
        saved, guard = guard.state_dict(), NonFiniteGuard()
        guard.load_state_dict(saved)  # a resumed run goes on counting
    assert results == verdicts
    assert saved.keys() == {"streak", "rolled_back", "skipped"}


@pytest.mark.parametrize(
    ("loss", "scale", "verdict"),
    [(1.0, 1024.0, SKIP), (1.0, 1.0, UP), (1.0, None, UP), (NAN, 1024.0, UP)],
)
def test_an_overflow_of_fp16_counts_only_once_its_scale_is_used_up(
    loss: float, scale: float | None, verdict: StepStatus
) -> None:
    guard = NonFiniteGuard(patience=1, rollbacks=0)
    assert guard.check(loss, INF, scale=scale) is verdict
    assert guard.message


@pytest.mark.parametrize(
    ("patience", "losses", "better", "over"),
    [
        (2, [3.0, 2.0, 2.0, 2.5], [True, True, False, False], True),
        (2, [3.0, 3.5, 2.0, 2.5], [True, False, True, False], False),
        (2, [NAN, 3.0, NAN, INF], [False, True, False, False], True),
        (0, [3.0, 4.0, 5.0, 6.0], [True, False, False, False], False),
    ],
)
def test_the_run_ends_early_after_so_many_evaluations_without_gain(
    patience: int, losses: list[float], better: list[bool], over: bool
) -> None:
    stopping = EarlyStopping(patience)
    assert [stopping.is_better(loss) for loss in losses] == better
    later = EarlyStopping(patience)
    later.load_state_dict(stopping.state_dict())
    assert stopping.should_stop is later.should_stop is over


@pytest.mark.parametrize(
    ("train", "held_back", "warned_at"),
    [
        ([5, 4, 3, 2, 1, 0], [3, 3.1, 3.2, 3.3, 3.4, 3.5], [3]),  # once an episode
        ([5, 4, 3, 2], [3, 3.1, 3.1, 3.3], []),
        ([2, 3, 4, 5], [3, 3.1, 3.2, 3.3], []),  # both rise: something else is wrong
        ([9, 8, 7, 6, 5, 4, 3, 2], [3, 3.1, 3.2, 3.3, 3.0, 3.1, 3.2, 3.3], [3, 7]),
    ],
)
def test_overfitting_is_reported_once_an_episode(
    train: list[float], held_back: list[float], warned_at: list[int]
) -> None:
    guard = OverfittingGuard(evaluations=3)
    warnings = []
    for losses in zip(train, held_back, strict=True):
        warnings.append(guard.check(*losses))
        saved, guard = guard.state_dict(), OverfittingGuard(evaluations=3)
        guard.load_state_dict(saved)
    assert [number for number, warning in enumerate(warnings) if warning] == warned_at


def batch(clips: int) -> PackedBatch:
    clip = Example(np.array([7]), np.array([500], np.int16), np.ones((4, 80), np.float16))
    return pack([clip] * clips, SpecialTokens(start_text=99, stop_text=0, start_audio=1024, stop_audio=1025))


def split_sizes(micro: MicroBatches, *sizes: int) -> list[int]:
    return [piece.clips for piece in micro.split([batch(size) for size in sizes])]


def test_batches_are_halved_and_a_resumed_run_halves_them_too() -> None:
    micro, resumed = MicroBatches(5), MicroBatches(5)
    assert split_sizes(micro, 5, 2, 0) == [5, 2, 0]
    assert "with 3, in 2 times" in micro.on_oom()
    assert split_sizes(micro, 5, 2, 0) == [3, 2, 1, 1, 0]
    micro.on_oom()
    resumed.load_state_dict(micro.state_dict())
    assert split_sizes(resumed, 5, 2, 0) == [2, 1, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(("size", "halvings"), [(64, 3), (4, 2), (1, 0)])
def test_after_three_halvings_or_at_one_clip_the_run_stops_with_a_plan(size: int, halvings: int) -> None:
    micro = MicroBatches(size)
    for _ in range(halvings):
        split_sizes(micro, size)
        micro.on_oom()
    split_sizes(micro, size)
    with pytest.raises(NotEnoughMemoryError, match="memory-plan"):
        micro.on_oom()
