"""Utterances without a model: tones instead of voices."""

from dataclasses import replace

import numpy as np

from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech.types import Sentence, Speech, Utterance, join, start_times
from utils.xtts.language_packs import pack_for
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


def reading(text: str, language: str = "am") -> TokenizedText:
    """Read a text as a model does, without its ids."""
    pack = pack_for(language)
    normalized = pack.normalize(text)
    return TokenizedText(text, normalized, pack.phonemize(normalized), "", (), (), ())


def utterance(text: str, seconds: float, *, pause: float = 0.0, chapter: str | None = None) -> Utterance:
    tokenized = TokenizedText(text, text, text, text, (), (), ())
    return Utterance(Sentence(tokenized, pause=pause, chapter=chapter), tone(seconds), np.zeros(1, np.int64), True)


def speech(*utterances: Utterance) -> Speech:
    placed = (replace(each, start=start) for each, start in zip(utterances, start_times(utterances), strict=True))
    return Speech(tuple(placed), join(utterances), "voice", 0)
