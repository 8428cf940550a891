"""Every word of the page in two languages.

The table is words.tsv; the English sentence is the key, so the code reads as the page does.
"""

from functools import cache
from pathlib import Path

LANGUAGES = {"en": "English", "am": "አማርኛ"}
TABLE = Path(__file__).with_name("words.tsv")


@cache
def amharic() -> dict[str, str]:
    """Return the Amharic sentence of each English one."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


def say(text: str, language: str, **values: object) -> str:
    """Return a sentence in a language, with its gaps filled; what is not in the table stays English."""
    words = amharic().get(text, text) if language == "am" else text
    return words.format(**values) if values else words
