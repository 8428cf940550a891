"""Measure how a clip sounds: speech, noise, clipping, loudness and speed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.media.audio import Samples
from utils.media.loudness import loudness
from utils.recognition.rumble import powers, steadied
from utils.recognition.signal_checks import plateau_share, windows
from utils.recognition.spans import Span

FRAME_SECONDS = 0.016
SILENCE = 1e-10  # power: -100 dB, the floor of 16 bits; below it every pause is equally quiet
FULL_SCALE = 0.99  # a clipped peak that was resampled or stored with loss is no longer exactly 1
MIN_PAUSE_FRAMES = 5
QUIET_SHARE = 0.1  # without a pause the quietest tenth, closures of consonants mostly, stands in for the noise


@dataclass(frozen=True, slots=True)
class ClipScores:
    """Measurements of a clip; None means not measured."""

    speech_ratio: float | None = None  # share of the clip that is speech
    snr_db: float | None = None  # level of the speech over the level of the pauses
    clipping: float | None = None  # share of samples at full scale
    loudness_lufs: float | None = None  # ITU-R BS.1770
    chars_per_second: float | None = None  # letters of the text
    confidence: float | None = None  # of the recogniser, 0 to 1
    second_cer: float | None = None  # character error rate against a second recogniser
    text_match: float | None = None  # how well the text explains the sound, per phone; 0 is best


NOT_MEASURED = ClipScores()


def measure(samples: Samples, rate: int, speech: Sequence[Span], text: str) -> ClipScores:
    """Measure a clip before its loudness is changed; its speech is in seconds from its first sample.

    What lies below the voice is no noise. Clipping is measured with it, because a filter would bend the plateaus.
    """
    seconds = samples.size / rate
    voice = steadied(samples, rate)
    spoken = sum(max(0.0, span.within(0.0, seconds).seconds) for span in speech)
    return ClipScores(
        speech_ratio=min(1.0, spoken / seconds) if seconds else 0.0,
        snr_db=signal_to_noise(voice, rate, speech),
        clipping=clipping(samples),
        loudness_lufs=loudness(voice, rate),
        chars_per_second=letters(text) / seconds if text and seconds else None,
    )


def clipping(samples: Samples) -> float:
    """Return the share of samples at full scale, or on a plateau of the sound without its offset."""
    if not samples.size:
        return 0.0
    return max(float(np.mean(np.abs(samples) >= FULL_SCALE)), plateau_share(samples - samples.mean()))


def letters(text: str) -> int:
    """Count letters and digits; punctuation and spaces take no time."""
    return sum(map(str.isalnum, text))


def signal_to_noise(samples: Samples, rate: int, speech: Sequence[Span]) -> float | None:
    """Estimate how far the speech stands above the noise in its pauses, in dB; None without speech."""
    size = max(1, round(FRAME_SECONDS * rate))
    seconds = size / rate
    power = np.maximum(powers(windows(samples, size)), 0.0)
    inside = np.zeros(power.size, np.bool_)  # the frames that touch speech
    for span in speech:
        inside[max(0, math.floor(span.start / seconds)) : math.ceil(max(0.0, span.end) / seconds)] = True
    if not inside.any():
        return None
    pauses = power[~inside]
    if pauses.size < MIN_PAUSE_FRAMES:
        pauses = np.sort(power)[: math.ceil(power.size * QUIET_SHARE)]
    noise = max(SILENCE, float(np.median(pauses)))
    signal = max(SILENCE, float(power[inside].mean()) - noise)
    return 10 * math.log10(signal / noise)
