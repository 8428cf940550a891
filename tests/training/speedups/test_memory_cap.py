"""Tests of the limit of a GPU's memory; no GPU is needed."""

import sys
from types import SimpleNamespace

import pytest
import torch

from utils.training.speedups.memory_cap import allocator_environment, cap_memory


@pytest.mark.parametrize(
    ("fraction", "changed", "words"), [(0.5, 1, "12.0 of 24.0 GiB"), (1.0, 0, "no limit: 24.0 GiB")]
)
def test_torch_is_told_the_share(fraction: float, changed: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[float, torch.device]] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *values: told.append(values))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=24 * 2**30))
    change = cap_memory(fraction, "cuda:1")
    assert told == [(fraction, torch.device("cuda:1"))]
    assert (change.changed, words in change.detail) == (changed, True)


def test_a_cpu_has_no_such_limit() -> None:
    change = cap_memory(0.5, "cpu")
    assert (change.changed, change.detail) == (0, "not supported by this device: cpu")


@pytest.mark.parametrize(("system", "settings"), [("linux", ["PYTORCH_ALLOC_CONF"]), ("win32", [])])
def test_segments_grow_where_they_can(system: str, settings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    assert list(allocator_environment()) == settings
