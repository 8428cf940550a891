"""Plant faults in takes and count how many the check of words finds, and how many remain after the repair.

    python -m tools.planted_words                     espeak-ng, 200 of each kind
    python -m tools.planted_words --model tiny        a model of this program

Words are cut out, doubled, replaced by another word of the same voice, or moved, at the quietest place within 50 ms of
where they are heard in the take. What a repair is built from are other takes of the same sentence. A false alarm is a
word that is marked in a take as it was spoken: the speech of a model has faults of its own, that of espeak-ng has none.
"""

import argparse
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from utils.config import SpeechConfig
from utils.core.paths import ROOT
from utils.media.audio import Samples, resample
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE, RATE
from utils.speech.attempts import best_takes
from utils.speech.guards import AudioAnalysis
from utils.speech.types import Generation, Sentence
from utils.speech.word_check import WordCheck
from utils.xtts.language_packs import pack_for
from utils.xtts.tokenizer import TokenizedText

KINDS = ("cut", "doubled", "replaced", "moved")
SENTENCES = ROOT / "tests" / "data" / "amharic_sentences.txt"
WORDS = range(6, 14)  # of a sentence
NEAR, FADE, SMOOTH = 0.05, 80, 480  # seconds, samples, samples
TAKES = 3
VARIANTS = ("", "f2", "m3", "f4")

Speak = Callable[[str, int], tuple[TokenizedText, Samples]]  # a text, and the number of the take


class Take(NamedTuple):
    """A sentence as it was spoken, with the sample at which each word begins, and the end of the last one."""

    text: TokenizedText
    samples: Samples
    check: WordCheck
    edges: list[int]

    @property
    def words(self) -> list[tuple[str, Samples]]:
        parts = [self.samples[start:end] for start, end in pairwise(self.edges)]
        return list(zip(self.check.texts, parts, strict=True))


class Planted(NamedTuple):
    """A take with a fault, and the numbers of the words where it is."""

    take: Take
    samples: Samples
    places: set[int]

    @property
    def is_found(self) -> bool:
        """Return whether a word is marked that is at the fault or beside it."""
        check = AudioAnalysis(self.samples, self.take.text).words
        return check is None or any(abs(word - place) <= 1 for word in check.doubtful for place in self.places)


def read_take(text: TokenizedText, samples: Samples) -> Take | None:
    """Find the words of a take; None where that cannot be told."""
    check = AudioAnalysis(samples, text).words
    if check is None or len(check.texts) < min(WORDS) - 1:
        return None
    edges = [_quietest(samples, second) for second in (*(span.start for span in check.spans), check.spans[-1].end)]
    return Take(text, samples, check, edges)


def plant(kind: str, take: Take, others: Sequence[tuple[str, Samples]], choice: random.Random) -> Planted:
    """Plant a fault; ``others`` are spoken words, of which one replaces another."""
    sound, number = take.samples, choice.randrange(len(take.edges) - 1)
    start, end = take.edges[number : number + 2]
    word = sound[start:end]
    if kind == "moved":
        target = choice.choice([place for place in range(len(take.edges)) if place not in {number, number + 1}])
        at = take.edges[target]
        parts = [sound[:at], word, sound[at:start], sound[end:]]
        if at > start:
            parts = [sound[:start], sound[end:at], word, sound[at:]]
        return Planted(take, _joined(parts), {number, target})
    different = [sound for text, sound in others if text != take.check.texts[number]]
    middle = {"cut": [], "doubled": [word, word], "replaced": [choice.choice(different)]}[kind]
    return Planted(take, _joined([sound[:start], *middle, sound[end:]]), {number})


