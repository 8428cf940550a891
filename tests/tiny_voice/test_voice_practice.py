"""A training that was killed ends with the same numbers as one that was not."""

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


def practised(folder: Path, *, killed_at: int = -1, told: list[str] | None = None) -> tuple[nn.Module, Figures]:
    """Learn to double numbers."""
    folder.mkdir(exist_ok=True)
    torch.manual_seed(0)
    module = nn.Linear(3, 3)

    def step(number: int, random: np.random.Generator) -> tuple[Tensor, Figures]:
        if number == killed_at:
            raise KilledError
        numbers = torch.from_numpy(random.standard_normal((4, 3)).astype(np.float32))
        return (module(numbers) - 2 * numbers).square().mean(), {"largest": float(numbers.max())}

    progress = Progress("doubling", (told if told is not None else []).append)
    loop = TrainingLoop(folder, module, STEPS, 1e-2, 5, progress)
    return module, loop.run(step, lambda: {"judged": float(module.weight.sum())})


def test_it_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole, figures = practised(tmp_path / "whole")
    with pytest.raises(KilledError):
        practised(tmp_path / "killed", killed_at=7)
    told: list[str] = []
    again, found = practised(tmp_path / "killed", told=told)
    assert any("goes on after step 7" in sentence for sentence in told)
    loaded = load_trained(nn.Linear(3, 3), tmp_path / "killed")
    for module in (again, loaded):
        assert all(torch.equal(one, other) for one, other in zip(whole.parameters(), module.parameters(), strict=True))
    assert found["loss"] == figures["loss"]
    assert not loaded.get_parameter("weight").requires_grad
