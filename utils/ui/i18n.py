"""The text of the page in English and Amharic.

Every phrase has a stable id. The tables in strings/ hold id, English and Amharic, one phrase per line. The English of a
setting is its pydantic field's title and description; the table has only its translation, under an id such as
``train.num_epochs.title``.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from utils.config import Config

LANGUAGES = {"en": "English", "am": "አማርኛ"}
TABLES = Path(__file__).parent / "strings"


class Row(NamedTuple):
    """A phrase in both languages; an empty English means that it is declared in a config field."""

    id: str
    english: str
    amharic: str


@cache
def phrases() -> dict[str, Row]:
    """Return the rows of all tables by id."""
    return {row.id: row for table in sorted(TABLES.glob("*.tsv")) for row in read_table(table)}


def read_table(path: Path) -> list[Row]:
    """Read a table; its first line is a heading."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return [Row(*line.split("\t")) for line in lines if line]


class Phrase(str):
    """A text that knows its translations, so that a widget built with it can change its language."""

    __slots__ = ("in_language",)
    in_language: Callable[[str], str]


def phrase(in_language: Callable[[str], str]) -> Phrase:
    """Make a phrase from a function that returns its text in a language; it reads as the English one."""
    made = Phrase(in_language("en"))
    made.in_language = in_language
    return made


def t(key: str, language: str = "", **values: object) -> str:
    """Return a phrase in a language with its gaps filled.

    Without a language the result is a ``Phrase`` for a widget, which follows the language of the page. An unknown id
    comes back as it is: the page must not fail for a missing phrase.
    """
    if not language:
        return phrase(lambda chosen: t(key, chosen, **values))
    row = phrases().get(key)
    if row is None:
        return key
    text = row.amharic if language == "am" and row.amharic else row.english
    return text.format(**values) if values else text


def heading(key: str, *, level: int = 2) -> str:
    """Return a phrase as a Markdown heading for a widget."""
    return phrase(lambda language: f"{'#' * level} {t(key, language)}")


def field_title(config: type[Config], name: str, language: str = "") -> str:
    """Return the title of a setting."""
    if not language:
        return phrase(lambda chosen: field_title(config, name, chosen))
    return _of_field(config, name, "title", config.model_fields[name].title or name, language)


def field_description(config: type[Config], name: str, language: str) -> str:
    """Return the description of a setting."""
    return _of_field(config, name, "description", config.model_fields[name].description or "", language)


def _of_field(config: type[Config], name: str, part: str, english: str, language: str) -> str:
    row = phrases().get(f"{field_area(config)}.{name}.{part}")
    return row.amharic if row and language == "am" else english


def field_area(config: type[Config]) -> str:
    """Return the first part of the ids of a config's fields: ``train`` for TrainConfig."""
    return config.__name__.removesuffix("Config").removesuffix("Settings").lower()
