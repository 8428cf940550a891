"""Errors in the language of the page.

They are raised in English far below the page. What the tables know is translated, figures and names included; of the
rest the frame is: that it is told in English, and where the cure begins.
"""

import re
from functools import cache

from utils.core.errors import AmharicTtsError, ConfigError
from utils.ui.i18n import amharic, say

GAP = re.compile(r"\{[^{}]*\}")
FORM = "The form: "

# What pydantic says of a value that does not fit; each field of a form is told by itself.
RULES = (
    "{name}: {value} should be greater than or equal to {bound}",
    "{name}: {value} should be greater than {bound}",
    "{name}: {value} should be less than or equal to {bound}",
    "{name}: {value} should be less than {bound}",
    "{name}: {value} should be a valid number, unable to parse string as a number",
    "{name}: {value} should be a valid integer, unable to parse string as an integer",
    "{name}: {value} should be a valid number",
    "{name}: {value} should be a valid integer",
)


def told(error: BaseException, language: str) -> str:
    """Say an error with its cure, or that the program has a fault."""
    if not isinstance(error, AmharicTtsError):
        return _ours(error, language)
    if language == "en":
        return str(error)
    if error.message.startswith(FORM):
        return "; ".join(lines(error, language))
    what = translated(error.message) or say("The error, in English: {what}", language, what=error.message)
    cure = translated(error.hint) or error.hint
    return f"{what} {say('Cure', language)}፦ {cure}" if cure else what


def lines(error: AmharicTtsError, language: str) -> list[str]:
    """Say each fault of a form or a file by itself, the name of its setting first; any other error in one line."""
    if not isinstance(error, ConfigError) or not error.problems:
        return [told(error, language)]
    return [fault if language == "en" else translated(fault) or fault for fault in error.problems]


def translated(sentence: str) -> str:
    """Find the Amharic of a sentence whose gaps are filled already; empty when the tables do not have it."""
    if known := amharic().get(sentence):
        return known
    for pattern, gaps, other in _patterns():
        if found := pattern.fullmatch(sentence):
            values = dict(zip(gaps, found.groups(), strict=True))
            return GAP.sub(lambda gap, values=values: values[gap[0]], other)  # type: ignore[misc]
    return ""


def _ours(error: BaseException, language: str) -> str:
    what = f"{type(error).__name__}: {error}"
    return " ".join(
        (
            say("This is a fault of the program: {what}.", language, what=what),
            say("The terminal has the details; please report it.", language),
        )
    )


@cache
def _patterns() -> list[tuple[re.Pattern[str], list[str], str]]:
    """Return sentences with gaps as patterns, the most literal first."""
    rows = [(GAP.split(english), GAP.findall(english), other) for english, other in amharic().items()]
    rows = [row for row in rows if row[1] and len("".join(row[0])) >= 10]
    rows.sort(key=lambda row: -len("".join(row[0])))
    return [(re.compile("(.+?)".join(map(re.escape, parts)), re.DOTALL), gaps, other) for parts, gaps, other in rows]
