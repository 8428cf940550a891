"""A training that was killed ends with the same numbers as one that was not."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tools.tiny_voice.stages import Progress
from tools.tiny_voice.training_loop import Figures, TrainingLoop, load_trained

STEPS = 12


class KilledError(Exception):
    """Stands for a kill."""


def train(folder: Path, *, killed_at: int = -1, messages: list[str] | None = None) -> tuple[nn.Module, Figures]:
    """Learn to double numbers, beside a second module that learns from the first and joins later."""
    folder.mkdir(exist_ok=True)
    torch.manual_seed(0)
    doubling, negating = nn.Linear(3, 3), nn.Linear(3, 3)

    def step(number: int, random: np.random.Generator) -> Iterator[tuple[str, Tensor]]:
        if number == killed_at:
            raise KilledError
        numbers = torch.from_numpy(random.standard_normal((4, 3)).astype(np.float32))
        doubled = doubling(numbers)
        if number >= 2:
            yield "negating", (negating(doubled.detach()) + numbers).square().mean()
        yield "doubling", (doubled - 2 * numbers).square().mean()

    progress = Progress("doubling", (messages if messages is not None else []).append)
    loop = TrainingLoop(folder, {"doubling": doubling, "negating": negating}, STEPS, 1e-2, 5, progress)
    return nn.ModuleList([doubling, negating]), loop.run(step, lambda: {"weights": float(doubling.weight.sum())})


def test_an_interrupted_training_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole, figures = train(tmp_path / "whole")
    with pytest.raises(KilledError):
        train(tmp_path / "killed", killed_at=7)
    messages: list[str] = []
    again, found = train(tmp_path / "killed", messages=messages)
    assert any("continues after step 7" in message for message in messages)
    loaded = nn.ModuleList(
        load_trained(nn.Linear(3, 3), tmp_path / "killed", name) for name in ("doubling", "negating")
    )
    for modules in (again, loaded):
        assert all(torch.equal(one, other) for one, other in zip(whole.parameters(), modules.parameters(), strict=True))
    assert found["doubling"] == figures["doubling"]
    assert not any(weight.requires_grad for weight in loaded.parameters())
