"""Ethiopic letters as they are written: which ones there are, and which spellings sound alike."""

from functools import cache

from utils.amharic.tables import rows

ETHIOPIC = "\u1200-\u135a\u135f\u1380-\u138f\u2d80-\u2ddf\uab00-\uab2f"


@cache
def homophones() -> dict[int, str]:
    """Return the table that gives each letter the spelling used for its sound today."""
    return {ord(letter): plain for letter, plain in rows("homophones.tsv", columns=2)}


def fold(text: str) -> str:
    """Spell letters that sound alike with one letter."""
    return text.translate(homophones())
