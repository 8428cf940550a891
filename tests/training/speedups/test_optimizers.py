"""Tests of the choice of optimiser."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.training.small_gpt import small_gpt
from tests.training.speedups.lessons import farthest, learn, loss
from utils.config import TrainConfig
from utils.training.speedups import SpeedupError
from utils.training.speedups.adamw import OffloadedAdamW, StepInBackward
from utils.training.speedups.optimizers import make_optimizer, parameter_groups

CPU = torch.device("cpu")
GPU = torch.device("cuda")


def config(**changes: Any) -> TrainConfig:
    return TrainConfig(**{"learning_rate": 1e-3, "grad_acumm": 1, **changes})


@pytest.mark.parametrize(
    ("name", "decays"),
    [
        ("conditioning_encoder.init.weight", True),
        ("conditioning_encoder.attn.0.norm.weight", False),
        ("conditioning_encoder.attn.0.qkv.weight", True),
        ("conditioning_perceiver.latents", False),
        ("conditioning_perceiver.layers.0.0.to_q.weight", True),
        ("conditioning_perceiver.norm.gamma", False),
        ("text_embedding.weight", False),
        ("mel_embedding.weight", False),
        ("text_pos_embedding.emb.weight", False),
        ("gpt.h.0.ln_1.weight", False),
        ("gpt.h.0.attn.c_attn.weight", True),
        ("gpt.h.0.attn.c_attn.bias", False),
        ("gpt.h.1.mlp.c_proj.weight", True),
        ("text_head.weight", True),
        ("text_head.bias", False),
    ],
)
def test_only_matrices_decay(name: str, decays: bool) -> None:
    gpt = small_gpt()
    decayed, others = ({id(weight) for weight in group["params"]} for group in parameter_groups(gpt, 0.3))
    assert (id(gpt.get_parameter(name)) in decayed) == decays
    assert (id(gpt.get_parameter(name)) in others) != decays


def test_every_trained_weight_is_in_one_group_and_no_frozen_one() -> None:
    gpt = small_gpt()
    gpt.gpt.wte = gpt.mel_embedding  # a second name, which gradient checkpointing asks for
    gpt.mel_head.requires_grad_(False)
    groups = parameter_groups(gpt, 0.3)
    held = [id(weight) for group in groups for weight in group["params"]]
    assert sorted(held) == sorted(id(weight) for weight in gpt.parameters() if weight.requires_grad)
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0]


def test_a_model_without_trained_weights_is_refused() -> None:
    with pytest.raises(SpeedupError, match="Freeze less"):
        parameter_groups(small_gpt().requires_grad_(False), 0.3)


@pytest.mark.parametrize(
    ("switches", "kind", "name", "words"),
    [
        ({}, torch.optim.AdamW, "enable_fused_optimizer", "fused AdamW on cpu"),
        ({"enable_fused_optimizer": False}, torch.optim.AdamW, "enable_fused_optimizer", "plain AdamW on cpu"),
        ({"offload_optimizer": True}, OffloadedAdamW, "offload_optimizer", "AdamW on the CPU"),
        ({"step_in_backward": True}, StepInBackward, "step_in_backward", "in the backward pass"),
        ({"optimizer": "adafactor"}, torch.optim.Optimizer, "optimizer", "Adafactor"),
    ],
)
def test_the_settings_choose_the_optimiser(switches: dict[str, Any], kind: type, name: str, words: str) -> None:
    gpt = small_gpt()
    optimizer, change = make_optimizer(gpt, config(**switches), CPU)
    assert isinstance(optimizer, kind)
    assert change.name == name
    assert words in change.detail
    assert change.changed == (0 if "plain" in words else len(list(gpt.parameters())))
    assert {group["lr"] for group in optimizer.param_groups} == {1e-3}
    before = gpt.text_head.weight.detach().clone()
    learn(gpt, optimizer, 1)
    assert not torch.equal(gpt.text_head.weight, before)


@pytest.mark.parametrize("switches", [{}, {"offload_optimizer": True}, {"step_in_backward": True}])
def test_betas_and_eps_are_those_of_coquis_recipe(switches: dict[str, Any]) -> None:
    optimizer, _ = make_optimizer(small_gpt(), config(**switches), CPU)
    assert {(group["betas"], group["eps"]) for group in optimizer.param_groups} == {((0.9, 0.96), 1e-8)}


def test_the_fused_kernel_equals_the_plain_one() -> None:
    plain, fused = small_gpt(), small_gpt()
    optimizers = [
        make_optimizer(plain, config(enable_fused_optimizer=False), CPU)[0],
        make_optimizer(fused, config(), CPU)[0],
    ]
    for seed in range(5):
        plain.zero_grad()
        torch.autograd.backward(loss(plain, seed))  # the same gradients for both
        for weight, other in zip(plain.parameters(), fused.parameters(), strict=True):
            other.grad = None if weight.grad is None else weight.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    assert farthest(plain, fused) < 1e-6


def test_a_device_without_a_fused_kernel_is_refused() -> None:
    with pytest.raises(SpeedupError, match="enable_fused_optimizer"):
        make_optimizer(small_gpt(), config(), torch.device("xla"))


def test_a_saved_state_does_not_bring_the_kernel_of_its_machine() -> None:
    gpt = small_gpt()
    saved, _ = make_optimizer(gpt, config(), CPU)
    learn(gpt, saved, 1)
    optimizer, _ = make_optimizer(gpt, config(enable_fused_optimizer=False), CPU)
    optimizer.load_state_dict(saved.state_dict())
    assert [group["fused"] for group in optimizer.param_groups] == [False, False]
    weight = gpt.text_head.weight
    assert torch.equal(optimizer.state[weight]["exp_avg"], saved.state[weight]["exp_avg"])


def test_8_bits_need_a_gpu() -> None:
    with pytest.raises(SpeedupError, match="needs a CUDA GPU, and this is cpu"):
        make_optimizer(small_gpt(), config(optimizer="adamw_8bit"), CPU)


def test_8_bits_need_bitsandbytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(SpeedupError, match="pip install bitsandbytes"):
        make_optimizer(small_gpt(), config(optimizer="adamw_8bit"), GPU)


class Manager:
    """Notes what bitsandbytes is told about single weights."""

    def __init__(self) -> None:
        self.overrides: list[tuple[int, dict[str, int]]] = []

    def get_instance(self) -> "Manager":
        return self

    def register_module_override(self, module: torch.nn.Module, name: str, settings: dict[str, int]) -> None:
        self.overrides.append((id(module.get_parameter(name)), settings))


def test_8_bits_spare_the_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = Manager()
    library = SimpleNamespace(optim=SimpleNamespace(GlobalOptimManager=manager, AdamW8bit=torch.optim.AdamW))
    monkeypatch.setitem(sys.modules, "bitsandbytes", library)
    gpt = small_gpt()
    optimizer, change = make_optimizer(gpt, config(optimizer="adamw_8bit"), GPU)
    rows = [gpt.text_embedding, gpt.mel_embedding, gpt.mel_pos_embedding.emb, gpt.text_pos_embedding.emb]
    assert sorted(manager.overrides) == sorted((id(part.weight), {"optim_bits": 32}) for part in rows)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.01, 0.0]
    assert "8-bit" in change.detail
