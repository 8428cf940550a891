"""The optimizer and the learning rate schedule of a run.

Weight decay applies to matrices and convolutions only: not to biases, norms, embeddings and the learned queries of the
perceiver. Betas and eps are those of coqui's recipe for XTTS v2. The schedule is a warm-up, then the chosen decay: the
curves of transformers, shifted by one update, because there the first update has a rate of 0 and learns nothing.
"""

import importlib
from typing import Any, Literal

import torch
from torch import nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from utils.config import TrainConfig
from utils.core.facts import Optimization
from utils.training.errors import SettingRefusedError
from utils.training.facts import WeightsGrouped
from utils.training.speedups.adamw import OffloadedAdamW
from utils.xtts.device import choose_device

ADAMW = {"betas": (0.9, 0.96), "eps": 1e-8}
OWN_KERNELS = ("fused", "foreach", "capturable")  # implementation choices, which a checkpoint must not decide

Groups = list[dict[str, Any]]


def make_optimizer(model: nn.Module, config: TrainConfig, device: torch.device) -> tuple[Optimizer, Optimization]:
    """Create the optimizer for all weights that require gradients; the model is already on its device."""
    groups = parameter_groups(model, config.weight_decay)
    optimizer, name, kernel = _choose(model, groups, config, device)
    optimizer.register_load_state_dict_pre_hook(_keep_own_kernels)
    decayed, others = (len(group["params"]) for group in groups)
    is_plain = name == "enable_fused_optimizer" and not config.enable_fused_optimizer
    changed = 0 if is_plain else decayed + others
    return optimizer, Optimization(name, changed, WeightsGrouped(kernel, decayed, others))


def _choose(model: nn.Module, groups: Groups, config: TrainConfig, device: torch.device) -> tuple[Optimizer, str, str]:
    """Return the optimizer, the setting that chose it, and what it is."""
    settings: dict[str, Any] = {"lr": config.learning_rate, "weight_decay": config.weight_decay, **ADAMW}
    if config.optimizer == "adamw_8bit":
        return _adamw_8bit(model, groups, settings, device), "optimizer", "8-bit AdamW"
    if config.optimizer == "adafactor":
        return _adafactor(groups, config), "optimizer", "Adafactor"
    settings["fused"] = config.enable_fused_optimizer
    if config.offload_optimizer and device.type != "mps":  # whose memory is the RAM
        return OffloadedAdamW(groups, **settings), "offload_optimizer", "AdamW on the CPU"
    kernel = f"{'fused' if config.enable_fused_optimizer else 'plain'} AdamW on {device.type}"
    return AdamW(groups, **settings), "enable_fused_optimizer", kernel


def allocate_state(optimizer: Optimizer) -> None:
    """Create the moments of AdamW as its first step would; nothing else changes. Adafactor's are small."""
    if optimizer.state or not isinstance(optimizer, AdamW | OffloadedAdamW):
        return
    rates = [group["lr"] for group in optimizer.param_groups]
    try:
        for group in optimizer.param_groups:
            group["lr"] = 0.0
            for weight in group["params"]:
                weight.grad = torch.zeros_like(weight)
        optimizer.step()
    finally:
        optimizer.zero_grad(set_to_none=True)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
    for state in optimizer.state.values():
        state["step"].zero_()


def parameter_groups(model: nn.Module, weight_decay: float) -> Groups:
    decayed: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            owner, _, part = name.rpartition(".")
            is_matrix = part == "weight" and weight.ndim >= 2
            decays = is_matrix and not isinstance(model.get_submodule(owner), nn.Embedding)
            (decayed if decays else others).append(weight)
    if not decayed and not others:
        raise SettingRefusedError("freeze_first_n_gpt_layers", "all_frozen")
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def _adafactor(groups: Groups, config: TrainConfig) -> Optimizer:
    """Create Adafactor with the learning rate of the schedule; torch's own scales it by each weight."""
    from transformers.optimization import Adafactor

    return Adafactor(  # type: ignore[no-untyped-call]
        groups, lr=config.learning_rate, scale_parameter=False, relative_step=False, warmup_init=False
    )


def require_optimizer(config: TrainConfig) -> None:
    """Refuse an optimizer that the device of a run does not have, before anything is loaded."""
    if config.optimizer == "adamw_8bit":
        _bitsandbytes(torch.device(choose_device(config.device)))


def _bitsandbytes(device: torch.device) -> Any:  # noqa: ANN401  # a module without types
    if device.type != "cuda":
        raise SettingRefusedError("optimizer", "needs_gpu", device.type)
    try:
        return importlib.import_module("bitsandbytes")
    except ImportError as error:
        raise SettingRefusedError("optimizer", "needs_bitsandbytes") from error


def _adamw_8bit(model: nn.Module, groups: Groups, settings: dict[str, Any], device: torch.device) -> Optimizer:
    """Create the AdamW of bitsandbytes; embeddings, whose rows are updated rarely, keep 32-bit moments."""
    library = _bitsandbytes(device)
    manager = library.optim.GlobalOptimManager.get_instance()
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            manager.register_module_override(module, "weight", {"optim_bits": 32})
    optimizer: Optimizer = library.optim.AdamW8bit(groups, **settings)
    return optimizer


def _keep_own_kernels(optimizer: Optimizer, state: dict[str, Any]) -> dict[str, Any]:
    """Load moments and learning rates from a saved state, but keep this machine's kernels."""
    pairs = zip(state["param_groups"], optimizer.param_groups, strict=False)  # torch itself checks their number
    groups = [saved | {key: group[key] for key in OWN_KERNELS if key in group} for saved, group in pairs]
    return {**state, "param_groups": groups + state["param_groups"][len(groups) :]}


def make_schedule(
    optimizer: Optimizer,
    kind: Literal["cosine", "linear", "constant"],
    updates: int,
    warmup_steps: int,
    warmup_share: float,
) -> LRScheduler:
    """Create a schedule for a run of ``updates``, stepped once after each; the optimizer's rates are its peak.

    The warm-up lasts at most a share of the run, so that short runs reach the peak rate.
    """
    from transformers import get_scheduler

    warmup = min(warmup_steps, int(updates * warmup_share))
    name = "constant_with_warmup" if kind == "constant" else kind
    probe = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    curve = get_scheduler(name, probe, num_warmup_steps=warmup, num_training_steps=updates + 1).lr_lambdas[0]
    return LambdaLR(optimizer, lambda update: float(curve(min(update, updates - 1) + 1)))


def scale_rates(schedule: LRScheduler, factor: float) -> None:
    """Multiply the current and all later learning rates; the factor is saved with the schedule."""
    schedule.base_lrs = [rate * factor for rate in schedule.base_lrs]
    for group in schedule.optimizer.param_groups:
        group["lr"] *= factor


def advance(schedule: LRScheduler, update: int) -> None:
    curves = schedule.lr_lambdas  # type: ignore[attr-defined]  # all of ours have them
    rates = [rate * curve(update) for rate, curve in zip(schedule.base_lrs, curves, strict=True)]
    schedule.load_state_dict(schedule.state_dict() | {"last_epoch": update, "_last_lr": rates})
    for group, rate in zip(schedule.optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
