"""What is to be spoken: the sentences of this project, and short pieces of them, each with the voices that say it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tools.tiny_voice.recipe import Corpus
from tools.tiny_voice.speakers import SPEAKERS
from utils.core.batching import evenly_spaced
from utils.core.errors import DataError
from utils.core.storage import read_text, write_atomically
from utils.dataset.clip import Split

SENTENCES = Path(__file__).with_name("data") / "sentences.tsv"
TAKES = "takes.tsv"
WORD = re.compile(r"[\u1200-\u135a]+")  # numbers and abbreviations are read by what stands around them
LENGTHS = (1, 2, 3, 4)
SHARES = (0.3, 0.3, 0.2, 0.2)  # of pieces with so many words: the shortest teach how each letter sounds
TRIES = 20  # draws for each piece before the sentences count as used up

Kind = Literal["phrase", "sentence"]


@dataclass(frozen=True)
class Take:
    """One text to be spoken by one voice.

    Attributes:
        name: Of its file, without the ending.
        kind: A whole sentence or a piece of one.
        split: Whether it is learnt from.
        speaker: Who speaks.
        text: As it is written.
    """

    name: str
    kind: Kind
    split: Split
    speaker: str
    text: str


def read_sentences() -> dict[Split, list[str]]:
    """Read the sentences to learn from, and those that are held out."""
    found: dict[Split, list[str]] = {"train": [], "eval": []}
    for line in read_text(SENTENCES).splitlines():
        _, side, _, text = line.split("\t")
        found["train" if side == "train" else "eval"].append(text)
    return found


def takes(settings: Corpus) -> list[Take]:
    """Choose the pieces, and who speaks what."""
    random = np.random.default_rng(settings.seed)
    known = read_sentences()
    train = evenly_spaced(known["train"], settings.sentences)
    heldout = evenly_spaced(known["eval"], max(4, settings.sentences // 10))
    return [
        *_sentences(train, settings.takes),
        *_evaluation(heldout, "sentence", settings.judged),
        *_phrases(train, settings.phrases, random),
        *_evaluation(list(pieces(heldout, settings.judged, random)), "phrase", settings.judged),
    ]


def write_takes(folder: Path, chosen: Sequence[Take]) -> None:
    """Write the list of takes."""
    write_atomically(folder / TAKES, "".join("\t".join(astuple(take)) + "\n" for take in chosen))


def read_takes(folder: Path) -> list[Take]:
    """Read the list of takes."""
    return [Take(*line.split("\t")) for line in read_text(folder / TAKES).splitlines()]  # type: ignore[arg-type]


def pieces(sentences: Sequence[str], count: int, random: np.random.Generator) -> Iterator[str]:
    """Draw different pieces of one to four words that stand side by side."""
    words = [[word.strip("።፣፤?!፡ ") for word in sentence.split()] for sentence in sentences]
    seen: set[str] = set()
    for _ in range(count * TRIES):
        if len(seen) >= count:
            return
        line, length = words[int(random.integers(len(words)))], int(random.choice(LENGTHS, p=SHARES))
        start = int(random.integers(max(1, len(line) - length + 1)))
        piece = line[start : start + length]
        text = " ".join(piece)
        if len(piece) == length and text not in seen and all(map(WORD.fullmatch, piece)):
            seen.add(text)
            yield text
    if not seen:
        raise DataError(f"{SENTENCES} has no word to cut out.", hint="Put the file back.")


def _sentences(texts: Sequence[str], count: int) -> Iterator[Take]:
    """Let the voices speak in turn, so that each has as many sentences as the others."""
    for number, text in enumerate(texts):
        for place in range(number * count, (number + 1) * count):
            name = SPEAKERS[place % len(SPEAKERS)].name
            yield Take(f"sentence-{number:05}-{name}", "sentence", "train", name, text)


def _phrases(texts: Sequence[str], count: int, random: np.random.Generator) -> Iterator[Take]:
    for number, text in enumerate(pieces(texts, count, random)):
        name = SPEAKERS[int(random.integers(len(SPEAKERS)))].name
        yield Take(f"phrase-{number:05}-{name}", "phrase", "train", name, text)


def _evaluation(texts: Sequence[str], kind: Kind, count: int) -> Iterator[Take]:
    for number, text in enumerate(texts[:count]):
        name = SPEAKERS[number % len(SPEAKERS)].name
        yield Take(f"judged-{kind}-{number:05}-{name}", kind, "eval", name, text)
