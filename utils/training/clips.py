"""Which clips are trained on, how long they are, and where they are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from torch import nn

from utils.config import TrainConfig
from utils.dataset.clip import Clip
from utils.dataset.features import Features
from utils.media.rates import CODE_SAMPLES, RATE
from utils.training.packing import AUDIO_EXTRA, PROMPT, TEXT_EXTRA, Example, Integers

SHORTEST = 0.5  # seconds; coqui refuses shorter ones too
HALF_SECOND_FRAMES = 43  # half a second; references are as long as a multiple of it, so that few shapes occur


class ClipLengths(NamedTuple):
    """How long the parts of many clips are; the same place in each array is one clip."""

    samples: Integers
    codes: Integers
    frames: Integers
    ids: Integers

    @property
    def positions(self) -> Integers:
        """Return how many positions each clip takes."""
        return PROMPT + TEXT_EXTRA + self.ids + AUDIO_EXTRA + self.codes

    def take(self, clips: Integers) -> "ClipLengths":
        """Return the lengths of some clips."""
        return ClipLengths(*(part[clips] for part in self))


class ClipSource(Protocol):
    """Clips that can be read by number."""

    @property
    def lengths(self) -> ClipLengths:
        """Return how long they are."""
        ...

    def read(self, clip: int, start: int, frames: int) -> Example:
        """Read one clip, with a reference of so many frames from a frame on."""
        ...


@dataclass(frozen=True)
class ClipLimits:
    """What a clip may be at most.

    Attributes:
        seconds: Length of its sound.
        text_tokens: Ids of its text.
        codes: Audio codes; 0: what the model can hold.
        model_text: Ids that the model has positions for.
        model_codes: Codes that the model has positions for.
    """

    seconds: float = 11.6
    text_tokens: int = 200
    codes: int = 0
    model_text: int = 402
    model_codes: int = 603

    @classmethod
    def of(cls, config: TrainConfig, gpt: nn.Module) -> Self:
        """Read them off the settings and coqui's GPT, which needs a position more at the end than we do."""
        model: Any = gpt
        text, audio = (int(part.emb.num_embeddings) for part in (model.text_pos_embedding, model.mel_pos_embedding))
        codes = config.max_mel_length if config.use_compile else 0
        return cls(config.max_audio_length, config.max_text_length, codes, text - 2, audio - AUDIO_EXTRA - 1)


class Usable(NamedTuple):
    """Which clips can be used, and why the others cannot."""

    kept: Integers
    reasons: dict[int, str]


def usable(lengths: ClipLengths, limits: ClipLimits) -> Usable:
    """Set aside what is too long or too short; nothing is ever cut."""
    seconds = lengths.samples / RATE
    codes = min(limits.codes or limits.model_codes, limits.model_codes)
    faults = {
        f"shorter than {SHORTEST} s": seconds < SHORTEST,
        f"longer than {limits.seconds:g} s (max_audio_length)": seconds > limits.seconds,
        f"more than {limits.text_tokens} tokens of text (max_text_length)": lengths.ids > limits.text_tokens,
        f"more than {limits.model_text} tokens of text, which is all that the model can hold": (
            lengths.ids > limits.model_text
        ),
        f"more than {codes} audio codes ({'max_mel_length' if limits.codes else 'all that the model can hold'})": (
            lengths.codes > codes
        ),
        "no text": lengths.ids < 1,
    }
    reasons: dict[int, str] = {}
    for reason, found in faults.items():
        for clip in np.flatnonzero(found).tolist():
            reasons.setdefault(clip, f"{_said(lengths, clip)}: {reason}")
    return Usable(np.setdiff1d(np.arange(len(seconds)), list(reasons)), reasons)


def _said(lengths: ClipLengths, clip: int) -> str:
    return f"{lengths.samples[clip] / RATE:.2f} s, {lengths.ids[clip]} tokens, {lengths.codes[clip]} codes"


class FeatureSource:
    """Clips of a feature store.

    Args:
        features: The store.
        clips: Clips that it holds.
    """

    def __init__(self, features: Features, clips: Sequence[Clip], lengths: ClipLengths | None = None) -> None:
        self.features, self.clips = features, clips
        self.lengths = _measured(features, clips) if lengths is None else lengths

    def read(self, clip: int, start: int, frames: int) -> Example:
        """Read one clip; of the mel, the reference alone."""
        found = self.features[self.clips[clip]]
        return Example(found.ids, found.codes[: self.lengths.codes[clip]], found.mel[start : start + frames])


class SelectedClips(NamedTuple):
    """The clips that are trained on, and those that are not, with the reason for each."""

    source: FeatureSource
    aside: list[tuple[Clip, str]]


def select_clips(features: Features, clips: Sequence[Clip], limits: ClipLimits) -> SelectedClips:
    """Take what is in the store and within the limits."""
    aside = [
        (clip, "no features: its sound or its text could not be encoded") for clip in clips if clip not in features
    ]
    stored = [clip for clip in clips if clip in features]
    lengths = _measured(features, stored)
    kept, reasons = usable(lengths, limits)
    aside += [(stored[number], reason) for number, reason in reasons.items()]
    return SelectedClips(
        FeatureSource(features, [stored[number] for number in kept.tolist()], lengths.take(kept)), aside
    )


def _measured(features: Features, clips: Sequence[Clip]) -> ClipLengths:
    """Gather the lengths of all clips."""
    table = np.array([features.lengths(clip) for clip in clips], np.int64).reshape(-1, 4)
    lengths = ClipLengths(*np.ascontiguousarray(table.T))
    # A length that is a multiple of 1024 gives the encoder one code more than coqui counts; coqui overwrites it too.
    return lengths._replace(codes=np.minimum(lengths.codes, -(-lengths.samples // CODE_SAMPLES)))
