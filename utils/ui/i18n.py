"""The text of the page in English and Amharic.

Every phrase has a stable id and stands in ``utils/wording``. The English of a setting is its pydantic field's title and
description; the table has only its translation, under an id such as ``train.num_epochs.title``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from utils.config import Config
from utils.config.facts import InvalidSettingsError
from utils.core import wording
from utils.core.errors import AmharicTtsError
from utils.core.wording import rows as phrases

LANGUAGES = {"en": "English", "am": "አማርኛ"}


class Phrase(str):
    """A text that knows its translations, so that a widget built with it can change its language."""

    __slots__ = ("in_language",)
    in_language: Callable[[str], str]


def phrase(in_language: Callable[[str], str]) -> Phrase:
    """Make a phrase from a function that returns its text in a language; it reads as the English one."""
    made = Phrase(in_language("en"))
    made.in_language = in_language
    return made


class Choices(list[tuple[str, str]]):
    """The choices of a widget, as (label, value), that know their translations."""

    def __init__(self, in_language: Callable[[str], list[tuple[str, str]]]) -> None:
        super().__init__(in_language("en"))
        self.in_language = in_language


def choices(keys: Mapping[str, str]) -> Choices:
    """Return choices from the ids of their phrases by value."""
    return Choices(lambda language: [(t(key, language), value) for value, key in keys.items()])


def t(key: str, language: str = "", **values: object) -> str:
    """Return a phrase in a language with its gaps filled.

    Without a language the result is a ``Phrase`` for a widget, which follows the language of the page. An unknown id
    comes back as it is: the page must not fail for a missing phrase. A count of 1 takes the phrase ``KEY_one``.
    """
    if not language:
        return phrase(lambda chosen: t(key, chosen, **values))
    row = phrases().get(key)
    if row is None:
        return key
    if values.get("count") == 1:
        row = phrases().get(f"{key}_one", row)
    text = row.amharic if language == "am" and row.amharic else row.english
    return text.format(**values) if values else text


def heading(key: str, *, level: int = 2) -> str:
    """Return a phrase as a Markdown heading for a widget."""
    return phrase(lambda language: f"{'#' * level} {t(key, language)}")


def labels(key: str, info: str = "") -> dict[str, Any]:
    """Return the label of a widget and the text below it, whose id ends in ``_hint`` unless another is given."""
    return {"label": t(key), "info": t(info or f"{key}_hint")}


def field_title(config: type[Config], name: str, language: str = "") -> str:
    if not language:
        return phrase(lambda chosen: field_title(config, name, chosen))
    return field_text(config, name, "title", language) or name


def field_text(config: type[Config], name: str, part: Literal["title", "description"], language: str) -> str:
    row = phrases().get(f"{field_area(config)}.{name}.{part}")
    return row.amharic if row and language == "am" else getattr(config.model_fields[name], part) or ""


def choice_labels(name: str, values: Sequence[str]) -> Choices:
    """Return the choices of a setting; most are names, which need no phrase."""
    ids = {value: f"choice.{name}.{value}" for value in values}
    return Choices(
        lambda language: [(t(key, language) if key in phrases() else str(value), value) for value, key in ids.items()]
    )


def field_area(config: type[Config]) -> str:
    """Return the first part of the ids of a config's fields: ``train`` for TrainConfig."""
    return config.__name__.removesuffix("Config").removesuffix("Settings").lower()


def describe_error(error: BaseException, language: str) -> str:
    """Return an error with its hint; an exception of another kind is an internal error."""
    if not isinstance(error, AmharicTtsError):
        return t("errors.internal", language, what=f"{type(error).__name__}: {error}")
    if isinstance(error, InvalidSettingsError) and language != "en":  # without where they are from
        return "; ".join(describe_problems(error, language))
    return wording.explain(error, language)


def describe_problems(error: AmharicTtsError, language: str) -> list[str]:
    """Return each problem of a form or a file by itself, the name of its setting first; else the error in one line."""
    if not isinstance(error, InvalidSettingsError):
        return [describe_error(error, language)]
    return [wording.describe(problem, language) for problem in error.problems]
