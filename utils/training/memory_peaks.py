"""The moments of an update at which memory may be fullest: end of the forward pass, backward pass, update."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from utils.config import TrainConfig
from utils.training.memory_parts import (
    ENCODER_BLOCKS,
    HALF,
    WIDE,
    Arithmetic,
    Longest,
    ModelShape,
    block_bytes,
    encoder_block_bytes,
    head_bytes,
    logit_bytes,
    perceiver_bytes,
)
from utils.training.memory_trained import Trained

MOMENTS, MOMENTS_8BIT = 2 * WIDE, 2 * (1 + WIDE / 256)  # bitsandbytes keeps a scale for 256 numbers

Parts = dict[str, int]


@dataclass(frozen=True)
class Device:
    """Where a run computes.

    Attributes:
        kind: A GPU, or the processor.
        memory: Bytes that the run may take.
        name: What a person calls it.
        half: Whether it has half-precision arithmetic.
    """

    kind: Literal["cuda", "cpu"]
    memory: int
    name: str
    half: bool


def arithmetic(config: TrainConfig, device: Device) -> Arithmetic:
    """Say how a run computes on a device."""
    half = config.enable_mixed_precision and device.half
    drops = config.dropout > 0
    by_byte = config.enable_byte_dropout and config.enable_sdpa and device.kind == "cpu" and not half
    return Arithmetic(device.kind, half, config.enable_sdpa, drops, config.enable_fused_gelu, by_byte)


def fixed_bytes(shape: ModelShape, config: TrainConfig, device: Device) -> Parts:
    """Return what stays from update to update."""
    trained, shares = Trained.by(shape, config), shards(config)
    weights = (shape.parameters + trained.added) * WIDE
    ends = weights - shape.layers * shape.layer * WIDE  # fsdp gathers them for a whole pass, and layers two at a time
    gathered = ends + 2 * shape.layer * WIDE if shares > 1 else 0
    apart = device.kind == "cuda"
    return {
        "weights": weights // shares,
        "optimiser": 0 if apart and config.offload_optimizer else moment_bytes(shape, trained, config) // shares,
        "ema": trained.parameters * WIDE if config.enable_ema and not (apart and config.ema_device == "cpu") else 0,
        "exchange": gathered,  # DDP sends the gradients where they are
    }


def shards(config: TrainConfig) -> int:
    """Return how many processes share one copy of the weights."""
    return config.num_processes if config.sharding == "fsdp" else 1


def moment_bytes(shape: ModelShape, trained: Trained, config: TrainConfig) -> int:
    """Return what the optimiser remembers of past gradients."""
    if config.optimizer == "adamw_8bit":
        return round(trained.tables * MOMENTS + (trained.parameters - trained.tables) * MOMENTS_8BIT)
    if config.optimizer == "adafactor":  # a row and a column of each matrix; convolutions of width 1 are kept whole
        layers = 29 * shape.dim * (shape.layers - trained.first)
        encoder = ENCODER_BLOCKS * 4 * shape.dim**2 if trained.conditioning else 0
        return WIDE * (layers + encoder + 3 * (shape.text_rows + shape.audio_rows))
    return trained.parameters * MOMENTS


def clips_at_once(config: TrainConfig, longest: Longest) -> int:
    """Return how many of the longest clips are on the device at the same time."""
    return max(1, config.batch_tokens // longest.positions) if config.batch_tokens else config.batch_size


@dataclass(frozen=True)
class Step:
    """One batch on its way forward and back, every clip of it the longest.

    Attributes:
        shape: The model.
        config: The settings of the run.
        longest: The longest clip.
        how: The arithmetic.
    """

    shape: ModelShape
    config: TrainConfig
    longest: Longest
    how: Arithmetic

    @cached_property
    def clips(self) -> int:
        """How many clips the batch has."""
        return clips_at_once(self.config, self.longest)

    @cached_property
    def trained(self) -> Trained:
        """What is trained."""
        return Trained.by(self.shape, self.config)

    def again(self, count: int) -> range:
        """Return which of so many layers are computed again in the backward pass."""
        return range(0, count, self.config.checkpoint_every) if self.config.enable_grad_checkpoint else range(0)

    def layer(self, number: int) -> int:
        """Return what a layer of the GPT keeps when it is not computed again, its adapters included."""
        learns, rows = number >= self.trained.first, self.clips * self.longest.positions
        attention, between = learns and self.trained.attention, learns and self.trained.between
        block = block_bytes(
            self.shape, self.how, self.clips, self.longest.positions, attention=attention, between=between
        )
        return block + (rows * self.trained.row + self.trained.once) * self.how.narrow * learns

    @cached_property
    def encoder_block(self) -> int:
        """What a block of the conditioning encoder keeps when it is not computed again."""
        return encoder_block_bytes(self.shape, self.how, self.clips, self.longest.frames)

    @cached_property
    def kept(self) -> Parts:
        """What autograd keeps from the forward to the backward pass; copies of weights are not in it."""
        again, entry = self.again(self.shape.layers), self.clips * self.longest.positions * self.shape.dim * WIDE
        layers = [entry if n in again else self.layer(n) for n in range(self.shape.layers)]
        listening = self.encoder + perceiver_bytes(self.shape, self.how, self.clips, self.longest.frames)
        return {
            "activations": sum(layers),
            "conditioning": listening if self.trained.conditioning else 0,
            "heads": head_bytes(self.shape, self.how, self.clips, self.longest),
        }

    @cached_property
    def encoder(self) -> int:
        """What the conditioning encoder keeps, if it is trained."""
        forgotten = len(self.again(ENCODER_BLOCKS))
        entry = self.clips * self.longest.frames * self.shape.dim * WIDE
        return forgotten * entry + (ENCODER_BLOCKS - forgotten) * self.encoder_block

    def copies(self, *, forward: bool) -> int:
        """Return weights in half precision: autocast keeps those that are trained to the end of the forward pass.

        After it, those are left that layers hold for the backward pass, and one layer makes them again.
        """
        if not self.how.half:
            return 0
        again, matrix = len(self.again(self.shape.layers)), 12 * self.shape.dim**2
        held = self.shape.layers - again
        kept = forward and not self.config.enable_lora
        layers = held + (again if kept else min(again, 1))
        ends = (self.shape.text_rows + self.shape.audio_rows) * self.shape.dim
        listening = self.shape.conditioning if self.trained.conditioning else 0
        return HALF * (layers * matrix + ends + listening)

    @cached_property
    def work(self) -> int:
        """Intermediate results of a layer's backward pass: three of the widest part, and pairs where there are any."""
        rows = self.clips * self.longest.positions
        pairs = 0 if self.how.flash else 2 * WIDE * self.shape.heads * self.longest.positions
        return rows * (12 * self.shape.dim * WIDE + pairs)

    def moments(self) -> Iterator[Parts]:
        """Yield what is there for a while, at each moment that may be the fullest."""
        largest = self.shape.text_rows * self.shape.dim * WIDE
        every = self.trained.parameters * WIDE // shards(self.config)
        every = largest if self.config.step_in_backward else every
        before = every if self.config.grad_acumm > 1 else 0  # of the batches before this one
        logits = logit_bytes(self.shape, self.clips, self.longest)
        yield {**self.kept, "gradients": before, "copies": self.copies(forward=True), "workspace": logits}
        once = self.layer(self.shape.layers - 1) if self.again(self.shape.layers) else 0
        back = {**self.kept, "copies": self.copies(forward=False)}
        yield {**back, "gradients": max(before, largest), "workspace": max(2 * logits, once + self.work)}
        first = {**back, "activations": self.layer(0), "heads": 0, "copies": self._first_copies()}
        listening = self.shape.conditioning * WIDE if self.trained.conditioning else 0
        yield {**first, "gradients": max(before, every - listening), "workspace": self.work}
        if self.trained.conditioning:
            yield {"conditioning": self.encoder, "gradients": every, "workspace": self._encoder_work()}
        yield {"gradients": every, "workspace": 2 * largest}

    def _first_copies(self) -> int:
        """Return the half-precision weights that are left when the first layer of the GPT is reached."""
        listening = self.trained.conditioning and not self.again(ENCODER_BLOCKS)
        return HALF * (12 * self.shape.dim**2 + self.shape.conditioning * listening) if self.how.half else 0

    def _encoder_work(self) -> int:
        """Return what the backward pass of a block of the conditioning encoder works on."""
        pairs = 0 if self.how.fused else 2 * WIDE * self.shape.heads * self.longest.frames
        results = self.clips * self.longest.frames * (6 * self.shape.dim * WIDE + pairs)
        return results + (self.encoder_block if self.again(ENCODER_BLOCKS) else 0)
