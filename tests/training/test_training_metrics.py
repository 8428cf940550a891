"""Throughput and remaining time, by a clock that the test turns."""

from types import SimpleNamespace
from typing import Any

import pytest

from utils.cli.runs import progress_bar
from utils.training.metrics import Throughput


class Clock:
    """Shows the time that was set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def run(throughput: Throughput, clock: Clock, first: int, last: int) -> dict[str, Any]:
    """Perform updates of 4 clips, each after half a second of waiting and a second and a half of work."""
    metrics: dict[str, Any] = {}
    for number in range(first, last):
        clock.now += 0.5
        throughput.data_ready()
        clock.now += 1.5
        update: Any = SimpleNamespace(number=number, clips=4, batches=[SimpleNamespace(positions=75, padded=100)])
        metrics = throughput.metrics(update)
    return metrics


def test_evaluations_slow_no_rate_but_are_part_of_the_remaining_time() -> None:
    clock = Clock()
    throughput = Throughput(100, clock=clock)
    rates = {"samples_per_second": 2.0, "tokens_per_second": 37.5, "padding": 0.25, "data_share": 0.25}
    metrics = run(throughput, clock, 0, 10)
    assert metrics.pop("memory_gb") > 0.01
    assert metrics == rates | {"seconds_left": 180.0}
    clock.now += 30
    throughput.pause(30, "evaluation", every=10)
    metrics = run(throughput, clock, 10, 11)
    del metrics["memory_gb"]
    assert metrics == rates | {"seconds_left": 2.0 * 89 + 30 * 8}


@pytest.mark.parametrize(("done", "bar"), [(1, " 10%  1 of 10"), (9, " 90%  9 of 10, about 0:00:02 left")])
def test_the_progress_bar_shows_the_remaining_time(done: int, bar: str) -> None:
    clock = Clock()
    left = run(Throughput(10, clock=clock), clock, 0, done)["seconds_left"]
    assert progress_bar({"kind": "progress", "step": done, "total": 10, "seconds_left": left}).endswith(bar)
