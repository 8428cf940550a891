"""Pack clips as rows of one matrix: prompt | text | audio | padding, with plain causal attention and no mask.

coqui's ``GPT.forward`` pads the text in the middle of a row and has to mask that padding. Text and audio have separate
position embeddings, so the loss is the same when the padding is at the end, where no position attends to it.
For a clip with l ids and n codes, coqui's inputs are START ids | START codes STOP STOP STOP and its targets ids STOP |
codes STOP STOP STOP STOP; so are ours. Two differences are deliberate, because upstream has bugs:

* In a batch, coqui excludes the reference from the loss for the last clip only (a leftover loop index).
* It measures the reference in mel frames of 256 samples, but a target is a code of 1024 samples: it excludes the wrong
  codes, four times too many, and most of them are beyond the end of the clip.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

from utils.media.arrays import Float16Array, Int64Array
from utils.training.errors import SettingRefusedError
from utils.xtts.device import UNTESTED

PROMPT = 32  # latents that the perceiver returns for any reference
TEXT_EXTRA = 1  # START
AUDIO_EXTRA = 4  # START and three STOP
AUDIO_POSITIONS = 608  # of the model: the longest clip, of 605 codes, has room for two STOP
MAX_CODES = 605
MEL_BANDS = 80


def audio_inputs(codes: Int64Array) -> Int64Array:
    """Return the audio positions of clips: START, the codes, and as many of three STOP as there is room for."""
    return np.minimum(codes + AUDIO_EXTRA, AUDIO_POSITIONS)


class SpecialTokens(NamedTuple):
    """Start and stop tokens of text and audio."""

    start_text: int
    stop_text: int
    start_audio: int
    stop_audio: int

    @classmethod
    def from_model(cls, gpt: nn.Module) -> Self:
        values: Any = gpt
        return cls(values.start_text_token, values.stop_text_token, values.start_audio_token, values.stop_audio_token)


class Example(NamedTuple):
    """Features of one clip."""

    ids: npt.NDArray[np.integer[Any]]  # text tokens, without start and stop
    codes: npt.NDArray[np.integer[Any]]  # audio codes, without start and stop
    mel: Float16Array  # mel frames of the reference, 80 bands each


class RowLengths(NamedTuple):
    """Number of text positions, audio positions, and audio positions that count in the loss."""

    text: int
    audio: int
    counted: int

    @property
    def parts(self) -> tuple[int, ...]:
        return (self.text,) * 4 + (self.audio,) * 3 + (self.counted,) * 2


class PackedParts(NamedTuple):
    """Inputs, targets, and where they are in the flattened matrix (``_index``)."""

    text_ids: Tensor
    text_positions: Tensor
    text_index: Tensor
    text_targets: Tensor
    audio_ids: Tensor
    audio_positions: Tensor
    audio_index: Tensor
    counted_index: Tensor
    counted_targets: Tensor


class LossSums(NamedTuple):
    """Cross-entropy summed over all positions that count."""

    text: Tensor
    audio: Tensor


@dataclass(frozen=True)
class PackedBatch:
    """A batch of clips, ready for the model."""

    mel: Tensor  # references in half precision, (rows, 80, frames); rows without a clip keep a fixed shape
    numbers: Tensor  # all parts in one tensor, so that a batch moves to the device in two copies
    rows: tuple[RowLengths, ...]  # of the clips
    length: int  # positions per row, including padding

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by value: shared memory is small in containers, and each tensor would be a file in it."""
        return _rebuild, (self.mel.numpy(), self.numbers.numpy(), self.rows, self.length)

    @property
    def clips(self) -> int:
        return len(self.rows)

    @property
    def text_count(self) -> int:
        """Positions that count in the text loss."""
        return sum(row.text for row in self.rows)

    @property
    def audio_count(self) -> int:
        """Positions that count in the audio loss."""
        return sum(row.counted for row in self.rows)

    @property
    def positions(self) -> int:
        """Positions without padding."""
        return sum(PROMPT + row.text + row.audio for row in self.rows)

    @property
    def padded(self) -> int:
        """Positions with padding."""
        return self.mel.shape[0] * self.length

    @property
    def parts(self) -> PackedParts:
        sizes = np.array([row.parts for row in self.rows], np.int64).reshape(-1, len(PackedParts._fields)).sum(0)
        return PackedParts(*torch.split(self.numbers, sizes.tolist()))

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "PackedBatch":
        # Apple's and Intel's GPUs may still read memory that has been freed.
        non_blocking = non_blocking and torch.device(device).type not in UNTESTED
        mel, numbers = (part.to(device, non_blocking=non_blocking) for part in (self.mel, self.numbers))
        return replace(self, mel=mel, numbers=numbers)

    def pin_memory(self) -> "PackedBatch":
        return replace(self, mel=self.mel.pin_memory(), numbers=self.numbers.pin_memory())

    def halves(self) -> tuple["PackedBatch", "PackedBatch"]:
        """Split a batch of two or more clips; the losses and gradients of both parts add up to those of this one."""
        middle = (self.clips + 1) // 2
        return self._slice(0, middle), self._slice(middle, self.clips)

    def _slice(self, first: int, last: int) -> "PackedBatch":
        sizes = np.array([row.parts for row in self.rows])
        starts = sizes[:first].sum(0).tolist()
        ends = sizes[:last].sum(0).tolist()
        parts = [
            part[start:end] - first * self.length if name.endswith("_index") else part[start:end]
            for name, part, start, end in zip(PackedParts._fields, self.parts, starts, ends, strict=True)
        ]
        return replace(self, mel=self.mel[first:last], numbers=torch.cat(parts), rows=self.rows[first:last])


