"""How many words of the development lists the front end reads as they are said."""

from pathlib import Path

import pytest

from utils.amharic import normalize, phonemize

DATA = Path(__file__).parent.parent / "data"
MARKS = "።፣፤፥፦፧.,;:?!\"'()«»"


def rows(name: str) -> list[list[str]]:
    lines = (DATA / f"amharic_{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.split("\t")] for line in lines if line and not line.startswith("#")]


def words(text: str) -> list[str]:
    return [word for token in text.split() if (word := token.strip(MARKS))]


def spoken(text: str) -> list[str]:
    return words(phonemize(normalize(text)))


def is_right(expected: str, said: str) -> bool:
    return said in {variant.strip().removeprefix("ʔ").replace("g", "ɡ") for variant in expected.split("|")}


@pytest.mark.parametrize(("name", "least"), [("words", 0.99), ("judge", 0.98), ("pronunciations", 0.99)])
def test_most_words_are_right_with_their_lengths(name: str, least: float) -> None:
    found = [is_right(expected, " ".join(spoken(written))) for written, expected, *_ in rows(name)]
    assert sum(found) >= least * len(found)


def test_most_words_of_running_text_are_right() -> None:
    right = count = 0
    for _, sentence, expected in rows("running"):
        wanted, said = [word.strip(MARKS) for word in expected.split()], spoken(sentence)
        count += len(wanted)
        right += sum(map(is_right, wanted, said)) if len(wanted) == len(said) else 0
    assert right >= 0.97 * count


@pytest.mark.parametrize(("name", "least"), [("homographs", 0.93), ("voices", 0.95)])
def test_most_homographs_are_read_as_the_sentence_asks(name: str, least: float) -> None:
    found = [is_right(phones, spoken(text)[words(text).index(word)]) for text, word, phones in rows(name)]
    assert sum(found) >= least * len(found)
