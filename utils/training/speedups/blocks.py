"""How the layers of the GPT-2 run: fused GELU, gradient checkpointing, and torch.compile. No weight or name changes.

Gradient checkpointing: a layer keeps only its input and recomputes the rest in the backward pass.
``gradient_checkpointing_enable`` of transformers fails on coqui's GPT-2, which has no token embedding. The flag that it
sets on each layer works and is set here. The conditioning encoder has no such flag, so the class of its sequence of
blocks is replaced. The non-reentrant form is used: it works with DDP and frozen weights, and repeats the same dropout.

torch.compile: layers share their code, so one compilation per batch shape serves all of them. The loader therefore pads
batches to a few fixed lengths. Evaluation and speech run uncompiled.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.activations import NewGELUActivation

from utils.core.facts import Optimization
from utils.training.errors import SettingRefusedError
from utils.training.facts import LayersChanged
from utils.xtts.modules import gpt2_layers

ENCODER = "conditioning_encoder.attn"
SHAPES = 64  # by default, torch silently stops compiling after 8 shapes

Backend = str | Callable[..., Any]


def fuse_gelu(gpt: nn.Module) -> Optimization:
    """Use torch's kernel in every layer, which keeps fewer results for the backward pass.

    transformers computes the same formula in eight steps.
    """
    layers = [module for module in gpt.get_submodule("gpt.h").modules() if hasattr(module, "act")]
    if not layers or not all(isinstance(layer.act, NewGELUActivation | nn.GELU) for layer in layers):
        raise SettingRefusedError("enable_fused_gelu", "other_activation")
    changed = [layer for layer in layers if isinstance(layer.act, NewGELUActivation)]
    for layer in changed:
        layer.act = nn.GELU(approximate="tanh")
    return Optimization("enable_fused_gelu", len(changed), LayersChanged("fused GELU in", len(layers)))


class CheckpointedSequence(nn.Sequential):
    """A sequence that checkpoints every n-th of its layers in training mode."""

    every: int

    def forward(self, x: Tensor) -> Tensor:
        for number, layer in enumerate(self):
            is_checkpointed = self.training and torch.is_grad_enabled() and number % self.every == 0
            x = recomputed(layer, x) if is_checkpointed else layer(x)
        return x


def recomputed(layer: Callable[..., Any], x: Tensor, *others: Any) -> Any:  # noqa: ANN401  # as torch's checkpoint
    """Compute a layer, and again in the backward pass, with the same dropout.

    torch does not restore the random numbers of Apple's GPU (until 2.13, issue 127676), so gradients would be wrong.
    """
    if x.device.type != "mps":
        return checkpoint(layer, x, *others, use_reentrant=False)
    again = repeated_numbers(torch.mps.get_rng_state())
    return checkpoint(layer, x, *others, use_reentrant=False, context_fn=lambda: (contextlib.nullcontext(), again))


@contextlib.contextmanager
def repeated_numbers(state: Tensor) -> Iterator[None]:
    with torch.random.fork_rng([0], device_type="mps"):
        torch.mps.set_rng_state(state)
        yield


def checkpoint_blocks(gpt: nn.Module, every: int = 1) -> Optimization:
    """Checkpoint every n-th layer of the GPT-2 and of the conditioning encoder, replacing an earlier choice."""
    if every < 1:
        raise SettingRefusedError("checkpoint_every", "below_one", every)
    gpt2: Any = gpt.get_submodule("gpt")
    gpt2.gradient_checkpointing = True  # disables the cache, which the recomputation would fill again
    for number, block in enumerate(gpt2.h):
        block.gradient_checkpointing = number % every == 0
        block._gradient_checkpointing_func = recomputed  # noqa: SLF001
    encoder: Any = gpt.get_submodule(ENCODER)
    if (kind := encoder.__class__) not in {nn.Sequential, CheckpointedSequence}:
        raise SettingRefusedError("enable_grad_checkpoint", "wrapped", kind.__name__)
    encoder.__class__ = CheckpointedSequence
    encoder.every = every
    layers = checkpointed(gpt)
    return Optimization("enable_grad_checkpoint", sum(layers), LayersChanged("checkpointed", *layers))


def checkpointed(gpt: nn.Module) -> tuple[int, int]:
    layers = sum(bool(block.__dict__.get("gradient_checkpointing")) for block in gpt2_layers(gpt))
    encoder = gpt.get_submodule(ENCODER)
    encoder_layers = len(range(0, len(encoder), encoder.every)) if isinstance(encoder, CheckpointedSequence) else 0
    return layers, encoder_layers


def compile_blocks(gpt: nn.Module, device: torch.device | str, *, backend: Backend = "inductor") -> Optimization:
    """Compile the layers of the GPT-2 at the first batch of each shape; on a GPU, inductor records CUDA graphs."""
    kind = torch.device(device)
    settings = {"backend": backend, "dynamic": False}
    if backend == "inductor":
        check_compiler(kind)
        settings["mode"] = "reduce-overhead" if kind.type == "cuda" else "default"
    limits = torch._dynamo.config  # noqa: SLF001 - torch's documents name it
    limits.recompile_limit = max(limits.recompile_limit, SHAPES)
    blocks = gpt2_layers(gpt)
    for block in blocks:
        block.compile(**settings)
    return Optimization(
        "use_compile", len(blocks), LayersChanged(f"compiled ({settings.get('mode', backend)})", len(blocks))
    )


def compiled(gpt: nn.Module) -> int:
    """Return how many layers of the GPT-2 are compiled, or will be at the first batch."""
    return sum(block._compiled_call_impl is not None for block in gpt2_layers(gpt))  # noqa: SLF001


def uncompiled() -> contextlib.AbstractContextManager[object]:
    """Run compiled layers uncompiled, for batches whose lengths would trigger new compilations."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled, and the import takes seconds
        return contextlib.nullcontext()
    stance: contextlib.AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance


def check_compiler(device: torch.device) -> None:
    """Compile one addition, so that a missing compiler is noticed before the first update."""
    try:
        torch.compile(_add_one)(torch.ones(2, device=device))
    except Exception as error:  # torch raises whatever its compilers raise
        raise SettingRefusedError("use_compile", "no_compiler", device.type) from error


def _add_one(numbers: torch.Tensor) -> torch.Tensor:
    return numbers + 1
