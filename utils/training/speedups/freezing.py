"""Leaving parts of the model as they are."""

from types import TracebackType
from typing import Self

from torch import nn

from utils.core.change import Change
from utils.core.errors import SpeedupError
from utils.xtts.adapters import TEXT_ROWS


def freeze_first_layers(gpt: nn.Module, count: int) -> Change:
    """Leave the first layers of the GPT-2 untrained, adapters in them included.

    Args:
        gpt: coqui's GPT.
        count: How many layers.
    """
    layers = gpt.get_submodule("gpt.h")
    have = sum(1 for _ in layers.children())
    if count > have:
        raise SpeedupError(
            f"freeze_first_n_gpt_layers: {count} layers of {have}.", hint=f"Choose a number from 0 to {have}."
        )
    frozen = sum(_freeze(layers.get_submodule(str(number))) for number in range(count))
    return Change("freeze_first_n_gpt_layers", count, f"{frozen:,} parameters in the first {count} of {have} layers")


def freeze_conditioning(gpt: nn.Module) -> Change:
    """Leave the encoder of the reference and the resampler behind it untrained."""
    parts = [gpt.get_submodule(name) for name in ("conditioning_encoder", "conditioning_perceiver")]
    weights = sum(weight.requires_grad for part in parts for weight in part.parameters())
    return Change("freeze_conditioning", weights, f"{sum(map(_freeze, parts)):,} parameters that hear the reference")


def _freeze(part: nn.Module) -> int:
    """Switch the training of a part off and return how many numbers were trained before."""
    trained = sum(weight.numel() for weight in part.parameters() if weight.requires_grad)
    part.requires_grad_(requires_grad=False)
    return trained


class TextRowsOnly:
    """Trains the rows of the text alone, until ``undo``; also a context.

    An optimiser may hold all weights: those without a gradient are neither updated nor decayed. One process spares the
    work of their gradients. Several processes (``shared``) settle at the start which weights get gradients, and wait
    for each other's; there they are computed as ever, and ``drop_gradients`` takes them out before the update.

    Attributes:
        change: How many weights rest.
    """

    def __init__(self, gpt: nn.Module, *, shared: bool = False) -> None:
        rows = {id(weight) for name in TEXT_ROWS for weight in gpt.get_submodule(name).parameters()}
        self.resting = [weight for weight in gpt.parameters() if weight.requires_grad and id(weight) not in rows]
        trained = sum(weight.numel() for weight in gpt.parameters() if weight.requires_grad and id(weight) in rows)
        self.change = Change("embedding_warmup_steps", len(self.resting), f"{trained:,} parameters of the text train")
        self.drop_gradients()
        if not shared:
            for weight in self.resting:
                weight.requires_grad = False

    def drop_gradients(self) -> None:
        """Forget gradients that must not act; call it before clipping."""
        for weight in self.resting:
            weight.grad = None

    def undo(self) -> None:
        """Train again what was trained before."""
        self.drop_gradients()
        while self.resting:
            self.resting.pop().requires_grad = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


def train_text_rows_only(gpt: nn.Module, *, shared: bool = False) -> TextRowsOnly:
    """Let everything but the rows of the text rest.

    Args:
        gpt: coqui's GPT, with or without adapters.
        shared: Several processes train it (DDP, FSDP).
    """
    return TextRowsOnly(gpt, shared=shared)
