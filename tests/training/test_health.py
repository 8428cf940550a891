"""What watches a run, on scripted losses."""

import pytest

from utils.training.facts import ScaleLowered, UpdateSkipped
from utils.training.health import NonFiniteGuard, OverfittingGuard, StepStatus

GO, SKIP, BACK, UP = "applied", "skipped", "roll back", "failed"
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
    assert saved.keys() == {"streak", "rolled_back"}


@pytest.mark.parametrize(
    ("loss", "scale", "verdict"),
    [(1.0, 1024.0, SKIP), (1.0, 1.0, UP), (1.0, None, UP), (NAN, 1024.0, UP)],
)
def test_an_overflow_of_fp16_counts_only_once_its_scale_is_used_up(
    loss: float, scale: float | None, verdict: StepStatus
) -> None:
    guard = NonFiniteGuard(patience=1, rollbacks=0)
    assert guard.check(loss, INF, scale=scale) == verdict
    assert isinstance(guard.skipped, ScaleLowered if verdict == SKIP else UpdateSkipped)


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
