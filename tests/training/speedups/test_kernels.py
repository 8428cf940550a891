"""Tests of which attention kernels may run."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from utils.training.speedups import SpeedupError
from utils.training.speedups.kernels import EVERY, allowed, choose, every_kernel, selected_kernel


@pytest.fixture(autouse=True)
def _all_allowed_before_and_afterwards() -> Iterator[None]:
    choose("auto", "cpu")
    yield
    choose("auto", "cpu")


@pytest.mark.parametrize(("kernel", "moved"), [("flash", 3), ("math", 3), ("auto", 0)])
def test_the_chosen_kernel_alone_may_run(kernel: Any, moved: int) -> None:
    change = choose(kernel, "cpu")
    assert (change.name, change.changed) == ("attention_kernel", moved)
    assert allowed() == (EVERY if kernel == "auto" else {kernel})
    assert selected_kernel("cpu", torch.float32, 64, causal=True) == ("flash" if kernel == "auto" else kernel)


@pytest.mark.parametrize(("kernel", "dropout"), [("efficient", 0.0), ("flash", 0.1)])
def test_a_kernel_that_cannot_run_is_refused_and_nothing_changes(kernel: Any, dropout: float) -> None:
    with pytest.raises(SpeedupError, match=rf"{kernel} cannot run on cpu .* Choose auto"):
        choose(kernel, "cpu", dropout=dropout)
    assert allowed() == EVERY


def test_all_may_run_for_a_while() -> None:
    choose("math", "cpu")
    with every_kernel():
        assert allowed() == EVERY
    assert allowed() == {"math"}
