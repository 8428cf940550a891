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

from utils.core.errors import RunError

PROMPT = 32  # latents that the perceiver returns for any reference
TEXT_EXTRA, AUDIO_EXTRA = 1, 4  # START; START and three STOP
MEL_BANDS = 80

Integers = npt.NDArray[np.int64]


class SpecialTokens(NamedTuple):
    """Start and stop tokens of text and audio."""

    start_text: int
    stop_text: int
    start_audio: int
    stop_audio: int

    @classmethod
    def from_model(cls, gpt: nn.Module) -> Self:
        """Read them from coqui's GPT."""
        values: Any = gpt
        return cls(values.start_text_token, values.stop_text_token, values.start_audio_token, values.stop_audio_token)


class Example(NamedTuple):
    """Features of one clip.

    Attributes:
        ids: Text tokens, without start and stop.
        codes: Audio codes, without start and stop.
        mel: Mel frames of the reference, 80 bands each.
    """

    ids: npt.NDArray[np.integer[Any]]
    codes: npt.NDArray[np.integer[Any]]
    mel: npt.NDArray[np.float16]


class RowLengths(NamedTuple):
    """Number of text positions, audio positions, and audio positions that count in the loss."""

    text: int
    audio: int
    counted: int


class PackedParts(NamedTuple):
    """Inputs, targets and their rows in the flattened matrix (``places``)."""

    text_ids: Tensor
    text_positions: Tensor
    text_places: Tensor
    text_targets: Tensor
    audio_ids: Tensor
    audio_positions: Tensor
    audio_places: Tensor
    counted_places: Tensor
    counted_targets: Tensor


PLACES = {"text_places", "audio_places", "counted_places"}


class LossSums(NamedTuple):
    """Cross-entropy summed over all positions that count."""

    text: Tensor
    audio: Tensor


