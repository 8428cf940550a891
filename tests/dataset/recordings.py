"""Recordings whose speech and pauses are known to the sample: utterances laid out on a noise floor."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from utils.core.paths import SAMPLE_SPEECH
from utils.dataset.subtitles import read_cues
from utils.media import audio
from utils.media.audio import Samples
from utils.recognition.spans import Span

RATE = 16_000
VOWELS = (
    (730, 1090, 2440),
    (270, 2290, 3010),
    (300, 870, 2240),
    (530, 1840, 2480),
    (570, 840, 2410),
    (490, 1350, 1690),
)
SYLLABLE = 0.19  # seconds
WIDTHS = (80, 100, 140)  # Hz, of the formants


@dataclass(frozen=True)
class Known:
    """A recording and the truth about it."""

    samples: Samples
    utterances: tuple[Span, ...]

    @property
    def seconds(self) -> float:
        return self.samples.size / RATE

    def save(self, path: Path) -> Path:
        soundfile.write(path, self.samples, RATE, subtype="PCM_16")
        return path


def recording(
    seconds: float,
    *,
    seed: int = 0,
    pauses: tuple[float, float] = (0.3, 1.5),
    noise_db: float = -65.0,
    speech: Sequence[Samples] | None = None,
) -> Known:
    """Lay utterances out until the time is full, beginning with a pause and ending in the middle of nothing."""
    random = np.random.default_rng(seed)
    speech = utterances() if speech is None else speech
    samples = (random.standard_normal(round(seconds * RATE)) * 10 ** (noise_db / 20)).astype(np.float32)
    spans: list[Span] = []
    at = random.uniform(*pauses)
    while True:
        utterance = speech[int(random.integers(len(speech)))]
        begin = round(at * RATE)
        if (end := begin + utterance.size) > samples.size:
            return Known(samples, tuple(spans))
        samples[begin:end] += utterance
        spans.append(Span(begin / RATE, end / RATE))
        at = spans[-1].end + random.uniform(*pauses)


@functools.cache
def utterances() -> tuple[Samples, ...]:
    """Return the sentences of the sample project that are said without a pause."""
    return tuple(sound for text, sound in sentences() if not set(text[:-1]) & set("፣።?.") and sound.size > RATE)


@functools.cache
def sentences(rate: int = RATE) -> tuple[tuple[str, Samples], ...]:
    """Return the sentences of the sample project, each with its speech."""
    whole = audio.load(SAMPLE_SPEECH, rate)
    cues, _ = read_cues(SAMPLE_SPEECH.with_name("sample.am.srt"))
    return tuple((cue.text, whole[round(cue.span.start * rate) : round(cue.span.end * rate)]) for cue in cues)


def sample_texts() -> list[str]:
    """Return the sentences of the sample project."""
    return [cue.text for cue in read_cues(SAMPLE_SPEECH.with_name("sample.am.srt"))[0]]


@functools.cache
def generated() -> tuple[Samples, ...]:
    return tuple(babble(seconds, seed=seed) for seed, seconds in enumerate(np.linspace(1.2, 5.5, 16)))


def babble(seconds: float, *, seed: int = 0) -> Samples:
    """Say vowels and fricatives in the rhythm of syllables: pulses through formants, as a voice does it."""
    random = np.random.default_rng(seed)
    size, pitch = round(seconds * RATE), random.uniform(95, 200)
    parts: list[npt.NDArray[np.float64]] = []
    while sum(part.size for part in parts) < size:
        length = round(random.uniform(0.8, 1.2) * SYLLABLE * RATE)
        onset = round(random.uniform(0.15, 0.3) * length)
        hiss = np.diff(random.standard_normal(onset), prepend=0) * 0.03
        tone = _vowel(length - onset, pitch * random.uniform(0.9, 1.15), random)
        envelope = 0.25 + 0.75 * np.sin(np.linspace(0.3, np.pi - 0.3, tone.size))
        parts += [hiss, tone * envelope]
    samples = np.concatenate(parts)[:size]
    ramp = np.minimum(1, np.arange(size) / 80)
    return np.asarray(samples / np.abs(samples).max() * 0.4 * np.minimum(ramp, ramp[::-1]), np.float32)


def _vowel(size: int, pitch: float, random: np.random.Generator) -> npt.NDArray[np.float64]:
    frequency = pitch * np.linspace(1.05, 0.95, size) * (1 + 0.01 * random.standard_normal(size).cumsum() / 40)
    phase = np.cumsum(frequency) / RATE
    pulses = np.diff(np.floor(phase), prepend=0) + 0.002 * random.standard_normal(size)
    turn = np.exp(-2j * np.pi * np.fft.rfftfreq(size))
    response = 1 / (1 - 0.95 * turn)
    for formant, width in zip(VOWELS[int(random.integers(len(VOWELS)))], WIDTHS, strict=True):
        radius = np.exp(-np.pi * width / RATE)
        response = response / (1 - 2 * radius * np.cos(2 * np.pi * formant / RATE) * turn + (radius * turn) ** 2)
    tone = np.fft.irfft(np.fft.rfft(pulses) * response, size)
    return np.asarray(tone / (np.abs(tone).max() + 1e-9), np.float64)
