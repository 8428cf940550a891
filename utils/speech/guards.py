"""Finds what is unusual about a spoken sentence from its codes, audio and text.

A flag says that something is unusual, not that it is wrong. Flagged sentences are spoken again with another seed a few
times, and what stays suspicious keeps its flags.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from utils.config import DatasetConfig
from utils.core import languages
from utils.media.arrays import BoolArray, Float32Array, Int64Array
from utils.media.audio import Samples, faded, resample
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE
from utils.recognition import vad
from utils.recognition.aligner import Rows
from utils.recognition.signal_checks import windows
from utils.recognition.spans import Span
from utils.speech.clarity import Clarity, clarity, hear
from utils.speech.facts import Flag, FlagKind
from utils.speech.word_check import WordCheck, check_words
from utils.xtts.tokenizer import TokenizedText

MARGIN = 0.08  # seconds kept around the speech: the detector is exact to 0.03, and a breath belongs to it
FRAME = 240  # samples, 10 ms
FRAME_SECONDS = FRAME / OUTPUT_RATE
QUIETEST = -100.0  # dB: the floor of 16 bits
SILENT = -60.0  # dB: quieter than a room at night
TIE = "\u0361"  # joins two IPA signs into one sound
SYLLABLES = ("\u1200", "\u139f"), ("\u2d80", "\u2ddf"), ("\u3040", "\u30ff"), ("\u4e00", "\u9fff"), ("\uac00", "\ud7a3")
PAUSES = ".,;:?!።፣፤፥፦፧"
GOLDEN = 0x9E3779B1  # odd, so that no two tries of a seed meet, and far from the seeds of its neighbors
DETECTOR = DatasetConfig(segmenter="vad", min_speech_seconds=0.06)  # a single short vowel is speech here, not a click

CLARITY = 0.5  # in a score, of each nat per phone
COSTS: dict[FlagKind, float] = {
    "broken": 100.0,  # cannot be played
    "nothing": 50.0,  # from here: nothing of the text is spoken
    "silent": 50.0,
    "speechless": 20.0,
    "endless": 8.0,  # from here: too much or too little is spoken
    "loop": 6.0,
    "short": 6.0,
    "unclear": 6.0,
    "long": 4.0,
    "unheard": 2.0,  # each word
    "added": 2.0,  # each place
    "pause": 2.0,  # from here: all of it is spoken, but not pleasantly
    "noise": 2.0,
    "ending": 1.0,
    "clipped": 1.0,
}


@dataclass(frozen=True)
class SpeechLimits:
    """What is usual. Speech is counted in sounds: phonemes where the language pack knows them, else letters."""

    fastest: float = 22.0  # sounds per second of the fastest Amharic; more means that words are missing
    usual: float = 12.5  # sounds per second of calm reading: espeak-ng reads 40 Amharic sentences at 10.6 to 13.3
    slowest: float = 6.0  # sounds per second; slower than dictation means that something was added
    slack: float = 0.6  # seconds that a text may last beyond that: a single word is drawn out
    pause: float = 0.6  # seconds that each mark inside a text may add
    run: int = 20  # repeats of one code: 0.9 s. No sound is held so long, and pauses are not one code
    loop: int = 30  # codes that a repeated pattern may cover: 1.4 s
    rounds: int = 4  # repeats that make a pattern a loop; a doubled word is none
    pattern: int = 32  # codes of the longest pattern that is searched for: 1.5 s
    fewest: int = 3  # minimum number of codes; fewer are no syllable
    silence: float = 1.2  # seconds without sound inside a sentence: readers pause up to one second at a comma
    ending: float = 0.8  # seconds after the last speech: more is trimmed, but often goes with a lost ending
    noise: float = 35.0  # dB below the speech; whatever is louder after its end is noise, not silence
    clipped: float = 0.002  # share of samples at full scale; the same as for training clips
    clear: float | None = 2.5  # deviations (see ``clarity``); another text seldom has more. None: cannot be told

    @classmethod
    def of(cls, language: str) -> "SpeechLimits":
        """Return the limits of a language; those counted in letters get a wider range."""
        return cls() if languages.find(language) == languages.AMHARIC else OTHER_LANGUAGES


OTHER_LANGUAGES = SpeechLimits(fastest=30.0, usual=14.0, slowest=4.5, clear=None)


@dataclass(frozen=True)
class AudioAnalysis:
    """Audio as the vocoder made it, neither trimmed nor stretched, with properties that are computed on first use."""

    samples: Samples
    text: TokenizedText | None = None

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.samples).all())

    @property
    def seconds(self) -> float:
        return self.samples.size / OUTPUT_RATE

    @cached_property
    def playable(self) -> Samples:
        """Return the audio with silence for samples that are not numbers."""
        return np.nan_to_num(self.samples, nan=0.0, posinf=0.0, neginf=0.0)

    @cached_property
    def speech(self) -> Span | None:
        """Return the time from the first speech to the last, by the Silero detector, or None."""
        sound = resample(self.playable, OUTPUT_RATE, vad.RATE)
        spans = vad.segments_from(vad.track_speech(iter([sound])), DETECTOR) if sound.size else []
        return Span.over(spans) if spans else None

    @cached_property
    def levels(self) -> Float32Array:
        frames = windows(self.playable, FRAME)
        power = np.einsum("ij,ij->i", frames, frames) / FRAME
        return np.asarray(10 * np.log10(np.maximum(power, 10 ** (QUIETEST / 10))), np.float32)

    @cached_property
    def heard(self) -> Rows:
        return hear(self.playable)

    @cached_property
    def clarity(self) -> Clarity | None:
        return clarity(self.text.phones, self.heard) if self.text else None

    @cached_property
    def words(self) -> WordCheck | None:
        return check_words(self.text, self.heard) if self.text else None

    @property
    def spoken(self) -> float:
        """Return the seconds from the first speech to the last, or of everything if there is no speech."""
        return self.speech.seconds if self.speech else self.seconds

    @property
    def speech_levels(self) -> Float32Array:
        return self.levels[_frame(self.speech.start) : _frame(self.speech.end)] if self.speech else self.levels

    @property
    def loudness(self) -> float:
        levels = self.speech_levels
        return float(np.percentile(levels, 90)) if levels.size else QUIETEST


def judge(
    text: TokenizedText, codes: Int64Array, audio: AudioAnalysis, limits: SpeechLimits, *, ended: bool
) -> tuple[Flag, ...]:
    """Return what is unusual about a spoken sentence, the worst first; ``ended``: the model ended it itself."""
    if not audio.is_finite:
        return (Flag("broken", count=int((~np.isfinite(audio.samples)).sum())),)
    if codes.size < limits.fewest and sounds(text) > 1:
        return (Flag("nothing", count=codes.size),)
    if not audio.levels.size or audio.levels.max() < SILENT:
        return (Flag("silent"),)
    flags = [] if ended else [Flag("endless", count=codes.size)]
    flags += [*_loops(codes, limits), *_pace(text, audio.spoken, limits)]
    flags += [*_heard(audio, limits), *_sound(audio, limits)]
    return tuple(sorted(flags, key=lambda flag: -COSTS[flag.kind]))


def _pace(text: TokenizedText, seconds: float, limits: SpeechLimits) -> list[Flag]:
    """Return whether speech is too long or too short for the sounds of a text."""
    count = sounds(text)
    if count and seconds > longest(text, limits):
        return [Flag("long", seconds, count)]
    return [Flag("short", seconds, count)] if seconds < count / limits.fastest else []


def _heard(audio: AudioAnalysis, limits: SpeechLimits) -> list[Flag]:
    """Return what a recogniser finds, in a language that it knows."""
    if limits.clear is None:
        return []
    unclear = audio.clarity and audio.clarity.deviations < limits.clear
    return [*([Flag("unclear")] if unclear else []), *(audio.words.flags if audio.words else [])]


def score(
    flags: Sequence[Flag], text: TokenizedText, audio: AudioAnalysis, log_probability: float, limits: SpeechLimits
) -> float:
    """Compare takes of the same sentence: higher is better.

    Flags count by their kind. Among takes without flags, the mean log-probability of the codes, the distance from the
    usual pace and the clarity decide; half or twice the pace costs as much as codes of half the probability.
    """
    if any(flag.kind == "broken" for flag in flags):
        return -COSTS["broken"]
    codes = max(1.0, audio.seconds / CODE_SECONDS)
    usual = sounds(text) / limits.usual
    pace = abs(np.log2(max(audio.spoken, 0.05) / usual)) if usual else 0.0
    clear = audio.clarity.gain if limits.clear is not None and audio.clarity else 0.0
    flagged = sum(COSTS[flag.kind] * max(1, len(flag.words)) for flag in flags)
    return float(log_probability / codes - np.log(2) * pace + CLARITY * clear - flagged)


def trim(audio: AudioAnalysis) -> Samples:
    """Cut silence and noise off both ends and fade the rest; audio without speech is returned as it is."""
    if not audio.is_finite or audio.speech is None:
        return audio.samples
    first = max(0, round((audio.speech.start - MARGIN) * OUTPUT_RATE))
    return faded(audio.samples[first : round((audio.speech.end + MARGIN) * OUTPUT_RATE)], OUTPUT_RATE)


def next_seed(seed: int, attempt: int) -> int:
    """Return the seed of a try; the first one is the given seed."""
    return (seed + attempt * GOLDEN) % 2**32


def sounds(text: TokenizedText) -> int:
    """Count the sounds of a text: IPA phonemes, else letters; a syllable sign counts as two."""
    letters = unicodedata.normalize("NFC", text.phones)
    count = 0
    for before, letter in zip(" " + letters, letters, strict=False):
        category = unicodedata.category(letter)
        is_sound = category[0] in "LN" and category != "Lm"  # Lm: length and ejection belong to the sound before
        if (is_sound or category == "Mc") and before != TIE:
            count += 2 if any(first <= letter <= last for first, last in SYLLABLES) else 1
    return count


def longest(text: TokenizedText, limits: SpeechLimits) -> float:
    """Return the maximum number of seconds that a text may take."""
    inside = sum(mark in PAUSES for mark in text.normalised.rstrip(PAUSES + " "))
    return sounds(text) / limits.slowest + limits.slack + limits.pause * inside


def _loops(codes: Int64Array, limits: SpeechLimits) -> list[Flag]:
    """Find a code that goes on, or a pattern of codes that repeats."""
    for size in range(1, min(limits.pattern, codes.size - 1) + 1):
        covered = _longest_run(codes[size:] == codes[:-size]) + size
        is_loop = covered > limits.run if size == 1 else covered > max(limits.loop, limits.rounds * size - 1)
        if is_loop:
            return [Flag("loop", covered * CODE_SECONDS, covered // size)]
    return []


def _around(audio: AudioAnalysis, speech: Span, limits: SpeechLimits) -> list[Flag]:
    """Check what is before and after the speech, on the side where there is more."""
    before = speech.start
    after = audio.seconds - speech.end
    if max(before, after) <= limits.ending:
        return []
    frames = audio.levels[_frame(speech.end) :] if after >= before else audio.levels[: _frame(speech.start)]
    is_loud = bool(frames.size) and float(np.median(frames)) > audio.loudness - limits.noise
    return [Flag("noise" if is_loud else "ending", max(before, after))]


def _sound(audio: AudioAnalysis, limits: SpeechLimits) -> list[Flag]:
    """Check the audio alone: speech at all, long silence, what is around the speech, full scale."""
    flags = _around(audio, audio.speech, limits) if audio.speech else [Flag("speechless")]
    quiet = _longest_run(audio.speech_levels < audio.loudness - limits.noise) * FRAME / OUTPUT_RATE
    if quiet > limits.silence:
        flags.append(Flag("pause", quiet))
    share = float(np.mean(np.abs(audio.samples) >= 0.999))
    if share > limits.clipped:
        flags.append(Flag("clipped", share=share))
    return flags


def _frame(seconds: float) -> int:
    return round(seconds / FRAME_SECONDS)


def _longest_run(marks: BoolArray) -> int:
    edges = np.flatnonzero(np.diff(marks.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    return int((edges[:, 1] - edges[:, 0]).max()) if edges.size else 0
