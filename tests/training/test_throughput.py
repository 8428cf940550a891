"""Rates and the time that is left, by a clock that the test turns."""

from types import SimpleNamespace
from typing import Any

import pytest

from utils.cli.runs import progress_bar
from utils.training.throughput import Throughput


class Clock:
    """Shows the time that was set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def update(number: int, clips: int = 4, positions: int = 75, padded: int = 100) -> Any:
    return SimpleNamespace(number=number, clips=clips, batches=[SimpleNamespace(positions=positions, padded=padded)])


def run(
    meter: Throughput, clock: Clock, first: int, last: int, *, wait: float = 0.5, work: float = 1.5
) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for number in range(first, last):
        clock.now += wait
        meter.data_ready()
        clock.now += work
        told = meter.metrics(update(number))
    return told


def test_rates_come_from_the_clock() -> None:
    clock = Clock()
    told = run(Throughput(100, clock=clock), clock, 0, 10)
    memory = told.pop("memory_gb")
    assert memory > 0.01
    assert told == {
        "samples_per_second": 2.0,
        "tokens_per_second": 37.5,
        "padding": 0.25,
        "data_share": 0.25,
        "seconds_left": 180.0,
    }


def test_the_time_left_is_right_after_a_resume() -> None:
    clock = Clock()
    meter = Throughput(1000, clock=clock)
    meter.add_earlier(5000.0)
    told = run(meter, clock, 900, 910)
    assert told["seconds_left"] == 2.0 * 90
    assert meter.seconds == 5000.0 + 20.0
    meter.add_earlier(7.0)
    assert meter.seconds == 5000.0 + 20.0 + 7.0


def test_evaluations_slow_no_rate_but_are_counted_in_the_time_left() -> None:
    clock = Clock()
    meter = Throughput(100, clock=clock)
    run(meter, clock, 0, 10)
    clock.now += 30
    meter.pause(30, "evaluation", every=10)
    told = run(meter, clock, 10, 11)
    assert told["samples_per_second"] == 2.0
    assert told["data_share"] == 0.25
    assert told["seconds_left"] == 2.0 * 89 + 30 * 8


@pytest.mark.parametrize(("done", "bar"), [(1, " 10%  1 of 10"), (9, " 90%  9 of 10, about 0:00:02 left")])
def test_the_bar_takes_what_the_meter_says(done: int, bar: str) -> None:
    clock = Clock()
    left = run(Throughput(10, clock=clock), clock, 0, done)["seconds_left"]
    assert progress_bar({"kind": "progress", "step": done, "total": 10, "seconds_left": left}).endswith(bar)
