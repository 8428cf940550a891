"""Which of several clips is the best reference: clean, long enough, lively, and neither clipped nor mostly silence."""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from utils.config import DatasetConfig
from utils.core.errors import AmharicTtsError, AudioError, DataError
from utils.dataset.clip import Scores, Span
from utils.dataset.scores import measure
from utils.dataset.vad import RATE as SPEECH_RATE
from utils.dataset.vad import WINDOW, segments_from, track_speech
from utils.media import audio
from utils.media.audio import Samples
from utils.speech.speaker_conditioning import SHORTEST, SILENT

HEARD = 30.0  # seconds of a clip that a model hears at most, as published
LOWEST, HIGHEST = 60.0, 450.0  # Hz, of voices
PITCH_RATE = 8000
FRAME, STEP = 0.05, 0.01  # seconds: three periods of the lowest voice
PERIODIC = 0.6  # share of a frame that the frame one period before explains
FEWEST = 20  # voiced frames, 0.2 s; less says nothing of a melody

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ReferenceScore:
    """A clip and how good a reference it is.

    Attributes:
        path: The clip.
        total: From 0 to 1.
        sentence: Why, in words.
        seconds: How long it is.
        snr_db: Level of the speech over that of the pauses.
        pitch: Hertz in the middle of its melody.
        pitch_spread: How far the melody reaches, in semitones of standard deviation.
        clipping: Share of the samples at full scale.
        speech_ratio: Share that is speech.
        fault: Why it cannot be used at all; empty when it can.
    """

    path: Path
    total: float = 0.0
    sentence: str = ""
    seconds: float = 0.0
    snr_db: float | None = None
    pitch: float | None = None
    pitch_spread: float | None = None
    clipping: float = 0.0
    speech_ratio: float = 0.0
    fault: str = ""


@dataclass(frozen=True)
class Scale:
    """Turns a measure into a mark: 0.05 at its worst and 1 at its best, however much better it gets.

    Attributes:
        worst: Where it is hopeless.
        best: Where it could not matter less.
        weight: How much it counts.
    """

    worst: float
    best: float
    weight: float

    def mark(self, value: float) -> float:
        """Return the mark of a value."""
        return float(np.interp((value - self.worst) / (self.best - self.worst), (0, 1), (0.05, 1)))


# Weights by judgement, not measured: noise goes into the voice, and a short clip leaves most of it unsaid.
SCALES = {
    "seconds": Scale(1.0, 8.0, weight=3),
    "snr_db": Scale(5.0, 30.0, weight=4),
    "pitch_spread": Scale(0.3, 2.5, weight=1),
    "clipping": Scale(0.02, 0.0, weight=3),
    "speech_ratio": Scale(0.2, 0.7, weight=2),
}


def rank(paths: Iterable[Path | str]) -> list[ReferenceScore]:
    """Score clips as references, the best first; those that cannot be used come last, with the reason."""
    scored = [score(Path(path)) for path in paths]
    return sorted(scored, key=lambda one: (bool(one.fault), -one.total))


def score(path: Path) -> ReferenceScore:
    """Score one clip by what a model hears of it; a clip that cannot be used says why."""
    try:
        seconds, rate = (about := audio.probe(path)).seconds, about.rate
        samples = audio.load(path, rate, end=HEARD)
        _refuse_useless(path, samples, rate)
    except AmharicTtsError as error:
        return ReferenceScore(path, sentence=error.message, fault=error.message)
    speech = _speech(audio.resample(samples, rate, SPEECH_RATE))
    found = measure(samples, rate, speech, "")
    heights = pitches(audio.resample(samples, rate, PITCH_RATE), PITCH_RATE)
    middle = float(np.median(heights)) if heights.size >= FEWEST else None
    spread = _spread(heights) if heights.size >= FEWEST else None
    return ReferenceScore(
        path,
        total=_total(seconds, found, spread),
        sentence=_sentence(seconds, found, spread),
        seconds=seconds,
        snr_db=found.snr_db,
        pitch=middle,
        pitch_spread=spread,
        clipping=found.clipping or 0.0,
        speech_ratio=found.speech_ratio or 0.0,
    )


def pitches(samples: Samples, rate: int) -> Floats:
    """Return the height of a voice in each frame that has one, in Hz, by autocorrelation."""
    size, step = round(FRAME * rate), round(STEP * rate)
    if samples.size < size:
        return np.zeros(0)
    frames = np.lib.stride_tricks.sliding_window_view(samples, size)[::step].astype(np.float64)
    frames = frames - frames.mean(axis=1, keepdims=True)
    shortest, longest = math.floor(rate / HIGHEST), math.ceil(rate / LOWEST)
    likeness = _likeness(frames, longest + 2)
    best = _first_peak(likeness[:, shortest : longest + 1]) + shortest
    rows = np.arange(len(frames))
    power = np.sqrt(np.mean(frames**2, axis=1))
    voiced = (likeness[rows, best] > PERIODIC) & (power > 0.1 * np.sqrt(np.mean(power**2))) & (power > SILENT / 10)
    lags = best + _between(likeness[rows, best - 1], likeness[rows, best], likeness[rows, best + 1])
    return np.asarray(rate / lags[voiced & (best > shortest) & (best < longest)], np.float64)


