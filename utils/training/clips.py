"""The clips of a run: their lengths, which of them can be used, and how they are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from torch import nn

from utils.config import AUTO_SECONDS, MODEL_TOKENS, TrainConfig
from utils.dataset.clip import Clip
from utils.dataset.features import FeatureStore
from utils.media.arrays import Int64Array
from utils.media.rates import CODE_SAMPLES, RATE
from utils.training.facts import Aside, Exclusion
from utils.training.packing import AUDIO_EXTRA, AUDIO_POSITIONS, MAX_CODES, PROMPT, TEXT_EXTRA, Example, audio_inputs

MIN_SECONDS = 0.5  # coqui refuses shorter clips too
HALF_SECOND_FRAMES = 43  # references are multiples of half a second, so that few shapes occur

Exceeded = tuple[Exclusion, float]  # a limit and its value


class ClipLengths(NamedTuple):
    """Lengths of many clips, one array per part."""

    samples: Int64Array
    codes: Int64Array
    frames: Int64Array
    ids: Int64Array

    @property
    def positions(self) -> Int64Array:
        """The sequence length of each clip."""
        return PROMPT + TEXT_EXTRA + self.ids + audio_inputs(self.codes)

    def select(self, clips: Int64Array) -> "ClipLengths":
        return ClipLengths(*(part[clips] for part in self))


@dataclass(frozen=True)
class ClipLimits:
    """Maximum lengths of a clip."""

    seconds: float = AUTO_SECONDS
    text_tokens: int = MODEL_TOKENS
    codes: int = 0  # 0 for the model's maximum
    model_text: int = MODEL_TOKENS  # positions that the model has
    model_codes: int = MAX_CODES

    @classmethod
    def from_config(cls, config: TrainConfig, gpt: nn.Module) -> Self:
        """Read the limits from the settings and the model."""
        model: Any = gpt
        text, audio = (int(part.emb.num_embeddings) for part in (model.text_pos_embedding, model.mel_pos_embedding))
        codes = config.max_mel_length if config.use_compile else 0
        held = MAX_CODES if audio >= AUDIO_POSITIONS else audio - AUDIO_EXTRA
        return cls(config.max_audio_length, config.max_text_length, codes, text - 2, held)


def usable(lengths: ClipLengths, limits: ClipLimits) -> tuple[Int64Array, dict[int, Exceeded]]:
    """Return the clips within the limits, and for each other clip the limit that it exceeds. Clips are never cut."""
    seconds = lengths.samples / RATE
    codes = min(limits.codes or limits.model_codes, limits.model_codes)
    problems: dict[Exceeded, Any] = {
        ("too_short", MIN_SECONDS): seconds < MIN_SECONDS,
        ("too_long", limits.seconds): seconds > limits.seconds,
        ("long_text", limits.text_tokens): lengths.ids > limits.text_tokens,
        ("model_text", limits.model_text): lengths.ids > limits.model_text,
        ("many_codes", codes): lengths.codes > codes,
        ("no_text", 1): lengths.ids < 1,
    }
    reasons: dict[int, Exceeded] = {}
    for reason, affected in problems.items():
        for clip in np.flatnonzero(affected).tolist():
            reasons.setdefault(clip, reason)
    return np.flatnonzero(~np.any(list(problems.values()), axis=0)), reasons


class FeatureSource:
    """Reads clips from a feature store."""

    def __init__(self, features: FeatureStore, clips: Sequence[Clip], lengths: ClipLengths | None = None) -> None:
        self.features = features
        self.clips = clips
        self.lengths = lengths or _read_lengths(features, clips)

    def read(self, clip: int, reference: int, start: int, frames: int) -> Example:
        """Read a clip, and the mel frames of its reference, which another clip may be."""
        stored = self.features[self.clips[clip]]
        mel = (stored if reference == clip else self.features[self.clips[reference]]).mel
        return Example(stored.ids, stored.codes[: self.lengths.codes[clip]], mel[start : start + frames])


class JoinedSource(FeatureSource):
    """Several sources as one; the clips of each follow those of the one before."""

    def __init__(self, parts: Sequence[FeatureSource]) -> None:
        self.parts = parts
        self.clips = [clip for part in parts for clip in part.clips]
        self.lengths = ClipLengths(*map(np.concatenate, zip(*(part.lengths for part in parts), strict=True)))
        self.ends = np.cumsum([len(part.clips) for part in parts])

    def read(self, clip: int, reference: int, start: int, frames: int) -> Example:
        """Read a clip; its reference is of the same source."""
        number = int(np.searchsorted(self.ends, clip, side="right"))
        first = int(self.ends[number]) - len(self.parts[number].clips)
        return self.parts[number].read(clip - first, reference - first, start, frames)


def _read_lengths(features: FeatureStore, clips: Sequence[Clip]) -> ClipLengths:
    table = np.array([features.lengths(clip) for clip in clips], np.int64).reshape(-1, 4)
    lengths = ClipLengths(*np.ascontiguousarray(table.T))
    # For lengths that are a multiple of 1024, the encoder returns one code more than coqui uses.
    return lengths._replace(codes=np.minimum(lengths.codes, -(-lengths.samples // CODE_SAMPLES)))


def select_clips(
    features: FeatureStore, clips: Sequence[Clip], limits: ClipLimits
) -> tuple[FeatureSource, list[Aside]]:
    """Select the clips that are in the store and within the limits; return the others with their reasons."""
    excluded = [Aside(clip.audio, "no_features") for clip in clips if clip not in features]
    stored = [clip for clip in clips if clip in features]
    lengths = _read_lengths(features, stored)
    numbers, reasons = usable(lengths, limits)
    for number, (reason, limit) in reasons.items():
        size = lengths.samples[number] / RATE, int(lengths.ids[number]), int(lengths.codes[number])
        excluded.append(Aside(stored[number].audio, reason, float(limit), *size))
    return FeatureSource(features, [stored[number] for number in numbers.tolist()], lengths.select(numbers)), excluded
