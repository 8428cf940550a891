"""What can go wrong with one spoken piece, told from its codes, its sound and its text, without another model.

A guard hears that something is unusual, not that it is wrong: what a flag finds may be right, and a wrong word of usual
length is found by none. So a flagged piece is spoken again with another seed, a few times, and what stays doubtful
keeps its flags. A flag begins with one of the words in ``Limits.costs``; they never change.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from utils.config import DatasetConfig
from utils.core import languages
from utils.dataset import vad as detector
from utils.dataset.clip import Span
from utils.media.audio import Samples, faded, resample
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE
from utils.xtts.tokenizer import TokenizedText

Codes = npt.NDArray[np.int64]

MARGIN = 0.08  # seconds kept on both sides of the speech: the detector is exact to 0.03, and a breath belongs to it
FRAME = 240  # samples, 10 ms
QUIETEST = -100.0  # dB: the floor of 16 bits
SILENT = -60.0  # dB: a room at night lies above it
TIE = "\u0361"  # joins two signs of the IPA into one sound
SYLLABLES = ("\u1200", "\u139f"), ("\u2d80", "\u2ddf"), ("\u3040", "\u30ff"), ("\u4e00", "\u9fff"), ("\uac00", "\ud7a3")
PAUSES = ".,;:?!።፣፤፥፦፧"
GOLDEN = 0x9E3779B1  # odd, so that no two tries of one seed meet, and far from the seeds of its neighbours
EAR = DatasetConfig(segmenter="vad", min_speech_seconds=0.06)  # a single short vowel is speech here, not a click


@dataclass(frozen=True)
class SpeechLimits:
    """Where usual ends. Speech is counted in sounds: phonemes where the language pack knows them, else letters.

    Attributes:
        fastest: Sounds a second; the most hurried Amharic has about as many, so that more means that words are missing.
        usual: Sounds a second of calm reading: espeak-ng reads 40 Amharic sentences at 10.6 to 13.3.
        slowest: Sounds a second; slower than a teacher dictates means that something was added.
        slack: Seconds that a text may last beyond that: a single word is drawn out.
        pause: Seconds that each mark inside a text may add.
        run: Times that one code may follow itself: 0.9 s. No sound is held so long, and pauses are not one code.
        loop: Codes that a repeated pattern may cover: 1.4 s, as nobody says the same thing in exactly the same way.
        rounds: Times that a pattern has to come to be a repetition: a doubled word is none.
        pattern: Codes in the longest pattern that is looked for: 1.5 s.
        fewest: Codes; less is no syllable.
        silence: Seconds without sound inside a piece: readers pause up to one second at a comma.
        ending: Seconds after the last speech: more is cut off, but often goes with a lost end.
        noise: dB below the speech; what is louder after its end is noise and no silence.
        clipped: Share of samples at full scale; the same as for clips to train on.
        costs: How much each flag weighs where readings are compared, by its first word.
    """

    fastest: float = 22.0
    usual: float = 12.5
    slowest: float = 6.0
    slack: float = 0.6
    pause: float = 0.6
    run: int = 20
    loop: int = 30
    rounds: int = 4
    pattern: int = 32
    fewest: int = 3
    silence: float = 1.2
    ending: float = 0.8
    noise: float = 35.0
    clipped: float = 0.002
    costs: dict[str, float] = field(
        default_factory=lambda: {
            "broken": 100.0,  # cannot be played
            "nothing": 50.0,  # from here on: nothing of the text is heard
            "silent": 50.0,
            "speechless": 20.0,
            "endless": 8.0,  # the text is there, and something else
            "loop": 6.0,
            "short": 6.0,
            "long": 4.0,
            "pause": 2.0,  # everything is there, and not pleasant
            "noise": 2.0,
            "ending": 1.0,
            "clipped": 1.0,
        }
    )

    @classmethod
    def of(cls, language: str) -> "SpeechLimits":
        """Return the limits of a language, by any of its names.

        Only Amharic has phonemes here. The other languages are counted in letters, of which there are more or fewer
        than sounds, so their range is wider.
        """
        return cls() if languages.find(language) == languages.AMHARIC else cls(fastest=30.0, usual=14.0, slowest=4.5)


@dataclass(frozen=True)
class AudioAnalysis:
    """A sound, and what is heard in it without knowing its text; each is listened for once, when it is asked for.

    Attributes:
        samples: The sound, neither trimmed nor stretched.
        rate: Its samples per second.
    """

    samples: Samples
    rate: int = OUTPUT_RATE

    @property
    def sound(self) -> bool:
        """Tell whether all samples are numbers."""
        return bool(np.isfinite(self.samples).all())

    @property
    def seconds(self) -> float:
        """Return how long it is."""
        return self.samples.size / self.rate

    @cached_property
    def speech(self) -> Span | None:
        """Return the time from the first speech to the last, by the Silero detector; None when there is none."""
        sound = self._numbers(detector.RATE)
        spans = detector.segments_from(detector.track_speech(iter([sound])), EAR) if sound.size else []
        return Span(spans[0].start, spans[-1].end) if spans else None

    @cached_property
    def levels(self) -> npt.NDArray[np.float32]:
        """Return the loudness in dB of each 10 ms."""
        sound = self._numbers(OUTPUT_RATE)
        frames = sound[: sound.size - sound.size % FRAME].reshape(-1, FRAME)
        power = np.einsum("ij,ij->i", frames, frames) / FRAME
        return np.asarray(10 * np.log10(np.maximum(power, 10 ** (QUIETEST / 10))), np.float32)

    @property
    def spoken(self) -> float:
        """Return the seconds from the first speech to the last; of everything where no speech is heard."""
        return self.speech.seconds if self.speech else self.seconds

    def _numbers(self, rate: int) -> Samples:
        """Return the sound at a rate, with silence for samples that are no numbers."""
        sound = np.nan_to_num(self.samples, nan=0.0, posinf=0.0, neginf=0.0)
        return sound if self.rate == rate else resample(sound, self.rate, rate)


def judge(
    reading: TokenizedText, codes: Codes, heard: AudioAnalysis, limits: SpeechLimits, *, ended: bool
) -> tuple[str, ...]:
    """Say what is unusual about a spoken piece, the worst first.

    Its length is that of the speech in it, so it makes no difference whether it was trimmed. Sound that was stretched
    has to be judged before.

    Args:
        reading: What became of the text.
        codes: What the model said.
        heard: Its sound.
        ended: Whether the model ended by itself.
        limits: Where usual ends.
    """
    if not heard.sound:
        return (f"broken: {int((~np.isfinite(heard.samples)).sum())} samples are no numbers",)
    if codes.size < limits.fewest and sounds(reading) > 1:
        return (f"nothing: the model ended after {codes.size} codes",)
    if not heard.levels.size or heard.levels.max() < SILENT:
        return ("silent: there is no sound in it",)
    found = [] if ended else [f"endless: it did not end by itself within {codes.size} codes"]
    found += [*_repeated(codes, limits), *_duration(reading, heard, limits), *_sound(heard, limits)]
    return tuple(sorted(found, key=lambda flag: -limits.costs[kind(flag)]))


def kind(flag: str) -> str:
    """Return the word that a flag begins with."""
    return flag.partition(":")[0]


def score(
    flags: Sequence[str], reading: TokenizedText, heard: AudioAnalysis, log_probability: float, limits: SpeechLimits
) -> float:
    """Compare readings of the same text: higher is better.

    Flags weigh by their kind. Between readings without any, the mean log-probability of the codes decides, and how far
    the pace is from the usual one; half or twice the pace costs as much as codes of half the probability.

    Args:
        flags: What ``judge`` found.
        reading: What became of the text.
        heard: Its sound as it came from the vocoder.
        log_probability: That of all codes together.
        limits: Where usual ends.
    """
    if any(kind(flag) == "broken" for flag in flags):
        return -limits.costs["broken"]
    codes = max(1.0, heard.seconds / CODE_SECONDS)
    usual = sounds(reading) / limits.usual
    pace = abs(np.log2(max(heard.spoken, 0.05) / usual)) if usual else 0.0
    flagged = sum(limits.costs[kind(flag)] for flag in flags)
    return float(log_probability / codes - np.log(2) * pace - flagged)


def trim(heard: AudioAnalysis) -> Samples:
    """Cut silence and noise off both ends, and fade what is left in and out.

    Where no speech is heard nothing is cut: ``judge`` tells that, and a cut at a loud place would be a guess.
    """
    samples, rate = heard.samples, heard.rate
    if not heard.sound or heard.speech is None:
        return samples
    first = max(0, round((heard.speech.start - MARGIN) * rate))
    return faded(samples[first : round((heard.speech.end + MARGIN) * rate)], rate)


def next_seed(seed: int, attempt: int) -> int:
    """Return the seed of a try: the first is the one that was asked for, the others follow from it."""
    return (seed + attempt * GOLDEN) % 2**32


def sounds(reading: TokenizedText) -> int:
    """Count the sounds of a text: phonemes of the IPA, else letters; a sign of a syllable counts as two."""
    letters = unicodedata.normalize("NFC", reading.phones)
    count = 0
    for before, letter in zip(" " + letters, letters, strict=False):
        category = unicodedata.category(letter)
        spoken = category[0] in "LN" and category != "Lm"  # Lm: length and ejection belong to the sound before
        if (spoken or category == "Mc") and before != TIE:
            count += 2 if any(first <= letter <= last for first, last in SYLLABLES) else 1
    return count


def longest(reading: TokenizedText, limits: SpeechLimits) -> float:
    """Return the seconds that a text may take."""
    inside = sum(mark in PAUSES for mark in reading.normalised.rstrip(PAUSES + " "))
    return sounds(reading) / limits.slowest + limits.slack + limits.pause * inside


def _duration(reading: TokenizedText, heard: AudioAnalysis, limits: SpeechLimits) -> list[str]:
    """Compare the length of the speech with that of the text."""
    count, seconds = sounds(reading), heard.spoken
    if not count:
        return []
    if seconds > longest(reading, limits):
        return [f"long: {seconds:.1f} s for {count} sounds"]
    if seconds < count / limits.fastest:
        return [f"short: {seconds:.1f} s for {count} sounds"]
    return []


def _repeated(codes: Codes, limits: SpeechLimits) -> list[str]:
    """Look for one code that goes on, and for a pattern of codes that comes again and again."""
    for size in range(1, min(limits.pattern, codes.size - 1) + 1):
        covered = _longest_run(codes[size:] == codes[:-size]) + size
        if size == 1 and covered > limits.run:
            return [f"loop: one code {covered} times in a row, {covered * CODE_SECONDS:.1f} s"]
        if size > 1 and covered > limits.loop and covered >= limits.rounds * size:
            return [f"loop: {size} codes {covered // size} times in a row, {covered * CODE_SECONDS:.1f} s"]
    return []


def _sound(heard: AudioAnalysis, limits: SpeechLimits) -> list[str]:
    """Look at the sound alone: speech at all, long silence, what follows the speech, full scale."""
    found = []
    if heard.speech is None:
        found.append("speechless: no speech is heard in it")
    else:
        found += _tail(heard, heard.speech, limits)
    quiet = _longest_run(_inside(heard) < _loud(heard) - limits.noise) * FRAME / OUTPUT_RATE
    if quiet > limits.silence:
        found.append(f"pause: {quiet:.1f} s of silence inside")
    share = float(np.mean(np.abs(heard.samples) >= 0.999))
    if share > limits.clipped:
        found.append(f"clipped: {share:.1%} of the samples are at full scale")
    return found


def _tail(heard: AudioAnalysis, speech: Span, limits: SpeechLimits) -> list[str]:
    """Judge what comes before the first speech and after the last."""
    lead, rest = speech.start, heard.seconds - speech.end
    if max(lead, rest) <= limits.ending:
        return []
    frames = heard.levels[_frame(speech.end) :] if rest >= lead else heard.levels[: _frame(speech.start)]
    where = "after the last word" if rest >= lead else "before the first word"
    loud = bool(frames.size) and float(np.median(frames)) > _loud(heard) - limits.noise
    return [f"{'noise' if loud else 'ending'}: {max(lead, rest):.1f} s {'of sound' if loud else 'of silence'} {where}"]


def _inside(heard: AudioAnalysis) -> npt.NDArray[np.float32]:
    """Return the levels between the first and the last speech."""
    return heard.levels[_frame(heard.speech.start) : _frame(heard.speech.end)] if heard.speech else heard.levels


def _loud(heard: AudioAnalysis) -> float:
    """Return the level of the louder sounds of the speech."""
    inside = _inside(heard)
    return float(np.percentile(inside, 90)) if inside.size else QUIETEST


def _frame(seconds: float) -> int:
    return round(seconds * OUTPUT_RATE / FRAME)


def _longest_run(marks: npt.NDArray[np.bool_]) -> int:
    """Count the marks of the longest unbroken row."""
    edges = np.flatnonzero(np.diff(marks.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    return int((edges[:, 1] - edges[:, 0]).max()) if edges.size else 0
