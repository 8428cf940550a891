"""Create the configured optimizer.

Weight decay applies to matrices and convolutions only: not to biases, norms, embeddings and the learned queries of the
perceiver. Betas and eps are those of coqui's recipe for XTTS v2.
"""

import importlib
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from utils.config import TrainConfig
from utils.core.errors import SpeedupError
from utils.core.events import Change
from utils.training.speedups.adamw import OffloadedAdamW, StepInBackward

BETAS = (0.9, 0.96)
EPS = 1e-8
FUSED_DEVICES = {"cpu", "cuda", "mps", "xpu"}  # where torch has the fused kernel
OWN_KERNELS = ("fused", "foreach", "capturable")  # implementation choices, which a checkpoint must not decide

Groups = list[dict[str, Any]]


def make_optimizer(model: nn.Module, config: TrainConfig, device: torch.device) -> tuple[Optimizer, Change]:
    """Create the optimizer for all weights that require gradients; the model is already on its device."""
    groups = parameter_groups(model, config.weight_decay)
    fused = _fused(config, device)
    optimizer: Optimizer
    if config.optimizer == "adamw_8bit":
        name, kernel, optimizer = "optimizer", "8-bit AdamW", _adamw_8bit(model, groups, config, device)
    elif config.optimizer == "adafactor":
        name, kernel, optimizer = "optimizer", "Adafactor", _adafactor(groups, config)
    elif config.step_in_backward:
        settings = _settings(config) | {"clip": config.gradient_clip, "fused": fused}
        name, kernel, optimizer = "step_in_backward", "AdamW in the backward pass", StepInBackward(groups, **settings)
    elif config.offload_optimizer:
        settings = _settings(config) | {"fused": config.enable_fused_optimizer}
        name, kernel, optimizer = "offload_optimizer", "AdamW on the CPU", OffloadedAdamW(groups, **settings)
    else:
        name, kernel = "enable_fused_optimizer", f"{'fused' if fused else 'plain'} AdamW on {device.type}"
        optimizer = AdamW(groups, **_settings(config), fused=fused)
    optimizer.register_load_state_dict_pre_hook(_keep_own_kernels)
    decayed, others = (len(group["params"]) for group in groups)
    changed = 0 if name == "enable_fused_optimizer" and not fused else decayed + others
    return optimizer, Change(name, changed, f"{kernel}: {decayed} weights decay, {others} do not")


def parameter_groups(model: nn.Module, weight_decay: float) -> Groups:
    """Split the trained weights into those with and those without weight decay."""
    decayed: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            owner, _, part = name.rpartition(".")
            is_matrix = part == "weight" and weight.ndim >= 2
            chosen = is_matrix and not isinstance(model.get_submodule(owner), nn.Embedding)
            (decayed if chosen else others).append(weight)
    if not decayed and not others:
        raise SpeedupError("All weights are frozen.", hint="Freeze less, or turn on LoRA.")
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def _settings(config: TrainConfig) -> dict[str, Any]:
    return {"lr": config.learning_rate, "betas": BETAS, "eps": EPS, "weight_decay": config.weight_decay}


def _fused(config: TrainConfig, device: torch.device) -> bool:
    """Tell whether to use the fused kernel; raise an error if torch does not support it on this device."""
    if config.enable_fused_optimizer and device.type not in FUSED_DEVICES:
        raise SpeedupError(
            f"enable_fused_optimizer: torch has no fused AdamW for {device.type}.",
            hint="Turn off enable_fused_optimizer.",
        )
    return config.enable_fused_optimizer


def _adafactor(groups: Groups, config: TrainConfig) -> Optimizer:
    """Create Adafactor with the learning rate of the schedule; torch's own scales it by each weight."""
    from transformers.optimization import Adafactor

    return Adafactor(  # type: ignore[no-untyped-call]
        groups, lr=config.learning_rate, scale_parameter=False, relative_step=False, warmup_init=False
    )


def _adamw_8bit(model: nn.Module, groups: Groups, config: TrainConfig, device: torch.device) -> Optimizer:
    """Create the AdamW of bitsandbytes; embeddings, whose rows are updated rarely, keep 32-bit moments."""
    if device.type != "cuda":
        raise SpeedupError(
            f"optimizer: adamw_8bit needs a CUDA GPU, and this is {device.type}.", hint="Choose adamw or adafactor."
        )
    try:
        library: Any = importlib.import_module("bitsandbytes")
    except ImportError as error:
        raise SpeedupError(
            "optimizer: adamw_8bit needs the package bitsandbytes.",
            hint="Install it with: pip install bitsandbytes, or choose adamw.",
        ) from error
    manager = library.optim.GlobalOptimManager.get_instance()
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            manager.register_module_override(module, "weight", {"optim_bits": 32})
    optimizer: Optimizer = library.optim.AdamW8bit(groups, **_settings(config))
    return optimizer


def _keep_own_kernels(optimizer: Optimizer, state: dict[str, Any]) -> dict[str, Any]:
    """Load moments and learning rates from a saved state, but keep this machine's kernels."""
    pairs = zip(state["param_groups"], optimizer.param_groups, strict=False)  # torch itself checks their number
    kept = [saved | {key: group[key] for key in OWN_KERNELS if key in group} for saved, group in pairs]
    return {**state, "param_groups": kept + state["param_groups"][len(kept) :]}
