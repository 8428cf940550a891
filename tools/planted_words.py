"""Plant faults in takes and count how many the check of words finds, and how many remain after the repair.

    python -m tools.planted_words                     espeak-ng, 200 of each kind
    python -m tools.planted_words --model tiny        a model of this program

What a repair is built from are other takes of the same sentence. A false alarm is a word that is marked in a take as it
was spoken: the speech of a model has faults of its own, that of espeak-ng has none.
"""

import argparse
import random
import sys
from collections.abc import Callable, Iterable

from testing.planted_words import KINDS, WORDS, plant, read_take, repaired
from utils.config import SpeechConfig
from utils.core.paths import ROOT
from utils.media.audio import Samples, resample
from utils.media.rates import OUTPUT_RATE, RATE
from utils.xtts.language_packs import pack_for
from utils.xtts.tokenizer import TokenizedText

SENTENCES = ROOT / "tests" / "data" / "amharic_sentences.txt"
TAKES = 3
VARIANTS = ("", "f2", "m3", "f4")

Speak = Callable[[str, int], tuple[TokenizedText, Samples]]  # a text, and the number of the take


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
