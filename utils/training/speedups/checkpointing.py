"""Gradient checkpointing: a layer keeps only its input and recomputes the rest in the backward pass.

``gradient_checkpointing_enable`` of transformers fails on coqui's GPT-2, which has no token embedding. The flag that it
sets on each layer works and is set here. The conditioning encoder has no such flag, so the class of its sequence of
blocks is replaced.

The non-reentrant form is used: it works with DDP and frozen weights, and repeats the same dropout.
"""

import functools
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from utils.core.errors import SpeedupError
from utils.core.events import Change

ENCODER = "conditioning_encoder.attn"


class CheckpointedSequence(nn.Sequential):
    """A sequence that checkpoints every n-th of its layers in training mode."""

    every: int

    def forward(self, x: Tensor) -> Tensor:
        """Apply all layers."""
        for number, layer in enumerate(self):
            is_checkpointed = self.training and torch.is_grad_enabled() and number % self.every == 0
            x = checkpoint(layer, x, use_reentrant=False) if is_checkpointed else layer(x)
        return x


def checkpoint_blocks(gpt: nn.Module, every: int = 1) -> Change:
    """Checkpoint every n-th layer of the GPT-2 and of the conditioning encoder, replacing an earlier choice."""
    if every < 1:
        raise SpeedupError(f"checkpoint_every: {every} is below 1.", hint="1 checkpoints every layer.")
    undo_checkpointing(gpt)
    gpt2: Any = gpt.get_submodule("gpt")
    gpt2.gradient_checkpointing = True  # disables the cache, which the recomputation would fill again
    chosen = list(gpt2.h)[::every]
    for block in chosen:
        block.gradient_checkpointing = True
        block._gradient_checkpointing_func = functools.partial(checkpoint, use_reentrant=False)  # noqa: SLF001
    _checkpoint_encoder(gpt.get_submodule(ENCODER), every)
    counted = checkpointed(gpt)
    detail = f"{counted[0]} layers of the GPT and {counted[1]} of the conditioning encoder"
    return Change("enable_grad_checkpoint", sum(counted), detail)


def _checkpoint_encoder(encoder: nn.Module, every: int) -> None:
    if type(encoder) is not nn.Sequential:
        raise SpeedupError(
            f"enable_grad_checkpoint: {ENCODER} is a {type(encoder).__name__}, not a plain sequence.",
            hint="Turn on checkpointing before the model is sharded or wrapped.",
        )
    _set_class(encoder, CheckpointedSequence).every = every


def _set_class(module: Any, kind: type[nn.Module]) -> Any:  # noqa: ANN401 - its attributes are those of the class
    """Replace the class of a module; its weights and their names stay."""
    module.__class__ = kind
    return module


def undo_checkpointing(gpt: nn.Module) -> Change:
    """Turn off checkpointing."""
    changed = sum(checkpointed(gpt))
    gpt2: Any = gpt.get_submodule("gpt")
    gpt2.gradient_checkpointing = False
    for block in gpt2.h:
        for name in ("gradient_checkpointing", "_gradient_checkpointing_func"):
            block.__dict__.pop(name, None)
    encoder = gpt.get_submodule(ENCODER)
    if isinstance(encoder, CheckpointedSequence):
        del encoder.every
        _set_class(encoder, nn.Sequential)
    return Change("enable_grad_checkpoint", changed, "off")


def checkpointed(gpt: nn.Module) -> tuple[int, int]:
    """Return how many layers of the GPT-2 and of the conditioning encoder are checkpointed."""
    layers = sum(bool(block.__dict__.get("gradient_checkpointing")) for block in gpt.get_submodule("gpt.h").children())
    encoder = gpt.get_submodule(ENCODER)
    inside = len(range(0, len(encoder), encoder.every)) if isinstance(encoder, CheckpointedSequence) else 0
    return layers, inside