@dataclass(frozen=True)
class PackedBatch:
    """A batch of clips, ready for the model.

    Attributes:
        mel: References in half precision, (rows, 80, frames); rows without a clip keep a fixed shape.
        numbers: All parts in one tensor, so that a batch moves to the device in two copies.
        rows: Lengths of the clips.
        length: Positions per row, including padding.
    """

    mel: Tensor
    numbers: Tensor
    rows: tuple[RowLengths, ...]
    length: int

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by value: shared memory is small in containers, and each tensor would be a file in it."""
        return _rebuild, (self.mel.numpy(), self.numbers.numpy(), self.rows, self.length)

    @property
    def clips(self) -> int:
        """Return the number of clips."""
        return len(self.rows)

    @property
    def text_count(self) -> int:
        """Return the number of positions that count in the text loss."""
        return sum(row.text for row in self.rows)

    @property
    def audio_count(self) -> int:
        """Return the number of positions that count in the audio loss."""
        return sum(row.counted for row in self.rows)

    @property
    def positions(self) -> int:
        """Return the number of positions without padding."""
        return sum(PROMPT + row.text + row.audio for row in self.rows)

    @property
    def padded(self) -> int:
        """Return the number of positions with padding."""
        return self.mel.shape[0] * self.length

    @property
    def parts(self) -> PackedParts:
        """Return views of the numbers."""
        sizes = np.array([_sizes(row) for row in self.rows], np.int64).reshape(-1, len(PackedParts._fields)).sum(0)
        return PackedParts(*torch.split(self.numbers, sizes.tolist()))

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "PackedBatch":
        """Move the batch to a device."""
        mel, numbers = (part.to(device, non_blocking=non_blocking) for part in (self.mel, self.numbers))
        return replace(self, mel=mel, numbers=numbers)

    def pin_memory(self) -> "PackedBatch":
        """Copy the batch to pinned memory."""
        return replace(self, mel=self.mel.pin_memory(), numbers=self.numbers.pin_memory())

    def halves(self) -> tuple["PackedBatch", "PackedBatch"]:
        """Split the batch in two; their losses and gradients add up to those of this one."""
        if self.clips < 2:
            raise RunError(
                f"A batch of one clip with {self.length} positions cannot be split.",
                hint="Lower max_audio_length, or turn on enable_grad_checkpoint or enable_lora.",
            )
        middle = (self.clips + 1) // 2
        return self._rows(0, middle), self._rows(middle, self.clips)

    def _rows(self, first: int, last: int) -> "PackedBatch":
        """Return some of the clips."""
        sizes = np.array([_sizes(row) for row in self.rows])
        starts, ends = sizes[:first].sum(0).tolist(), sizes[:last].sum(0).tolist()
        cut = [
            part[start:end] - first * self.length if name in PLACES else part[start:end]
            for name, part, start, end in zip(PackedParts._fields, self.parts, starts, ends, strict=True)
        ]
        return replace(self, mel=self.mel[first:last], numbers=torch.cat(cut), rows=self.rows[first:last])


def _rebuild(mel: npt.NDArray[np.float16], numbers: Integers, rows: tuple[RowLengths, ...], length: int) -> PackedBatch:
    return PackedBatch(torch.from_numpy(mel), torch.from_numpy(numbers), rows, length)


def _sizes(row: RowLengths) -> tuple[int, ...]:
    """Return the size of each part for a clip."""
    return (row.text,) * 4 + (row.audio,) * 3 + (row.counted,) * 2


def pack(
    examples: Sequence[Example],
    tokens: SpecialTokens,
    *,
    masked: Integers | None = None,
    length: int = 0,
    rows: int = 0,
) -> PackedBatch:
    """Pack clips into one batch.

    Args:
        examples: The clips; all references have the same length. Without clips, the batch has no loss.
        tokens: Start and stop tokens.
        masked: For each clip, start and end of the codes that are excluded from the loss.
        length: Minimum positions per row; by default those of the longest clip.
        rows: Minimum rows; by default one per clip.
    """
    marks = np.zeros((len(examples), 2), np.int64) if masked is None else masked
    needed = max((positions(len(one.codes), len(one.ids)) for one in examples), default=PROMPT)
    length = max(length, needed)
    frames = len(examples[0].mel) if examples else 1
    mel = np.zeros((max(rows, len(examples), 1), MEL_BANDS, frames), np.float16)
    packed = []
    for row, (one, (first, last)) in enumerate(zip(examples, marks.tolist(), strict=True)):
        mel[row] = one.mel.T
        packed.append(_parts(one, tokens, first, last, row * length + PROMPT))
    sizes = tuple(RowLengths(len(parts[0]), len(parts[4]), len(parts[8])) for parts in packed)
    numbers = np.concatenate([part for parts in zip(*packed, strict=True) for part in parts] or [np.zeros(0, np.int64)])
    return PackedBatch(torch.from_numpy(mel), torch.from_numpy(numbers), sizes, length)


def positions(codes: int, ids: int) -> int:
    """Return the sequence length of a clip."""
    return PROMPT + TEXT_EXTRA + ids + AUDIO_EXTRA + codes


def _parts(one: Example, tokens: SpecialTokens, first: int, last: int, place: int) -> tuple[Integers, ...]:
    """Return the parts of one clip in the order of ``PackedParts``; its text starts at row ``place``."""
    text = np.concatenate([[tokens.start_text], one.ids, [tokens.stop_text]])
    audio = np.concatenate([[tokens.start_audio], one.codes, [tokens.stop_audio] * AUDIO_EXTRA])
    text_at, audio_at = np.arange(text.size - 1), np.arange(audio.size - 1)
    counted = np.delete(audio_at, slice(first, last))
    behind = place + text_at.size
    return (
        *(text[:-1], text_at, place + text_at, text[1:]),
        *(audio[:-1], audio_at, behind + audio_at),
        *(behind + counted, audio[1:][counted]),
    )


class PackedGpt(nn.Module):
    """coqui's GPT with a different forward pass: the same modules, weights and loss."""

    def __init__(self, gpt: nn.Module, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.gpt: Any = gpt
        self.label_smoothing = label_smoothing

    def forward(self, batch: PackedBatch) -> LossSums:
        """Return the summed losses of a batch."""
        gpt, parts = self.gpt, batch.parts
        hidden = gpt.gpt(inputs_embeds=self._embedded(batch), attention_mask=None, use_cache=False).last_hidden_state
        flat = hidden.flatten(0, 1)
        return LossSums(
            self._loss(gpt.text_head, flat, parts.text_places, parts.text_targets),
            self._loss(gpt.mel_head, flat, parts.counted_places, parts.counted_targets),
        )

    def _embedded(self, batch: PackedBatch) -> Tensor:
        """Place the embeddings of prompt, text and audio in the matrix; the rest is zero."""
        gpt, parts = self.gpt, batch.parts
        text = gpt.text_embedding(parts.text_ids) + gpt.text_pos_embedding.emb(parts.text_positions)
        audio = gpt.mel_embedding(parts.audio_ids) + gpt.mel_pos_embedding.emb(parts.audio_positions)
        prompt = gpt.get_style_emb(batch.mel.float()).mT
        rows, latents, width = prompt.shape
        if latents != PROMPT:
            raise RunError(f"The model returns {latents} latents for a reference, not {PROMPT}.", hint="Use XTTS v2.")
        matrix = torch.zeros(rows * batch.length, width, dtype=text.dtype, device=text.device)
        matrix = matrix.index_copy(0, torch.cat([parts.text_places, parts.audio_places]), torch.cat([text, audio]))
        matrix = matrix.view(rows, batch.length, width)
        return torch.cat([prompt.to(text.dtype), matrix[:, PROMPT:]], dim=1)

    def _loss(self, head: nn.Module, hidden: Tensor, places: Tensor, targets: Tensor) -> Tensor:
        """Apply a head to the positions that count."""
        logits = head(self.gpt.final_norm(hidden.index_select(0, places)))
        return F.cross_entropy(logits.float(), targets, reduction="sum", label_smoothing=self.label_smoothing)
