"""The GELU of the GPT-2 in one kernel: transformers writes its formula out, eight results for one."""

from torch import nn
from transformers.activations import NewGELUActivation

from utils.core.change import Change
from utils.core.errors import SpeedupError


class FusedGelu(nn.GELU):
    """torch's own kernel of the same formula."""

    def __init__(self) -> None:
        super().__init__(approximate="tanh")


def fuse_gelu(gpt: nn.Module) -> Change:
    """Let every layer compute its GELU at once; fewer results are kept for the backward pass.

    Args:
        gpt: coqui's GPT.
    """
    return _exchanged(gpt, NewGELUActivation, FusedGelu, "fused")


def write_out_gelu(gpt: nn.Module) -> Change:
    """Go back to the formula as transformers writes it out."""
    return _exchanged(gpt, FusedGelu, NewGELUActivation, "written out")


def _exchanged(gpt: nn.Module, old: type[nn.Module], new: type[nn.Module], how: str) -> Change:
    layers = [module for module in gpt.get_submodule("gpt.h").modules() if hasattr(module, "act")]
    if not all(isinstance(layer.act, old | new) for layer in layers) or not layers:
        raise SpeedupError("enable_fused_gelu: this GPT has another activation.", hint="Switch enable_fused_gelu off.")
    changed = [layer for layer in layers if isinstance(layer.act, old)]
    for layer in changed:
        layer.act = new()
    return Change("enable_fused_gelu", len(changed), f"{how} in {len(layers)} layers")
