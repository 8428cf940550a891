"""Speaks sentences until the checks find nothing unusual, and repairs the best take with phrases of the others."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from utils.config import SpeechConfig
from utils.media.audio import Samples, faded
from utils.media.loudness import normalized
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE
from utils.media.stretching import stretch
from utils.speech import guards
from utils.speech.guards import AudioAnalysis, SpeechLimits
from utils.speech.types import Generation, Sentence, Utterance

AHEAD = 2  # batches of sentences that are begun before the first of them is returned
QUIET = 25.0  # dB below the speech: a pause, or the closure of a stop consonant

Add = Callable[[Sentence, int], Generation]
NextSound = Callable[[], tuple[Generation, Samples]]


@dataclass(frozen=True, eq=False)
class Attempt:
    """A take of a sentence, before it is stretched."""

    rank: tuple[float, int]  # its score, and minus its number
    utterance: Utterance
    generation: Generation
    audio: AudioAnalysis  # before it is trimmed


@dataclass(eq=False)
class _Work:
    """A sentence with its takes so far."""

    sentence: Sentence
    tries: int = 0
    open: int = 0  # takes that are being generated
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def best(self) -> Attempt:
        return max(self.attempts, key=lambda attempt: attempt.rank)


def best_takes(
    sentences: Iterable[Sentence],
    add: Add,
    next_sound: NextSound,
    config: SpeechConfig,
) -> Generator[Utterance, None, None]:
    """Speak sentences and yield them in order; suspicious ones are retried with other seeds; the best take counts.

    A phrase with words that are not heard, or with added ones, is replaced by that of another take where both pause.
    Without random numbers, every take would be the same, so there is only one.

    ``add`` begins an attempt to generate a sentence, and ``next_sound`` returns a complete one with its sound. The
    sentences are read as far as there is work for two batches.
    """
    source = iter(sentences)
    if config.top_k == 1:
        config = config.model_copy(update={"tries": 1, "candidates": 1})
    takes = _Takes(add, next_sound, config)
    works = deque[_Work]()
    while True:
        for sentence in islice(source, max(0, AHEAD * config.batch_size - len(works))):
            works.append(_Work(sentence))
            takes.start(works[-1])
        if not works:
            return
        while works[0].open:
            takes.receive()
        work = works.popleft()
        samples = stretch(work.best.utterance.samples, OUTPUT_RATE, config.speed)
        samples = normalized(samples, OUTPUT_RATE, config.loudness)
        yield replace(work.best.utterance, samples=samples, tries=work.tries)


@dataclass(eq=False)
class _Takes:
    """The takes that are being generated, of all sentences."""

    add: Add
    next_sound: NextSound
    config: SpeechConfig
    open: dict[Generation, tuple[_Work, int, Sentence]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.limits = SpeechLimits.of(self.config.language)

    def start(self, work: _Work) -> None:
        """Begin the next try of a sentence."""
        first = work.tries * self.config.candidates
        work.tries += 1
        work.open = self.config.candidates
        for number in range(first, first + work.open):
            take = replace(work.sentence, seed=guards.next_seed(work.sentence.seed, number))
            self.open[self.add(take, work.tries)] = work, number, take

    def receive(self) -> None:
        """Judge the next take that is complete; after the last one of a try, repair the best, or try again."""
        generation, samples = self.next_sound()
        work, number, take = self.open.pop(generation)
        work.attempts.append(_judged(take, generation, samples, self.limits, -number, trim=self.config.trim))
        work.open -= 1
        if not work.open and work.best.utterance.flags:
            work.attempts += _repaired(work.attempts, self.limits, trim=self.config.trim)
            if work.best.utterance.flags and work.tries < self.config.tries:
                self.start(work)


def _judged(
    sentence: Sentence, generation: Generation, samples: Samples, limits: SpeechLimits, order: int, *, trim: bool
) -> Attempt:
    """Score a take before it is trimmed."""
    codes = np.array(generation.codes[: -1 if generation.ended else None], np.int64)
    audio = AudioAnalysis(samples, sentence.tokenized)
    flags = guards.judge(sentence.tokenized, codes, audio, limits, ended=generation.ended)
    score = guards.score(flags, sentence.tokenized, audio, sum(generation.logprobs), limits)
    samples = guards.trim(audio) if trim else samples
    words = len(audio.words.texts) if limits.clear is not None and audio.words else 0
    utterance = Utterance(sentence, samples, codes, generation.ended, flags, words=words)
    return Attempt((score, order), utterance, generation, audio)


def _repaired(attempts: Sequence[Attempt], limits: SpeechLimits, *, trim: bool) -> Iterator[Attempt]:
    """Yield the best take with its doubtful phrases replaced by those of the others, one after the other."""
    best, *others = sorted(attempts, key=lambda attempt: attempt.rank, reverse=True)
    for other in others if limits.clear is not None else ():
        for number in sorted(best.audio.words.doubtful if best.audio.words else ()):
            if joined := _with_phrase(best, other, number):
                repaired = _judged(best.utterance.sentence, *joined, limits, best.rank[1], trim=trim)
                if repaired.rank > best.rank:
                    best = repaired
                    yield best
                    break


def _with_phrase(take: Attempt, other: Attempt, number: int) -> tuple[Generation, Samples] | None:
    """Return a take with the phrase around a word from another one, if both pause around it and that one is clear."""
    ours = _pauses(take.audio)
    theirs = _pauses(other.audio)
    shared = ours.keys() & theirs.keys()
    if not shared or not other.audio.words:
        return None
    first = max(place for place in shared if place <= number)
    end = min(place for place in shared if place > number)
    if any(first <= word < end for word in other.audio.words.doubtful) or end - first == max(shared):
        return None
    pieces = (take, 0.0, ours[first]), (other, theirs[first], theirs[end]), (take, ours[end], take.audio.seconds)
    return _joined(pieces)


def _joined(pieces: Sequence[tuple[Attempt, float, float]]) -> tuple[Generation, Samples]:
    """Join stretches of takes; the last one reaches to the end of the first take."""
    take = pieces[0][0]
    joined = Generation(ended=take.generation.ended, finished=True)
    sounds = []
    for source, start, stop in pieces:
        part = slice(round(start / CODE_SECONDS), round(stop / CODE_SECONDS) + (stop == take.audio.seconds))
        joined.codes += source.generation.codes[part]
        joined.logprobs += source.generation.logprobs[part]
        sounds.append(faded(source.audio.samples[round(start * OUTPUT_RATE) : round(stop * OUTPUT_RATE)], OUTPUT_RATE))
    return joined, np.concatenate(sounds)


def _pauses(audio: AudioAnalysis) -> dict[int, float]:
    """Return where a take pauses, in seconds, by the number of the word that follows; both ends are pauses."""
    if audio.words is None:
        return {}
    spans = audio.words.spans
    pauses = {0: 0.0, len(spans): audio.seconds}
    for number in range(1, len(spans)):
        first = round(spans[number - 1].end / guards.FRAME_SECONDS)
        levels = audio.levels[first : max(first + 1, round(spans[number].start / guards.FRAME_SECONDS))]
        if levels.size and levels.min() < audio.loudness - QUIET:
            pauses[number] = (first + int(levels.argmin()) + 0.5) * guards.FRAME_SECONDS
    return pauses
