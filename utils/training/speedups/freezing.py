"""Freeze parts of the model."""

from types import TracebackType
from typing import Self

from torch import nn

from utils.core.errors import SpeedupError
from utils.core.events import Change
from utils.xtts.adapters import TEXT_ROWS


def freeze_first_layers(gpt: nn.Module, count: int) -> Change:
    """Freeze the first layers of the GPT-2, including adapters in them."""
    layers = gpt.get_submodule("gpt.h")
    have = sum(1 for _ in layers.children())
    if count > have:
        raise SpeedupError(
            f"freeze_first_n_gpt_layers: {count} layers of {have}.", hint=f"Choose a number from 0 to {have}."
        )
    frozen = sum(_freeze(layers.get_submodule(str(number))) for number in range(count))
    return Change("freeze_first_n_gpt_layers", count, f"{frozen:,} parameters in the first {count} of {have} layers")


def freeze_conditioning(gpt: nn.Module) -> Change:
    """Freeze the conditioning encoder and the perceiver (the speaker encoder of the GPT)."""
    parts = [gpt.get_submodule(name) for name in ("conditioning_encoder", "conditioning_perceiver")]
    weights = sum(weight.requires_grad for part in parts for weight in part.parameters())
    return Change("freeze_conditioning", weights, f"{sum(map(_freeze, parts)):,} parameters of the speaker encoder")


def _freeze(part: nn.Module) -> int:
    """Freeze a part and return how many parameters were trained before."""
    trained = sum(weight.numel() for weight in part.parameters() if weight.requires_grad)
    part.requires_grad_(requires_grad=False)
    return trained


class TextRowsOnly:
    """Trains only the text embeddings until ``undo``; also a context manager.

    The optimizer may hold all weights: those without a gradient are neither updated nor decayed. With several processes
    (``shared``), DDP requires that the same weights always get gradients: they are computed as usual, and
    ``drop_gradients`` removes them before the update.

    Attributes:
        change: How many weights are not trained.
    """

    def __init__(self, gpt: nn.Module, *, shared: bool = False) -> None:
        rows = {id(weight) for name in TEXT_ROWS for weight in gpt.get_submodule(name).parameters()}
        self.frozen = [weight for weight in gpt.parameters() if weight.requires_grad and id(weight) not in rows]
        trained = sum(weight.numel() for weight in gpt.parameters() if weight.requires_grad and id(weight) in rows)
        self.change = Change("embedding_warmup_steps", len(self.frozen), f"{trained:,} text parameters are trained")
        self.drop_gradients()
        if not shared:
            for weight in self.frozen:
                weight.requires_grad = False

    def drop_gradients(self) -> None:
        """Drop the gradients of frozen weights; call it before clipping."""
        for weight in self.frozen:
            weight.grad = None

    def undo(self) -> None:
        """Unfreeze the weights."""
        self.drop_gradients()
        while self.frozen:
            self.frozen.pop().requires_grad = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


def train_text_rows_only(gpt: nn.Module, *, shared: bool = False) -> TextRowsOnly:
    """Freeze everything but the text embeddings; ``shared`` if several processes train the model."""
    return TextRowsOnly(gpt, shared=shared)
