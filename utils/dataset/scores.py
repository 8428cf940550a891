"""Measure clips without knowing what is said in them, and judge by the measurements which are left out."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from utils.config import DatasetConfig
from utils.dataset.clip import Clip, Scores, Span
from utils.dataset.signal_checks import plateau_share
from utils.media.audio import Samples
from utils.media.loudness import loudness

FRAME_SECONDS = 0.016
SILENCE = 1e-10  # power: -100 dB, the floor of 16 bits; below it every pause is equally quiet
FULL_SCALE = 0.99  # a clipped peak that was resampled or stored with loss is no longer exactly 1
MIN_PAUSE_FRAMES = 5
EPSILON = 1e-3  # seconds: a clip of exactly the limit, rounded to samples, is within it
QUIET_SHARE = 0.1  # without a pause the quietest tenth, closures of consonants mostly, stands in for the noise


def measure(samples: Samples, rate: int, speech: Sequence[Span], text: str) -> Scores:
    """Measure a clip before its loudness is changed; its speech is in seconds from its first sample."""
    seconds = samples.size / rate
    spoken = sum(max(0.0, min(seconds, span.end) - max(0.0, span.start)) for span in speech)
    return Scores(
        speech_ratio=min(1.0, spoken / seconds) if seconds else 0.0,
        snr_db=signal_to_noise(samples, rate, speech),
        clipping=max(float(np.mean(np.abs(samples) >= FULL_SCALE)), plateau_share(samples)) if samples.size else 0.0,
        loudness_lufs=loudness(samples, rate),
        chars_per_second=letters(text) / seconds if text and seconds else None,
    )


def letters(text: str) -> int:
    """Count letters and digits; punctuation and spaces take no time."""
    return sum(map(str.isalnum, text))


def signal_to_noise(samples: Samples, rate: int, speech: Sequence[Span]) -> float | None:
    """Estimate how far the speech stands above the noise in its pauses, in dB; None without speech."""
    size = max(1, round(FRAME_SECONDS * rate))
    frames = samples[: samples.size - samples.size % size].reshape(-1, size)
    power = np.maximum(np.einsum("ij,ij->i", frames, frames) / size - frames.mean(axis=1) ** 2, 0.0)
    inside = np.zeros(power.size, np.bool_)  # the frames that touch speech
    for span in speech:
        first, end = math.floor(span.start / (size / rate)), math.ceil(span.end / (size / rate))
        inside[max(0, first) : max(0, end)] = True
    if not inside.any():
        return None
    pauses = power[~inside]
    if pauses.size < MIN_PAUSE_FRAMES:
        pauses = np.sort(power)[: math.ceil(power.size * QUIET_SHARE)]
    noise = max(SILENCE, float(np.median(pauses)))
    signal = max(SILENCE, float(power[inside].mean()) - noise)
    return 10 * math.log10(signal / noise)


def _below(score: float | None, limit: float) -> bool:
    return score is not None and score < limit


def _above(score: float | None, limit: float) -> bool:
    return score is not None and score > limit


# A reason is always the same words, so that the statistics can add up what each rule costs. What was not measured is
# not judged. The first rule that applies gives the reason, so the table begins with what no setting would correct.
RULES: dict[str, Callable[[Clip, DatasetConfig], bool]] = {
    "too short": lambda clip, limits: clip.span.seconds < limits.min_seconds - EPSILON,
    "too long": lambda clip, limits: clip.span.seconds > limits.max_seconds + EPSILON,
    "no speech": lambda clip, limits: _below(clip.scores.speech_ratio, limits.min_speech_ratio),
    "clipped": lambda clip, limits: _above(clip.scores.clipping, limits.max_clipping),
    "noisy": lambda clip, limits: _below(clip.scores.snr_db, limits.min_snr_db),
    "empty text": lambda clip, _: not letters(clip.text),
    "too fast": lambda clip, limits: _above(clip.scores.chars_per_second, limits.max_chars_per_second),
    "too slow": lambda clip, limits: _below(clip.scores.chars_per_second, limits.min_chars_per_second),
    "low confidence": lambda clip, limits: _below(clip.scores.confidence, limits.min_confidence),
    "recognisers disagree": lambda clip, limits: _above(clip.scores.second_cer, limits.max_second_cer),
}
REASONS = frozenset(RULES)


def judge(clip: Clip, settings: DatasetConfig) -> str:
    """Return why a clip is excluded; empty when it is kept."""
    return next((reason for reason, applies in RULES.items() if applies(clip, settings)), "")
