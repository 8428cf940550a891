"""Errors, and other text from below the page, in the language of the page.

Both are written in English where they arise. The tables know many of them, names and numbers left open; the others
are shown in English.
"""

import re
from functools import cache

from utils.core.errors import AmharicTtsError, ConfigError
from utils.ui.i18n import phrases, t

GAP = re.compile(r"\{[^{}]*\}")
MIN_LITERAL = 10  # characters outside the gaps, below which a pattern would match almost anything


def describe(error: BaseException, language: str) -> str:
    """Return an error with its hint; an exception of another kind is an internal error."""
    if not isinstance(error, AmharicTtsError):
        return t("errors.internal", language, what=f"{type(error).__name__}: {error}")
    if language == "en":
        return str(error)
    if isinstance(error, ConfigError) and error.problems:
        return "; ".join(describe_each(error, language))
    message = translate(error.message, language)
    return f"{message} {t('common.cure', language)}፦ {translate(error.hint, language)}" if error.hint else message


def describe_each(error: AmharicTtsError, language: str) -> list[str]:
    """Return each problem of a form or a file by itself, the name of its setting first; else the error in one line."""
    if not isinstance(error, ConfigError) or not error.problems:
        return [describe(error, language)]
    return [translate(fault, language) for fault in error.problems]


def translate(text: str, language: str) -> str:
    """Translate text that was written in English below the page; return it as it is when no table has it."""
    if language == "en":
        return text
    if text in _exact():
        return _exact()[text]
    for pattern, gaps, translation in _patterns():
        if match := pattern.fullmatch(text):
            values = dict(zip(gaps, match.groups(), strict=True))
            return GAP.sub(lambda gap, values=values: values[gap[0]], translation)  # type: ignore[misc]
    return text


@cache
def _exact() -> dict[str, str]:
    return {row.english: row.amharic for row in phrases().values()}


@cache
def _patterns() -> list[tuple[re.Pattern[str], list[str], str]]:
    """Return the phrases with gaps as patterns, the most literal first."""
    rows = [(GAP.split(english), GAP.findall(english), amharic) for english, amharic in _exact().items()]
    rows = [row for row in rows if row[1] and len("".join(row[0])) >= MIN_LITERAL]
    rows.sort(key=lambda row: -len("".join(row[0])))
    return [(re.compile("(.+?)".join(map(re.escape, parts)), re.DOTALL), gaps, other) for parts, gaps, other in rows]