def repaired(planted: Planted, others: Sequence[Samples]) -> bool:
    """Return whether the fault is gone when the planted take comes first and then these."""
    sounds = iter([planted.samples, *others])

    generations: list[Generation] = []

    def begin(_sentence: Sentence, attempt: int) -> Generation:
        size = planted.samples.size if attempt == 1 else others[attempt - 2].size
        codes = [number * 7 % 1024 for number in range(round(size / OUTPUT_RATE / CODE_SECONDS))]
        generations.append(Generation([*codes, 1025], [], [-1.0] * len(codes), ended=True, finished=True))
        return generations[-1]

    settings = SpeechConfig(tries=1 + len(others), trim=False, loudness=0)
    (spoken,) = best_takes([Sentence(planted.take.text)], begin, lambda: (generations.pop(), next(sounds)), settings)
    return not np.array_equal(spoken.samples, planted.samples)


def measure(speak: Speak, texts: Iterable[str], count: int) -> list[str]:
    """Return the lines of the report."""
    choice = random.Random(0)  # noqa: S311  # no secret
    spoken = [[speak(text, number) for number in range(TAKES)] for text in texts]
    read = [(take, [sound for _, sound in rest]) for (first, *rest) in spoken if (take := read_take(*first))]
    words = [word for take, _ in read for word in take.words]
    total, marked = len(words), sum(len(take.check.doubtful) for take, _ in read)
    lines = [
        f"{len(spoken)} sentences, {len(read)} judged, {total} words: {100 * marked / total:.2f} false alarms per 100"
    ]
    for kind in KINDS:
        faults = [(plant(kind, take, words, choice), others) for take, others in (read * count)[:count]]
        found = sum(fault.is_found for fault, _ in faults)
        remaining = sum(not repaired(fault, others) for fault, others in faults)
        lines.append(f"{kind:9} {found / count:.1%} found, {remaining / count:.1%} remain after the repair")
    return lines


def espeak() -> Speak:
    """Return what speaks a text with espeak-ng, each take at another pace and pitch."""
    from tools.tiny_voice.speakers import Speaker, say

    pack = pack_for("am")

    def speak(text: str, number: int) -> tuple[TokenizedText, Samples]:
        normalised = pack.normalize(text)
        phones, voice = pack.phonemize(normalised), VARIANTS[len(text) % len(VARIANTS)]
        sound = say(text, Speaker(voice, voice, 40 + 5 * number, 150 + 10 * number))
        return TokenizedText(text, normalised, phones, "", (), (), ()), resample(sound, RATE, OUTPUT_RATE)

    return speak


def model(name: str) -> Speak:
    """Return what speaks a text with a model, each take with another seed."""
    from utils.studio.loading import chosen_voice

    voice = chosen_voice(SpeechConfig(model=name))

    def speak(text: str, number: int) -> tuple[TokenizedText, Samples]:
        (spoken, *_) = voice.speak(text, SpeechConfig(tries=1, trim=False, loudness=0, seed=number)).utterances
        return spoken.sentence.tokenized, spoken.samples

    return speak


def read_sentences(count: int) -> list[str]:
    """Return sentences of usual length, spread over the file."""
    lines = [line.strip() for line in SENTENCES.read_text(encoding="utf-8").splitlines() if len(line.split()) in WORDS]
    return lines[:: max(1, len(lines) // count)][:count]


def _joined(parts: Sequence[Samples]) -> Samples:
    joined, ramp = parts[0], np.linspace(0, 1, FADE, dtype=np.float32)
    for part in parts[1:]:
        size = FADE if min(joined.size, part.size) >= FADE else 0
        mixed = joined[joined.size - size :] * ramp[:size][::-1] + part[:size] * ramp[:size]
        joined = np.concatenate([joined[: joined.size - size], mixed, part[size:]])
    return joined


def _quietest(samples: Samples, second: float) -> int:
    first = max(0, round((second - NEAR) * OUTPUT_RATE))
    near = samples[first : round((second + NEAR) * OUTPUT_RATE)]
    return first + int(np.convolve(near**2, np.ones(SMOOTH), "same").argmin()) if near.size else samples.size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="default: espeak-ng")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--count", type=int, default=200, help="faults of each kind")
    arguments = parser.parse_args()
    speak = model(arguments.model) if arguments.model else espeak()
    for line in measure(speak, read_sentences(arguments.sentences), arguments.count):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
