"""The texts of the corpus and who speaks each: sentences, pieces of sentences, and words of the lexicon."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from tools.tiny_voice.speakers import OTHERS, SPEAKERS
from utils.amharic import verbs
from utils.amharic.alphabet import CONSONANT_CODES, VOWEL_CODES, fold, values
from utils.amharic.kinds import mask
from utils.amharic.lexicon import FOLDER as LEXICON
from utils.core.batching import evenly_spaced
from utils.core.storage import read_text
from utils.dataset.clip import Split

SENTENCES = Path(__file__).with_name("data") / "sentences.tsv"
WORD = re.compile(r"[\u1200-\u135a]+")  # numbers and abbreviations are read by what stands around them
INNER = re.compile(r"(?<=[\u1200-\u135a])[\u1200-\u135a]")  # a letter that can be geminate
PUNCTUATION = "።፣፤?!፡ "
LENGTHS = (1, 2, 3, 4)
SHARES = (0.3, 0.3, 0.2, 0.2)  # of pieces with so many words: the shortest teach how each letter sounds
TRIES = 20  # draws for each text before the source counts as used up
GEMINATED = 0.25  # share of the word lists in which one letter gets the gemination mark, whatever the word is
QUESTIONS = 0.15
MIXED, SOURCES = 0.5, (0.5, 0.25, 0.25)  # share of the words; from sentences, the lexicon and forms of verbs
SYLLABLE = re.compile(f"[{CONSONANT_CODES}]W?[{''.join(VOWEL_CODES)}]?")
VERB_FORMS = (  # kind of stem, prefix and ending in codes
    ("P", "", "E"), ("P", "", "Ec"), ("P", "", "u"), ("P", "", "ku"), ("Pa", "", "a"), ("Pa", "", "u"), ("Pə", "", "E"),
    ("Iy", "y", "al"), ("It", "t", "alEc"), ("I1", "H", "alEhu"), ("Iay", "y", "al"), ("Jy", "y", ""),
    ("Jay", "y", "a"), ("G", "", "o"), ("G", "", "Ew"), ("N", "", ""),
)  # fmt: skip
MARK = "\u135f"
TURNS = [speaker.name for speaker in (*SPEAKERS, *SPEAKERS, *OTHERS)]  # a third by those that can be chosen

Kind = Literal["phrase", "sentence"]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Corpus:
    """What is spoken."""

    sentences: int = 2_000  # at most, to learn from; a tenth as many are held out
    takes: int = 6  # speakers of each sentence
    phrases: int = 9_000  # pieces of the sentences, each by one speaker
    word_lists: int = 9_000  # words of the lexicon in any order
    mixed: int = 0  # sentences in which half of the words come from elsewhere
    judged: int = 120  # held-out sentences that losses are measured on
    seed: int = 1


@dataclass(frozen=True)
class Take:
    """A text spoken by a speaker."""

    name: str
    kind: Kind  # a phrase has one to four words
    speaker: str
    text: str


def read_sentences() -> dict[Split, list[str]]:
    """Read the sentences to learn from, and those that are held out."""
    sentences: dict[Split, list[str]] = {"train": [], "eval": []}
    for line in read_text(SENTENCES).splitlines():
        _, split, _, text = line.split("\t")
        sentences["train" if split == "train" else "eval"].append(text)
    return sentences


def choose_takes(settings: Corpus, more: Sequence[str] = ()) -> list[Take]:
    """Choose the texts, and who speaks each; more of them can be given."""
    random = np.random.default_rng(settings.seed)
    sentences = read_sentences()
    train = evenly_spaced(sentences["train"], settings.sentences)
    held_out = evenly_spaced(sentences["eval"], max(4, settings.sentences // 10))
    pieces = _distinct(_piece_of(train, random), settings.phrases)
    lists = _distinct(_words_of(_lexicon_without(held_out), random), settings.word_lists)
    return [
        *_sentences(train, settings.takes),
        *_phrases([*pieces, *lists, *more], random),
    ]


def mixed_sentences(settings: Corpus) -> list[str]:
    """Return sentences in which each word is, as likely as not, one of another sentence or of the lexicon."""
    random, sentences = np.random.default_rng(settings.seed), read_sentences()
    lines = [re.split(f"({WORD.pattern})", sentence) for sentence in sentences["train"]]
    lists = [[word for line in lines for word in line[1::2]], *_lexicon_without(sentences["eval"])]

    def draw() -> str:
        pieces = _any(lines, random).copy()
        for place in range(1, len(pieces), 2):
            if random.random() < MIXED:
                words = lists[int(random.choice(len(lists), p=SOURCES))]
                pieces[place] = _any(words, random)
        return "".join(pieces)

    return _distinct(draw, settings.mixed)


def _any(items: Sequence[Item], random: np.random.Generator) -> Item:
    return items[int(random.integers(len(items)))]


def _distinct(draw: Callable[[], str], count: int) -> list[str]:
    """Draw different texts, fewer than asked where there are no more."""
    texts: dict[str, None] = {}
    for _ in range(count * TRIES):
        if len(texts) >= count:
            break
        if text := draw():
            texts[text] = None
    return list(texts)


def _piece_of(sentences: Sequence[str], random: np.random.Generator) -> Callable[[], str]:
    """Return a function that draws one to four words that stand side by side, or nothing."""
    words = [[word.strip(PUNCTUATION) for word in sentence.split()] for sentence in sentences]

    def draw() -> str:
        line, length = _any(words, random), int(random.choice(LENGTHS, p=SHARES))
        start = int(random.integers(max(1, len(line) - length + 1)))
        piece = line[start : start + length]
        return " ".join(piece) if len(piece) == length and all(map(WORD.fullmatch, piece)) else ""

    return draw


def _words_of(lists: Sequence[Sequence[str]], random: np.random.Generator) -> Callable[[], str]:
    """Return a function that draws one to four words, each from any of the lists; some get a geminate or a question."""

    def draw() -> str:
        drawn = [_any(lists, random) for _ in range(random.choice(LENGTHS))]
        text = " ".join(_any(words, random) for words in drawn)
        inner = [match.end() for match in INNER.finditer(text)]
        if inner and random.random() < GEMINATED:
            place = _any(inner, random)
            text = text[:place] + MARK + text[place:]
        return text + ("?" if random.random() < QUESTIONS else "")

    return draw


def _lexicon_without(sentences: Sequence[str]) -> list[list[str]]:
    """Return the lexicon and the forms of its verbs, without the words of some sentences."""
    lines = [line for path in sorted(LEXICON.glob("*.tsv")) for line in read_text(path).splitlines()]
    unseen = {word.strip(PUNCTUATION) for sentence in sentences for word in sentence.split()}
    return [
        [word for word in words if WORD.fullmatch(word) and word not in unseen]
        for words in ([line.split("\t")[0].replace("ː", "") for line in lines], _verb_forms())
    ]


def _spell(codes: str) -> str:
    """Spell codes in Ethiopic letters; length and ɨ are not written."""
    return SYLLABLE.sub(lambda match: _letters().get(match[0], ""), codes.replace(":", "").replace("I", ""))


@cache
def _letters() -> dict[str, str]:
    """Return a letter for each syllable; of letters that sound alike the one that is left after folding."""
    known = {codes: letter for letter, codes in values().items() if fold(letter) == letter and letter < "\u1380"}
    return {codes.removesuffix("I"): letter for codes, letter in known.items()} | known


def _verb_forms() -> list[str]:
    """Return the listed and derived verbs in some of their forms."""
    known = [stem for root, _, _ in verbs.roots() for stem in verbs.stems(root)]
    forms = (
        _spell(prefix + stem.codes + ending)
        for kind, prefix, ending in VERB_FORMS
        for stem in known
        if stem.kinds & mask(kind)
    )
    return list(dict.fromkeys(forms))


def _sentences(texts: Sequence[str], count: int) -> Iterator[Take]:
    """Let the speakers take turns."""
    for number, text in enumerate(texts):
        for turn in range(number * count, (number + 1) * count):
            name = TURNS[turn % len(TURNS)]
            yield Take(f"sentence-{number:05}-{name}", "sentence", name, text)


def _phrases(texts: Sequence[str], random: np.random.Generator) -> Iterator[Take]:
    for number, text in enumerate(texts):
        name = _any(TURNS, random)
        yield Take(f"phrase-{number:05}-{name}", "phrase", name, text)
