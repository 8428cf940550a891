"""The text of the page in English and Amharic.

Every phrase has a stable id and stands in ``utils/wording``. The English of a setting is its pydantic field's title and
description; the table has only its translation, under an id such as ``train.num_epochs.title``.

Each event sets the language once, to what its visitor chose (``page.show_errors``); every thread and every step of a
generator has its own.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from utils.config import Config
from utils.config.facts import InvalidSettingsError
from utils.core import wording
from utils.core.errors import AmharicTtsError
from utils.core.wording import LANGUAGE, describe
from utils.core.wording import rows as phrases


class Phrase(str):
    """A text that can be written again in another language, so that a widget built with it can change its language."""

    __slots__ = ("write",)
    write: Callable[[], str]


def phrase(write: Callable[[], str]) -> Phrase:
    """Make a phrase from a function that writes it in the language of the moment."""
    made = Phrase(write())
    made.write = write
    return made


class Choices(list[tuple[str, str]]):
    """The choices of a widget, as (label, value), that can be written again."""

    def __init__(self, write: Callable[[], list[tuple[str, str]]]) -> None:
        super().__init__(write())
        self.write = write


def choices(keys: Mapping[str, str]) -> Choices:
    """Return choices from the ids of their phrases by value; a value that is a name needs no phrase."""
    return Choices(lambda: [(t(key) if key in phrases() else str(value), value) for value, key in keys.items()])


def t(key: str, **values: object) -> str:
    """Return a phrase with its gaps filled, which a widget can write again in another language.

    An unknown id comes back as it is: the page must not fail for a missing phrase. A count of 1 takes the phrase
    ``KEY_one``.
    """
    return phrase(lambda: _written(key, values))


def _written(key: str, values: Mapping[str, object]) -> str:
    one = f"{key}_one"
    return wording.text(one if values.get("count") == 1 and one in phrases() else key, values)


def heading(key: str, *, level: int = 2) -> str:
    """Return a phrase as a Markdown heading for a widget."""
    return phrase(lambda: f"{'#' * level} {t(key)}")


def labels(key: str, info: str = "") -> dict[str, Any]:
    """Return the label of a widget and the text below it, whose id ends in ``_hint`` unless another is given."""
    return {"label": t(key), "info": t(info or f"{key}_hint")}


def field_title(config: type[Config], name: str) -> str:
    return phrase(lambda: field_text(config, name, "title") or name)


def field_text(config: type[Config], name: str, part: Literal["title", "description"]) -> str:
    row = phrases().get(f"{field_area(config)}.{name}.{part}")
    return row.amharic if row and LANGUAGE.get() == "am" else getattr(config.model_fields[name], part) or ""


def field_area(config: type[Config]) -> str:
    """Return the first part of the ids of a config's fields: ``train`` for TrainConfig."""
    return config.__name__.removesuffix("Config").removesuffix("Settings").lower()


def describe_error(error: BaseException) -> str:
    """Return an error with its hint; an exception of another kind is an internal error."""
    if not isinstance(error, AmharicTtsError):
        return t("errors.internal", what=f"{type(error).__name__}: {error}")
    if isinstance(error, InvalidSettingsError) and LANGUAGE.get() != "en":  # without where they are from
        return "; ".join(describe_problems(error))
    return wording.explain(error)


def describe_problems(error: AmharicTtsError) -> list[str]:
    """Return each problem of a form or a file by itself, the name of its setting first; else the error in one line."""
    if not isinstance(error, InvalidSettingsError):
        return [describe_error(error)]
    return [describe(problem) for problem in error.problems]
