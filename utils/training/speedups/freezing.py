"""Freeze parts of the model."""

from torch import nn

from utils.core.facts import Optimization
from utils.training.errors import SettingRefusedError
from utils.training.facts import ParametersFrozen
from utils.xtts.adapters import TEXT_ROWS
from utils.xtts.modules import CONDITIONING, gpt2_layers


def freeze_first_layers(gpt: nn.Module, count: int) -> Optimization:
    """Freeze the first layers of the GPT-2, including adapters in them."""
    layers = gpt2_layers(gpt)
    if count > len(layers):
        raise SettingRefusedError("freeze_first_n_gpt_layers", "too_many_layers", len(layers))
    return Optimization("freeze_first_n_gpt_layers", count, ParametersFrozen(sum(map(_freeze, layers[:count]))))


def freeze_conditioning(gpt: nn.Module) -> Optimization:
    """Freeze the conditioning encoder and the perceiver (the speaker encoder of the GPT)."""
    parts = [gpt.get_submodule(name) for name in CONDITIONING]
    weights = sum(weight.requires_grad for part in parts for weight in part.parameters())
    return Optimization("freeze_conditioning", weights, ParametersFrozen(sum(map(_freeze, parts))))


def _freeze(part: nn.Module) -> int:
    trained = sum(weight.numel() for weight in part.parameters() if weight.requires_grad)
    part.requires_grad_(requires_grad=False)
    return trained


class TextRowsOnly:
    """Trains only the text embeddings until ``undo``.

    The optimizer may hold all weights: those without a gradient are neither updated nor decayed. With several processes
    (``shared``), DDP requires that the same weights always get gradients: they are computed as usual, and
    ``drop_gradients`` removes them before the update.
    """

    def __init__(self, gpt: nn.Module, *, shared: bool) -> None:
        rows = {id(weight) for name in TEXT_ROWS for weight in gpt.get_submodule(name).parameters()}
        self.frozen = [weight for weight in gpt.parameters() if weight.requires_grad and id(weight) not in rows]
        self.drop_gradients()
        if not shared:
            for weight in self.frozen:
                weight.requires_grad = False

    def drop_gradients(self) -> None:
        """Drop the gradients of frozen weights; call it before clipping."""
        for weight in self.frozen:
            weight.grad = None

    def undo(self) -> None:
        self.drop_gradients()
        while self.frozen:
            self.frozen.pop().requires_grad = True