def _rebuild(mel: Float16Array, numbers: Int64Array, rows: tuple[RowLengths, ...], length: int) -> PackedBatch:
    return PackedBatch(torch.from_numpy(mel), torch.from_numpy(numbers), rows, length)


def pack(
    examples: Sequence[Example],
    tokens: SpecialTokens,
    *,
    masked: Int64Array | None = None,
    length: int = 0,
    rows: int = 0,
) -> PackedBatch:
    """Pack clips, whose references have the same length, into one batch; without clips, it has no loss.

    ``masked`` has, for each clip, start and end of the codes that are excluded from the loss. ``length`` and ``rows``
    are minima.
    """
    marks = [(0, 0)] * len(examples) if masked is None else masked.tolist()
    extra = PROMPT + TEXT_EXTRA + AUDIO_EXTRA
    sizes = (extra + len(ids) + min(len(codes), MAX_CODES - 1) for ids, codes, _ in examples)
    length = max([length, PROMPT, *sizes])
    starts = range(PROMPT, PROMPT + length * len(examples), length)
    packed = [_pack_clip(*each, tokens) for each in zip(examples, marks, starts, strict=True)]
    return _rebuild(_references(examples, rows), _by_part(packed), tuple(map(_row_lengths, packed)), length)


def _references(examples: Sequence[Example], rows: int) -> Float16Array:
    mel = np.zeros((max(rows, len(examples), 1), MEL_BANDS, len(examples[0].mel) if examples else 1), np.float16)
    for row, example in enumerate(examples):
        mel[row] = example.mel.T
    return mel


def _by_part(packed: Sequence[tuple[Int64Array, ...]]) -> Int64Array:
    """Join the first part of all clips, then the second, and so on."""
    return np.concatenate([part for parts in zip(*packed, strict=True) for part in parts] or [np.zeros(0, np.int64)])


def _row_lengths(parts: Sequence[Int64Array]) -> RowLengths:
    return RowLengths(len(parts[0]), len(parts[4]), len(parts[8]))


def _pack_clip(example: Example, masked: Sequence[int], start: int, tokens: SpecialTokens) -> tuple[Int64Array, ...]:
    """Return the ``PackedParts`` of one clip, whose text begins at ``start``."""
    text = np.concatenate([[tokens.start_text], example.ids, [tokens.stop_text]])
    extra = min(AUDIO_EXTRA, AUDIO_POSITIONS - len(example.codes))
    audio = np.concatenate([[tokens.start_audio], example.codes, [tokens.stop_audio] * extra])
    text_positions = np.arange(text.size - 1)
    audio_positions = np.arange(audio.size - 1)
    counted = np.delete(audio_positions, slice(*masked))
    audio_start = start + text_positions.size
    return (
        text[:-1],
        text_positions,
        start + text_positions,
        text[1:],
        audio[:-1],
        audio_positions,
        audio_start + audio_positions,
        audio_start + counted,
        audio[1:][counted],
    )


class PackedGpt(nn.Module):
    """coqui's GPT with a different forward pass: the same modules, weights and loss."""

    def __init__(self, gpt: nn.Module, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.gpt: Any = gpt
        self.label_smoothing = label_smoothing

    def forward(self, batch: PackedBatch) -> LossSums:
        gpt = self.gpt
        parts = batch.parts
        flat = self._layers(self._embed(batch)).flatten(0, 1)
        return LossSums(
            self._loss(gpt.text_head, flat, parts.text_index, parts.text_targets),
            self._loss(gpt.mel_head, flat, parts.counted_index, parts.counted_targets),
        )

    def _layers(self, hidden: Tensor) -> Tensor:
        """Run the GPT-2. transformers' own forward asks the device for each batch whether its rows are packed."""
        gpt2 = self.gpt.gpt
        mask = None
        if gpt2.config._attn_implementation == "eager":  # noqa: SLF001  # the fused kernels know that they are causal
            length = hidden.shape[1]
            lowest = torch.finfo(hidden.dtype).min
            mask = torch.full((length, length), lowest, dtype=hidden.dtype, device=hidden.device).triu(1)[None, None]
        hidden = gpt2.drop(hidden)
        for block in gpt2.h:
            hidden = block(hidden, None, mask)
        output: Tensor = gpt2.ln_f(hidden)
        return output

    def _embed(self, batch: PackedBatch) -> Tensor:
        """Put the embeddings of prompt, text and audio into the matrix; the rest is zero."""
        gpt = self.gpt
        parts = batch.parts
        text = gpt.text_embedding(parts.text_ids) + gpt.text_pos_embedding.emb(parts.text_positions)
        audio = gpt.mel_embedding(parts.audio_ids) + gpt.mel_pos_embedding.emb(parts.audio_positions)
        prompt = gpt.get_style_emb(batch.mel.float()).mT
        rows, latents, width = prompt.shape
        if latents != PROMPT:
            raise SettingRefusedError("custom_model", "not_xtts", f"{latents} latents")
        matrix = torch.zeros(rows * batch.length, width, dtype=text.dtype, device=text.device)
        matrix = matrix.index_copy(0, torch.cat([parts.text_index, parts.audio_index]), torch.cat([text, audio]))
        matrix = matrix.view(rows, batch.length, width)
        return torch.cat([prompt.to(text.dtype), matrix[:, PROMPT:]], dim=1)

    def _loss(self, head: nn.Module, hidden: Tensor, index: Tensor, targets: Tensor) -> Tensor:
        logits = head(self.gpt.final_norm(hidden.index_select(0, index)))
        return F.cross_entropy(logits.float(), targets, reduction="sum", label_smoothing=self.label_smoothing)
