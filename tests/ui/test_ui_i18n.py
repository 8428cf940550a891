"""The two languages of the page."""

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from utils.config import RehearsalConfig
from utils.core.paths import ROOT
from utils.runs import Status
from utils.ui.i18n import amharic, rows, say
from utils.ui.tabs.pronunciation import LOST
from utils.ui.views import ABILITIES, NOTHING_CHOSEN, SIGNS


def said_in(path: Path) -> Iterator[str]:
    """Every sentence that a file hands to say() as it stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say" and node.args:
            text = node.args[0]
            if isinstance(text, ast.Constant):
                yield str(text.value)


SOURCES = sorted((ROOT / "utils" / "ui").rglob("*.py"))
FIELDS = RehearsalConfig.model_fields.values()
SENTENCES = sorted(
    {text for path in SOURCES for text in said_in(path)}
    | {reason for one in [*ABILITIES.values(), NOTHING_CHOSEN] for reason in vars(one).values() if reason}
    | {*SIGNS, *Status, *LOST.values()}
    | {text for field in FIELDS for text in (field.title, field.description) if text}
)


@pytest.mark.parametrize("text", SENTENCES)
def test_every_sentence_has_an_amharic_one(text: str) -> None:
    assert text in amharic()


def gaps(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize(("english", "translation"), amharic().items())
def test_both_sentences_have_the_same_gaps(english: str, translation: str) -> None:
    assert gaps(english) == gaps(translation)


def test_gaps_are_filled_and_unknown_words_stay_english() -> None:
    assert say("{name} is at work.", "am", name="r1") == "r1 በሥራ ላይ ነው።"
    assert say("{name} is at work.", "en", name="r1") == "r1 is at work."
    assert say("Nobody translated this {yet}", "am") == "Nobody translated this {yet}"


@pytest.mark.parametrize(
    ("other", "ours"),
    [
        ("ቅንጭ", "ቅንጥብ"),
        ("ዳታሴ", "የውሂብ ስብስብ"),
        ("ዳታ ስብስ", "የውሂብ ስብስብ"),
        ("መረጃ ስብስ", "የውሂብ ስብስብ"),
        ("ሥልጠና ማቆያ", "ማስቀመጫ ነጥብ"),
        ("የሞዴል ቅጂ", "ማስቀመጫ ነጥብ"),
        ("ምዘና", "ግምገማ"),
    ],
)
def test_one_thing_has_one_word(other: str, ours: str) -> None:
    said = list(amharic().values())
    assert [sentence for sentence in said if other in sentence] == []
    assert any(ours in sentence for sentence in said)


def test_no_sentence_stands_in_the_tables_twice() -> None:
    assert len(rows()) == len(amharic())
