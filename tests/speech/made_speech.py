"""Makes spoken pieces without a model: tones instead of voices."""

import numpy as np

from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech.joining import join, placed
from utils.speech.types import Speech, Spoken
from utils.xtts.tokenizer import TokenizedText


def tone(seconds: float, pitch: float = 220.0) -> Samples:
    """A sound that begins and ends at full loudness, so that a careless joint clicks."""
    return (0.5 * np.cos(2 * np.pi * pitch * np.arange(round(seconds * OUTPUT_RATE)) / OUTPUT_RATE)).astype(np.float32)


def voiced(pitch: float, seconds: float, rate: int = OUTPUT_RATE) -> Samples:
    """A vowel: all harmonics below 4 kHz, stronger around 700 and 1 800 Hz."""
    time = np.arange(round(seconds * rate)) / rate
    numbers = np.arange(1, int(4000 // pitch))
    strength = 0.1 / numbers + sum(np.exp(-(((pitch * numbers - formant) / 150) ** 2)) for formant in (700, 1800))
    waves = (weight * np.cos(2 * np.pi * pitch * n * time + n * n) for n, weight in zip(numbers, strength, strict=True))
    sound: Samples = np.sum(list(waves), axis=0).astype(np.float32)
    return sound * np.float32(0.3 / np.abs(sound).max())


def piece(text: str, seconds: float, *, pause: float = 0.0, start: float = 0.0, paragraph: int = 0) -> Spoken:
    reading = TokenizedText(text, text, text, text, (), (), ())
    codes = np.zeros(1, np.int64)
    return Spoken(reading, tone(seconds), codes, True, 0, start=start, pause=pause, paragraph=paragraph)


def speech(*pieces: Spoken) -> Speech:
    return Speech(placed(pieces), join(pieces), "voice", 0)