def _likeness(frames: Floats, lags: int) -> Floats:
    """Compare each frame with itself some samples later: 1 where the overlapping parts are the same."""
    size = frames.shape[1]
    spectrum = np.fft.rfft(frames, 2 ** math.ceil(math.log2(2 * size)), axis=1)
    alike = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :lags]
    sums = np.cumsum(np.pad(frames**2, ((0, 0), (1, 0))), axis=1)
    ends = size - np.arange(lags)
    power = np.sqrt(sums[:, ends] * (sums[:, -1:] - sums[:, np.arange(lags)]))
    return np.asarray(alike / np.maximum(power, 1e-12))


def _first_peak(likeness: Floats) -> npt.NDArray[np.int64]:
    """Return the shortest lag that is nearly as good as the best: its multiples are as good, and an octave too low."""
    good = likeness > 0.9 * likeness.max(axis=1, keepdims=True)
    rising = np.diff(likeness, axis=1, append=-np.inf) <= 0
    return np.asarray(np.argmax(good & rising, axis=1), np.int64)


def _between(left: Floats, middle: Floats, right: Floats) -> Floats:
    """Return where the top of a parabola through three points lies, as seen from the middle one."""
    bend = left - 2 * middle + right
    return np.clip(np.where(bend < 0, 0.5 * (left - right) / np.minimum(bend, -1e-12), 0.0), -0.5, 0.5)


def _spread(heights: Floats) -> float:
    """Return the spread of a melody in semitones; from its quartiles, so that a few octave errors do not count."""
    low, high = np.percentile(12 * np.log2(heights), (25, 75))
    return float(high - low) / 1.349


def _refuse_useless(path: Path, samples: Samples, rate: int) -> None:
    if samples.size < SHORTEST * rate:
        raise AudioError(f"{path} is only {samples.size / rate:.2f} s long.")
    if np.abs(samples).max() < SILENT:
        raise AudioError(f"{path} is silent.")


def _speech(samples: Samples) -> list[Span]:
    """Find the speech in sound at 16 kHz; by loudness where the detector is not installed."""
    blocks = [samples]
    if _has_detector():
        return segments_from(track_speech(iter(blocks)), DatasetConfig())
    return segments_from(track_speech(iter(blocks), detect=False), DatasetConfig(segmenter="energy"))


@functools.cache
def _has_detector() -> bool:
    try:
        track_speech(iter([np.zeros(WINDOW, np.float32)]))
    except DataError:
        return False
    return True


def _total(seconds: float, found: Scores, spread: float | None) -> float:
    """Multiply the marks by their weights, so that one bad property is not made up for by the others."""
    values = {
        "seconds": seconds,
        "snr_db": found.snr_db or 0.0,
        "pitch_spread": spread or 0.0,
        "clipping": found.clipping or 0.0,
        "speech_ratio": found.speech_ratio or 0.0,
    }
    marks = sum(scale.weight * math.log(scale.mark(values[name])) for name, scale in SCALES.items())
    return math.exp(marks / sum(scale.weight for scale in SCALES.values()))


def _sentence(seconds: float, found: Scores, spread: float | None) -> str:
    """Say what a person would say of it."""
    said = [f"{seconds:.1f} s" if seconds >= SCALES["seconds"].best / 2 else f"only {seconds:.1f} s"]
    if seconds > HEARD:
        said[0] += f" (the first {HEARD:.0f} are heard)"
    if found.snr_db is None:
        said.append("no speech found")
    else:
        word = "clean" if found.snr_db >= 25 else "some noise" if found.snr_db >= 15 else "noisy"
        said.append(f"{word} ({found.snr_db:.0f} dB)")
    said.append("no pitch found" if spread is None else f"{_melody(spread)} pitch")
    if found.clipping and found.clipping > 1e-4:
        said.append(f"clipped ({found.clipping:.1%})")
    if found.snr_db is not None and (found.speech_ratio or 0.0) < 0.5:
        said.append(f"{1 - (found.speech_ratio or 0.0):.0%} of it silence")
    return ", ".join(said)


def _melody(spread: float) -> str:
    return "lively" if spread >= 2 else "even" if spread >= 0.8 else "flat"
