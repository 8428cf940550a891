"""Every word of the page in two languages.

The tables are words*.tsv, one for the frame and one for each tab; the English sentence is the key, so the code reads as
the page does.
"""

from functools import cache
from pathlib import Path

LANGUAGES = {"en": "English", "am": "አማርኛ"}
TABLES = sorted(Path(__file__).parent.glob("words*.tsv"))


@cache
def amharic() -> dict[str, str]:
    """Return the Amharic sentence of each English one."""
    return dict(rows())


def rows() -> list[tuple[str, str]]:
    """Read the rows of all tables; a sentence that several tabs use stands in the first of them alone."""
    lines = (line for table in TABLES for line in table.read_text(encoding="utf-8").splitlines())
    return [(english, amharic) for english, _, amharic in (line.partition("\t") for line in lines if _is_row(line))]


def say(text: str, language: str, **values: object) -> str:
    """Return a sentence in a language, with its gaps filled; what is not in the table stays English."""
    words = amharic().get(text, text) if language == "am" else text
    return words.format(**values) if values else words


def _is_row(line: str) -> bool:
    return bool(line) and not line.startswith("#")
