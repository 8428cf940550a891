"""What forms show of the fields of a config: bounds, help, and choices of languages."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr
from pydantic.fields import FieldInfo

from utils.config import Config
from utils.core.languages import AMHARIC, OTHER_LANGUAGES, XTTS_LANGUAGES
from utils.ui.i18n import field_text, field_title, phrase

SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


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
