"""Forms made from the fields of a config: config → widgets → config."""

import math
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

import gradio as gr
from gradio.components import Component
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from utils.config import Config
from utils.core.languages import AMHARIC, OTHER_LANGUAGES, XTTS_LANGUAGES, canonical
from utils.ui.i18n import field_description, field_title, phrase

C = TypeVar("C", bound=Config)

MOST_STEPS = 64  # a slider with more is too fine for a finger
SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def build_form(
    config: type[Config], *, only: Collection[str] = (), values: Config | None = None
) -> dict[str, Component]:
    """Make one widget for each field, in the order of declaration.

    Args:
        config: The class whose fields are asked for.
        only: The fields that are wanted; empty: all.
        values: What the widgets hold at first; the defaults when it is None.
    """
    fields = {name: field for name, field in config.model_fields.items() if not only or name in only}
    if unknown := set(only) - set(fields):
        raise KeyError(f"{config.__name__} has no field {', '.join(sorted(unknown))}")
    return {
        name: widget(config, name, getattr(values, name) if values is not None else field.default)
        for name, field in fields.items()
    }


def read_form(values: Mapping[str, object], config: type[C]) -> C:
    """Make a config from what the widgets hold, by name; every fault is reported, not only the first.

    A field without a widget keeps its default. Hand the widgets to an event as ``inputs_kwargs=form``: then each value
    reaches the handler, and a program that drives the page, under the name of its field.
    """
    return config.parse(values, source="The form")


def widget(config: type[Config], name: str, value: Any) -> Component:  # noqa: ANN401  # the type is the field's
    """Make the widget that suits a field; the config itself checks the bounds, so that all faults come together."""
    field = config.model_fields[name]
    label, description = field_title(config, name), info(config, name)
    words: dict[str, Any] = {"value": value, "label": label, "info": description, "interactive": True}
    kind = field.annotation
    if kind is bool:
        return gr.Checkbox(**words)
    if get_origin(kind) is Literal:
        return gr.Dropdown([(str(choice), choice) for choice in get_args(kind)], **words)
    if is_language(field):
        return gr.Dropdown(language_choices(), allow_custom_value=True, **words)
    if kind in {int, float}:
        return number(field, words)
    return gr.Textbox(max_lines=1, **words)


def number(field: FieldInfo, words: Mapping[str, Any]) -> Component:
    """Make a slider where both ends belong to a short range, else a box for a number."""
    low, high = bounds(field).get("ge"), bounds(field).get("le")
    whole = field.annotation is int
    if low is not None and high is not None and high - low <= MOST_STEPS:
        return gr.Slider(low, high, step=1 if whole else fine_step(high - low), **words)
    return gr.Number(precision=0 if whole else None, **words)


def fine_step(span: float) -> float:
    """Return the power of ten that divides a span into at least twenty steps."""
    return float(10.0 ** math.floor(math.log10(span / 20)))


def bounds(field: FieldInfo) -> dict[str, float]:
    """Return the limits of a field by their pydantic names."""
    return {
        kind: getattr(rule, kind) for rule in field.metadata for kind in SIGNS if type(rule).__name__.lower() == kind
    }


def info(config: type[Config], name: str) -> str:
    """Return the field's description and its bounds."""
    limits = ", ".join(
        f"{SIGNS[kind]}\u00a0{plain(value)}" for kind, value in bounds(config.model_fields[name]).items()
    )
    suffix = f" [{limits}]" if limits else ""
    return phrase(lambda language: field_description(config, name, language) + suffix)


def plain(value: float) -> str:
    """Write a bound as people do: 4 294 967 296 rather than 4.29497e+09."""
    return (f"{value:,.0f}" if float(value).is_integer() else f"{value:,g}").replace(",", "\u202f")


def is_language(field: FieldInfo) -> bool:
    """Tell whether a field holds the code of a language."""
    return any(isinstance(rule, AfterValidator) and rule.func is canonical for rule in field.metadata)


def language_choices() -> list[tuple[str, str]]:
    """List the languages that are known by name; any other can be typed."""
    return [
        (f"{language.native_name} · {language.name} ({language.code})", language.code)
        for language in (AMHARIC, *XTTS_LANGUAGES, *OTHER_LANGUAGES)
    ]
