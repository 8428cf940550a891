"""What a training step keeps in memory, counted from the structure of coqui's GPT: weights, and what backward needs.

Every count here has a test that compares it with the live modules.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from utils.media.rates import CODE_SAMPLES, FRAME_SAMPLES, RATE
from utils.training.clips import HALF_SECOND_FRAMES, ClipLengths
from utils.training.packing import AUDIO_EXTRA, MEL_BANDS, PROMPT, TEXT_EXTRA

if TYPE_CHECKING:
    from torch import nn

ENCODER_BLOCKS = 6
PERCEIVER_LAYERS, PERCEIVER_HEADS, HEAD_WIDTH = 2, 8, 64
INNER = PERCEIVER_HEADS * HEAD_WIDTH  # width of the perceiver's attention, whatever the model's
PUBLISHED_ROWS = 6681  # text rows of v2.0.2
REFERENCE_FRAMES = 12 * HALF_SECOND_FRAMES  # six seconds
NUMBERS = 9 * 8  # bytes of a position's ids, places and targets
WIDE, HALF = 4, 2  # bytes of a number in fp32, and in fp16 or bf16


@dataclass(frozen=True)
class ModelShape:
    """The sizes that decide about memory; the defaults are those of the published XTTS v2.

    Attributes:
        layers: Blocks of the GPT.
        dim: Its width.
        heads: Its attention heads, and those of the conditioning encoder.
        text_rows: Vocabulary of the text.
        audio_rows: Audio codes with start and stop.
        text_positions: Rows of the text's position embedding.
        audio_positions: Rows of the audio's position embedding.
    """

    layers: int = 30
    dim: int = 1024
    heads: int = 16
    text_rows: int = PUBLISHED_ROWS
    audio_rows: int = 1026
    text_positions: int = 404
    audio_positions: int = 608

    @classmethod
    def of(cls, gpt: "nn.Module") -> Self:
        """Read the sizes off coqui's GPT."""
        model: Any = gpt
        return cls(
            layers=model.layers,
            dim=model.model_dim,
            heads=model.heads,
            text_rows=model.text_embedding.num_embeddings,
            audio_rows=model.mel_embedding.num_embeddings,
            text_positions=model.text_pos_embedding.emb.num_embeddings,
            audio_positions=model.mel_pos_embedding.emb.num_embeddings,
        )

    @property
    def layer(self) -> int:
        """Parameters of one block: attention 4 d² and MLP 8 d², their biases, two norms."""
        return 12 * self.dim**2 + 13 * self.dim

    @property
    def conditioning(self) -> int:
        """Parameters of the conditioning encoder and the perceiver."""
        dim, inner = self.dim, int(self.dim * 8 / 3)
        block = 4 * dim**2 + 6 * dim
        layer = 4 * INNER * dim + 3 * inner * dim + 2 * inner + dim
        return (MEL_BANDS + 1) * dim + ENCODER_BLOCKS * block + (PROMPT + 1) * dim + PERCEIVER_LAYERS * layer

    @property
    def text(self) -> int:
        """Parameters of the rows of the text: embedding and head."""
        return self.text_rows * (2 * self.dim + 1)

    @property
    def positions(self) -> int:
        """Parameters of both position embeddings."""
        return (self.text_positions + self.audio_positions) * self.dim

    @property
    def parameters(self) -> int:
        """All parameters."""
        audio = self.audio_rows * (2 * self.dim + 1)
        norms = 4 * self.dim
        return self.layers * self.layer + self.conditioning + self.text + audio + self.positions + norms


@dataclass(frozen=True)
class Longest:
    """The longest clip that a run may meet.

    Attributes:
        positions: Length of its sequence: prompt, text and audio.
        frames: Mel frames of its reference.
        text: Positions of the text that are counted in the loss.
        audio: Positions of the audio that are counted in the loss.
    """

    positions: int
    frames: int
    text: int
    audio: int

    @classmethod
    def allowed(cls, seconds: float, tokens: int) -> Self:
        """Return what the longest clip comes to that the settings let in."""
        samples = seconds * RATE
        return cls._sized(math.ceil(samples / CODE_SAMPLES), tokens, math.ceil(samples / FRAME_SAMPLES))

    @classmethod
    def of(cls, lengths: ClipLengths) -> Self:
        """Return the longest of each part that these clips have."""
        longest = cls._sized(int(lengths.codes.max()), int(lengths.ids.max()), int(lengths.frames.max()))
        return replace(longest, positions=int(lengths.positions.max()))

    @classmethod
    def _sized(cls, codes: int, ids: int, frames: int) -> Self:
        text, audio = ids + TEXT_EXTRA, codes + AUDIO_EXTRA
        return cls(PROMPT + text + audio, min(frames, REFERENCE_FRAMES), text, audio)


