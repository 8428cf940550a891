"""A training that was killed ends with the same numbers as one that was not."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tools.tiny_voice.stages import Progress, format_duration
from tools.tiny_voice.training_loop import CURVE, Figures, TrainingLoop, load_trained

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
    assert all(torch.equal(one, other) for one, other in zip(whole.parameters(), again.parameters(), strict=True))
    assert found["loss"] == figures["loss"]


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    practised(tmp_path)
    module, _ = practised(tmp_path, killed_at=0)
    assert not module.training


def test_the_curve_lies_beside_the_state(tmp_path: Path) -> None:
    _, figures = practised(tmp_path)
    curve = json.loads((tmp_path / CURVE).read_text(encoding="utf-8"))
    assert [point["step"] for point in curve] == list(range(1, STEPS + 1))
    assert set(curve[-1]) == {"step", "loss", "largest", "judged"}
    assert figures["judged"] == curve[-1]["judged"]


def test_what_was_learnt_is_found_again(tmp_path: Path) -> None:
    module, _ = practised(tmp_path)
    found = load_trained(nn.Linear(3, 3), tmp_path)
    assert torch.equal(found.get_parameter("weight"), module.get_parameter("weight"))
    assert not found.get_parameter("weight").requires_grad


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.4, "59 s"), (61, "1 min 01 s"), (3_725, "1 h 02 min"), (90_000, "25 h 00 min")],
)
def test_times_are_written_for_people(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words
