"""Fused GELU for the GPT-2: transformers computes the formula in eight steps."""

from torch import nn
from transformers.activations import NewGELUActivation

from utils.core.errors import SpeedupError
from utils.core.events import Change


class FusedGelu(nn.GELU):
    """torch's kernel for the same formula."""

    def __init__(self) -> None:
        super().__init__(approximate="tanh")


def fuse_gelu(gpt: nn.Module) -> Change:
    """Use the fused kernel in every layer; fewer results are kept for the backward pass."""
    return _replace(gpt, NewGELUActivation, FusedGelu, "fused")


def unfuse_gelu(gpt: nn.Module) -> Change:
    """Restore the activation of transformers."""
    return _replace(gpt, FusedGelu, NewGELUActivation, "not fused")


def _replace(gpt: nn.Module, old: type[nn.Module], new: type[nn.Module], how: str) -> Change:
    layers = [module for module in gpt.get_submodule("gpt.h").modules() if hasattr(module, "act")]
    if not all(isinstance(layer.act, old | new) for layer in layers) or not layers:
        raise SpeedupError(
            "enable_fused_gelu: this GPT has a different activation.", hint="Turn off enable_fused_gelu."
        )
    changed = [layer for layer in layers if isinstance(layer.act, old)]
    for layer in changed:
        layer.act = new()
    return Change("enable_fused_gelu", len(changed), f"{how} in {len(layers)} layers")