@dataclass(frozen=True)
class Arithmetic:
    """How a step computes, as far as memory is concerned.

    Attributes:
        kind: Of the device.
        half: Whether matrix products run in half precision, under autocast.
        fused: Whether attention is fused, so that its weights are never stored.
        dropout: Whether activations are dropped.
        fused_gelu: Whether the activation function keeps its input alone.
        byte_dropout: Whether a CPU remembers in a byte whether a number was dropped.
    """

    kind: Literal["cuda", "cpu"] = "cpu"
    half: bool = False
    fused: bool = True
    dropout: bool = False
    fused_gelu: bool = False
    byte_dropout: bool = False

    @property
    def narrow(self) -> int:
        """Bytes of a number that enters a matrix product."""
        return HALF if self.half else WIDE

    @property
    def noise(self) -> int:
        """Bytes that remember whether a number was dropped; torch keeps a byte on a GPU, the factor on a CPU."""
        if not self.dropout:
            return 0
        return 1 if self.kind == "cuda" or self.byte_dropout else self.narrow

    @property
    def gelu(self) -> int:
        """Bytes that the activation function keeps of one number: its input, or four intermediate results.

        Under autocast a GPU computes the power in fp32, and three of the four inherit that.
        """
        if self.fused_gelu:
            return self.narrow
        if self.half and self.kind == "cuda":
            return 3 * WIDE + HALF
        return 4 * self.narrow

    @property
    def flash(self) -> bool:
        """Whether the fused kernel really acts; that of the CPU knows no dropout and gives way to plain attention."""
        return self.fused and not (self.kind == "cpu" and self.dropout)

    @property
    def pair(self) -> int:
        """Bytes kept for each pair of positions and head in plain attention."""
        if self.dropout and self.byte_dropout:
            return WIDE + self.noise
        softmax, rest = WIDE, HALF if self.half else 0
        return softmax + rest + (self.noise + (0 if self.half else WIDE) if self.dropout else 0)


def block_bytes(
    shape: ModelShape, how: Arithmetic, clips: int, positions: int, *, attention: bool = True, between: bool = True
) -> int:
    """Return what one block of the GPT keeps for backward.

    Args:
        shape: The model.
        how: The arithmetic.
        clips: Sequences side by side.
        positions: Length of each.
        attention: Whether the matrices of the attention are trained; the input of a frozen product is not kept.
        between: Whether those between the attentions are.
    """
    dim = shape.dim
    norms = 2 * (WIDE * dim + 2 * WIDE)  # the residual stream stays in fp32; mean and deviation
    inputs = ((2 if attention else 0) + (5 if between else 0)) * dim * how.narrow
    heads = 3 * dim * how.narrow
    if how.flash:
        heads += WIDE * shape.heads + (0 if attention else dim * how.narrow)  # it keeps its own result
    pairs = 0 if how.flash else shape.heads * positions * how.pair
    row = norms + inputs + heads + 4 * dim * how.gelu + 2 * dim * how.noise
    return clips * positions * (row + pairs)


def encoder_block_bytes(shape: ModelShape, how: Arithmetic, clips: int, frames: int) -> int:
    """Return what one block of the conditioning encoder keeps for backward; it drops nothing."""
    dim = shape.dim
    if how.fused:
        row = WIDE * dim + 5 * dim * how.narrow + WIDE * shape.heads
    else:  # coqui scales copies of queries and keys, and its softmax stays in fp32
        row = WIDE * dim + 7 * dim * how.narrow + shape.heads * frames * (WIDE + (HALF if how.half else 0))
    return clips * frames * row


def perceiver_bytes(shape: ModelShape, how: Arithmetic, clips: int, frames: int) -> int:
    """Return what the perceiver keeps for backward."""
    dim, inner, context = shape.dim, int(shape.dim * 8 / 3), frames + PROMPT
    keys = context * (dim + 2 * INNER) * how.narrow
    pairs = PERCEIVER_HEADS * PROMPT * (WIDE if how.fused else context * how.narrow)
    rows = PROMPT * (2 * dim + 2 * INNER + 4 * inner) * how.narrow
    return clips * (PERCEIVER_LAYERS * (keys + pairs + rows) + PROMPT * dim * 2 * WIDE)


def head_bytes(shape: ModelShape, how: Arithmetic, clips: int, longest: Longest) -> int:
    """Return what the ends of the model keep for backward: embedding, last norms, heads and loss."""
    counted = longest.text + longest.audio
    rows = longest.positions * (shape.dim * (WIDE + how.noise) + 2 * WIDE + NUMBERS)
    inputs = counted * (shape.dim * (WIDE + how.narrow) + 2 * WIDE)
    return clips * (rows + inputs) + logit_bytes(shape, clips, longest)


def logit_bytes(shape: ModelShape, clips: int, longest: Longest) -> int:
    """Return what one number in fp32 takes for each position that counts and each token that it could be."""
    return clips * WIDE * (longest.text * shape.text_rows + longest.audio * shape.audio_rows)
