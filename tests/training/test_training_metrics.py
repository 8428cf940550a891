"""Throughput and remaining time, by a clock that the test turns."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from utils.training.metrics import Throughput


def test_evaluations_slow_no_rate_but_are_part_of_the_remaining_time() -> None:
    now = 1000.0
    throughput = Throughput(100, clock=lambda: now)
    update: Any = SimpleNamespace(number=0, clips=4, batches=[SimpleNamespace(positions=75, padded=100)])
    rates = {"samples_per_second": 2.0, "tokens_per_second": 37.5, "padding": 0.25, "data_share": 0.25}
    for number in range(11):
        if number == 10:
            now += 30
            throughput.pause(30, "evaluation", every=10)
        now += 0.5  # waiting for data
        throughput.data_ready()
        now += 1.5
        update.number = number
        metrics: dict[str, Any] = throughput.metrics(update)
        assert metrics.pop("memory_gb") > 0.01
        left = None if number < 3 else 2.0 * (99 - number) + (30 * 8 if number == 10 else 0)  # unknown at first
        assert metrics == rates | {"seconds_left": left}


def test_a_gpu_that_windows_lets_overflow_is_noticed_once_by_its_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    now, free, little = 1000.0, 4 << 30, 1 << 20
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (free, 8 << 30))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _device: 0)
    throughput = Throughput(100, device="cuda", clock=lambda: now)
    found: list[Any] = []
    update: Any = SimpleNamespace(number=0, clips=4, batches=[SimpleNamespace(positions=75, padded=100)])
    for seconds, left in [(1.0, free)] * 8 + [(5.0, free), (1.0, little), (5.0, little), (5.0, little)]:
        now, free = now + seconds, left
        throughput.metrics(update)
        found.append(throughput.full_memory())
    assert [fact.slower for fact in found if fact] == [5.0]
    assert found[10]
