"""The choice of optimizer, what decays, and the curve of the learning rate."""

import math
import sys
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from tests.training.small_gpt import small_gpt
from tests.training.speedups.lessons import learn
from utils.config import TrainConfig
from utils.core.errors import SpeedupError
from utils.training.optimizers import make_optimizer, make_schedule, parameter_groups, scale_rates

CPU = torch.device("cpu")
GPU = torch.device("cuda")
PEAK = 2e-4


def config(**changes: Any) -> TrainConfig:
    return TrainConfig(**{"learning_rate": 1e-3, "grad_acumm": 1, **changes})


def test_only_matrices_decay() -> None:
    gpt = small_gpt()
    gpt.gpt.wte = gpt.mel_embedding  # a second name, which gradient checkpointing asks for
    gpt.mel_head.requires_grad_(False)
    groups = parameter_groups(gpt, 0.3)
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0]
    held = [id(weight) for group in groups for weight in group["params"]]
    assert sorted(held) == sorted(id(weight) for weight in gpt.parameters() if weight.requires_grad)
    decayed = {id(weight) for weight in groups[0]["params"]}
    assert {name for name, weight in gpt.named_parameters() if id(weight) in decayed} == {
        name
        for name, weight in gpt.named_parameters()
        if name.endswith(".weight") and weight.ndim >= 2 and "embedding" not in name and "mel_head" not in name
    }
    with pytest.raises(SpeedupError, match="Freeze less"):
        parameter_groups(gpt.requires_grad_(False), 0.3)


def test_a_saved_state_does_not_bring_the_kernel_of_its_machine() -> None:
    gpt = small_gpt()
    saved, _ = make_optimizer(gpt, config(), CPU)
    learn(gpt, saved, 1)
    optimizer, _ = make_optimizer(gpt, config(enable_fused_optimizer=False), CPU)
    optimizer.load_state_dict(saved.state_dict())
    assert [group["fused"] for group in optimizer.param_groups] == [False, False]
    weight = gpt.text_head.weight
    assert torch.equal(optimizer.state[weight]["exp_avg"], saved.state[weight]["exp_avg"])


@pytest.mark.parametrize(
    ("device", "words"), [("cpu", "needs a CUDA GPU, and this is cpu"), ("cuda", "pip install bitsandbytes")]
)
def test_an_optimizer_that_cannot_run_is_refused(device: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(SpeedupError, match=words):
        make_optimizer(small_gpt(), config(optimizer="adamw_8bit"), torch.device(device))


def schedule(kind: Any, total: int, warmup: int, share: float = 1.0) -> LRScheduler:
    return make_schedule(torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=PEAK), kind, total, warmup, share)


def rates(schedule: LRScheduler, updates: int) -> list[float]:
    """Return the rate of each of the next updates."""
    result = []
    for _ in range(updates):
        result.append(float(schedule.optimizer.param_groups[0]["lr"]))
        schedule.optimizer.step()
        schedule.step()
    return result


def falling(kind: str, done: float) -> float:
    return {"cosine": 0.5 * (1 + math.cos(math.pi * done)), "linear": 1 - done, "constant": 1.0}[kind]


@pytest.mark.parametrize("kind", ["cosine", "linear", "constant"])
@pytest.mark.parametrize(
    ("total", "steps", "share", "warmup"),
    [(40, 4, 1, 4), (7, 7, 1, 7), (1, 0, 1, 0), (200, 10, 0.1, 10), (50, 100, 0.1, 5), (5, 9, 0.1, 0)],
)
def test_the_curve_has_its_closed_form(kind: Any, total: int, steps: int, share: float, warmup: int) -> None:
    rise = [PEAK * (update + 1) / warmup for update in range(warmup)][: max(0, warmup - 1)]
    fall = [PEAK * falling(kind, (update + 1 - warmup) / (total + 1 - warmup)) for update in range(len(rise), total)]
    curve = rates(schedule(kind, total, steps, share), total)
    assert curve == pytest.approx(rise + fall, rel=1e-6)
    assert min(curve) > 0, "every update learns"


def test_a_lowered_curve_is_continued() -> None:
    whole = rates(schedule("cosine", 30, 4), 30)
    lowered = schedule("cosine", 30, 4)
    assert rates(lowered, 10) == whole[:10]
    scale_rates(lowered, 0.5)
    assert rates(lowered, 5) == pytest.approx([rate / 2 for rate in whole[10:15]])
    resumed = schedule("cosine", 30, 4)
    resumed.load_state_dict(lowered.state_dict())
    resumed.optimizer.load_state_dict(lowered.optimizer.state_dict())
    assert rates(resumed, 15) == pytest.approx([rate / 2 for rate in whole[15:]])


def test_the_moments_decay_as_in_coquis_recipe() -> None:
    optimizer, _ = make_optimizer(small_gpt(), config(), CPU)
    assert {(group["betas"], group["eps"]) for group in optimizer.param_groups} == {((0.9, 0.96), 1e-8)}
