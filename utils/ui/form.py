"""Forms generated from the fields of a config."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args, get_origin

import gradio as gr
from gradio.components import Component
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from utils.config import Config
from utils.core.languages import AMHARIC, OTHER_LANGUAGES, XTTS_LANGUAGES, canonical
from utils.ui.i18n import choice_labels, field_text, field_title, phrase

C = TypeVar("C", bound=Config)

MULTISELECT: dict[str, Any] = {"multiselect": True, "interactive": True}
MAX_SLIDER_STEPS = 64  # more is too fine for a finger
SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def build_form(
    config: type[Config], *, only: Collection[str] = (), values: Config | None = None
) -> dict[str, Component]:
    """Return one widget for each field, or for some only, in the order of declaration, with values or the defaults."""
    if unknown := set(only) - config.model_fields.keys():
        raise KeyError(f"{config.__name__} has no field {', '.join(sorted(unknown))}")
    return {
        name: widget(config, name, getattr(values, name) if values is not None else field.default)
        for name, field in config.model_fields.items()
        if not only or name in only
    }


def build_field(config: type[Config], name: str) -> Any:  # noqa: ANN401  # the widget's type is that of the field
    """Return the widget of one field with its default."""
    return build_form(config, only=[name])[name]


def read_form(values: Mapping[str, object], config: type[C]) -> C:
    """Return the config from the values of its widgets; the error lists all invalid values.

    Pass the widgets to an event as ``inputs_kwargs=form``, so that each value arrives under the name of its field, in
    the handler and in the API.
    """
    return config.parse(values, source="The form")


def widget(config: type[Config], name: str, value: Any) -> Component:  # noqa: ANN401  # the type is the field's
    """Return the widget of a field; the config checks the bounds, so that all errors are reported together."""
    field = config.model_fields[name]
    kind = field.annotation
    options: dict[str, Any] = {
        "value": value,
        "label": field_title(config, name),
        "info": info(config, name),
        "interactive": True,
    }
    if kind is bool:
        return gr.Checkbox(**options)
    if get_origin(kind) is Literal:
        return gr.Dropdown(choice_labels(name, get_args(kind)), **options)
    if any(isinstance(rule, AfterValidator) and rule.func is canonical for rule in field.metadata):
        return gr.Dropdown(language_choices(), allow_custom_value=True, **options)
    if kind not in {int, float}:
        return gr.Textbox(max_lines=1, **options)
    low, high = (bounds(field).get(sign) for sign in ("ge", "le"))
    if low is not None and high is not None and high - low <= MAX_SLIDER_STEPS:
        return gr.Slider(low, high, step=1 if kind is int else fine_step(high - low), **options)
    return gr.Number(precision=0 if kind is int else None, **options)


def editable_dropdown(config: type[Config], name: str, choices: Sequence[Any], value: str | None) -> gr.Dropdown:
    """Return the widget of a field whose choices the page lists; other values can be typed."""
    return gr.Dropdown(
        choices,
        value=value,
        label=field_title(config, name),
        info=info(config, name),
        allow_custom_value=True,
        interactive=True,
        elem_id=name,
    )


def fine_step(span: float) -> float:
    """Return the power of ten that divides a range into at least twenty steps."""
    return float(10.0 ** math.floor(math.log10(span / 20)))


def bounds(field: FieldInfo) -> dict[str, float]:
    """Return the bounds of a field by their pydantic names."""
    return {
        sign: getattr(rule, sign) for rule in field.metadata for sign in SIGNS if type(rule).__name__.lower() == sign
    }


def info(config: type[Config], name: str) -> str:
    """Return the field's description with its bounds in brackets."""
    limits = bounds(config.model_fields[name])
    suffix = f" [{range_text(limits)}]" if limits else ""
    return phrase(lambda language: field_text(config, name, "description", language) + suffix)


def range_text(limits: Mapping[str, float]) -> str:
    """Return bounds as text that needs no translation: 1-512, or > 0."""

    def plain(value: float) -> str:  # without an exponent: 4 294 967 296
        return (f"{value:,.0f}" if float(value).is_integer() else f"{value:,g}").replace(",", "\u202f")

    if limits.keys() == {"ge", "le"} and limits["ge"] >= 0:
        return f"{plain(limits['ge'])}-{plain(limits['le'])}"
    return ", ".join(f"{SIGNS[kind]}\u00a0{plain(value)}" for kind, value in limits.items())


def language_choices() -> list[tuple[str, str]]:
    return [
        (f"{language.native_name} · {language.name} ({language.code})", language.code)
        for language in (AMHARIC, *XTTS_LANGUAGES, *OTHER_LANGUAGES)
    ]
