"""A form of many settings in one component, generated from the fields of a config.

Gradio builds, watches and searches a tree of widgets for each setting, shown or not; here the browser's own inputs do
the work. The value is a dict of the settings by name, in events and for programs, which may leave out any of them.
"""

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import gradio as gr
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from utils.config import Config
from utils.core.languages import canonical, known_languages
from utils.studio.facts import Problem, UsageError
from utils.ui.i18n import LANGUAGES, choice_labels, field_text, field_title, phrase, t

SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
MAX_SLIDER_STEPS = 64  # more is too fine for a finger
SCRIPT = Path(__file__).with_name("settings_form.js")
EDITS = "edits"  # of a value: how many edits the browser had made


def values_of(value: object) -> dict[str, Any]:
    """Return the value of a form; a program may send anything."""
    if value is not None and not isinstance(value, Mapping):
        raise UsageError(Problem.NOT_SETTINGS)
    return {name: content for name, content in (value or {}).items() if name != EDITS}


class SettingsForm:
    """The form.

    Args:
        config: Declares the fields.
        groups: Names of fields by the id of their group's title. Those of a group without a title come first; the
            others can be searched and reset, and are shown while the switch ``Advanced`` of the tab is on.
        name: Prefix of the ids.
        sliders: Maximum of each number that is to have a slider, where the field has no bound that suits one.
        fixed: Fields that the button "Reset" leaves alone.
        suggestions: Common values of text fields, as (label, value).
    """

    def __init__(
        self,
        config: type[Config],
        groups: Mapping[str, Sequence[str]],
        name: str,
        *,
        sliders: Mapping[str, int] | None = None,
        fixed: Sequence[str] = (),
        suggestions: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    ) -> None:
        self.config, self.groups, self.name, self.sliders, self.fixed = config, groups, name, sliders or {}, fixed
        self.suggestions = suggestions or {}
        self.fields = [field for group in groups.values() for field in group]
        # Both languages are in the template: an update of a hidden widget, also one that skips it, drops properties.
        forms = json.dumps({language: self.render(language) for language in LANGUAGES}, ensure_ascii=False)
        self.widget = gr.HTML(
            self.value(config()),
            html_template=f"${{(forms => forms[document.documentElement.lang] ?? forms.en)({forms})}}",
            js_on_load=SCRIPT.read_text(encoding="utf-8"),
            apply_default_css=False,
            elem_id=f"{name}-form",
            effects={},  # HTML below some fields
        )

    def value(self, settings: Config, seen: Mapping[str, object] | None = None) -> dict[str, object]:
        """Return what the form shows of some settings; what was edited after the form had the value ``seen`` stays."""
        value = settings.model_dump(mode="json", include=set(self.fields))
        return value if seen is None else {**value, EDITS: seen.get(EDITS, 0)}

    def render(self, language: str) -> str:
        """Return the HTML of the form."""

        def fields(names: Sequence[str]) -> str:
            return "".join(self._field(field, language) for field in names)

        titled = {title: names for title, names in self.groups.items() if title}
        html = f'<div class="settings">{fields(self.groups.get("", ()))}</div>'
        if titled:
            html += _toolbar(language)
        for title, names in titled.items():
            html += f'<div class="more"><h3>{escape(t(title, language))}</h3>'
            html += f'<div class="settings">{fields(names)}</div></div>'
        return html

    def _field(self, field: str, language: str) -> str:
        element, title = f"{self.name}-{field}", escape(field_title(self.config, field, language))
        declared = self.config.model_fields[field]
        default = "" if field in self.fixed else f" data-default='{escape(json.dumps(declared.default))}'"
        widget = self._input(
            field, f'id="{element}-input" name="{field}" aria-describedby="{element}-hint"{default}', language
        )
        label = f'<label id="{element}-label" for="{element}-input">{title}</label>'
        head = f'<span class="switch">{widget}{label}</span>' if declared.annotation is bool else label + widget
        hint = f'<p class="hint" id="{element}-hint">{escape(describe(self.config, field, language))}</p>'
        return f'<div class="setting" id="{element}">{head}{hint}<div data-effect></div></div>'

    def _input(self, field: str, attributes: str, language: str) -> str:
        """Return the input of a field; the config checks its bounds, so that all errors are reported together."""
        declared = self.config.model_fields[field]
        kind = declared.annotation
        if kind is bool:
            return f'<input type="checkbox" {attributes}>'
        if get_origin(kind) is Literal:
            return (
                f"<select {attributes}>{_options(choice_labels(field, get_args(kind)).in_language(language))}</select>"
            )
        if any(isinstance(rule, AfterValidator) and rule.func is canonical for rule in declared.metadata):
            choices = f'<datalist id="{self.name}-languages">{_options(language_choices())}</datalist>'
            return f'<input type="text" list="{self.name}-languages" {attributes}>{choices}'
        if field in self.suggestions:
            choices = _options(self.suggestions[field])
            offered = f'<datalist id="{self.name}-{field}s">{choices}</datalist>'
            return f'<input type="text" list="{self.name}-{field}s" {attributes}>{offered}'
        if kind not in {int, float}:
            return f'<input type="text" {attributes}>'
        return self._number(field, attributes, language)

    def _number(self, field: str, attributes: str, language: str) -> str:
        """Return an input for a number, with a slider where its range suits one."""
        declared = self.config.model_fields[field]
        kind, limits = declared.annotation, bounds(declared)
        low, high = (limits.get(one, limits.get(other)) for one, other in (("ge", "gt"), ("le", "lt")))
        edges = "".join(f' {edge}="{value:.15g}"' for edge, value in (("min", low), ("max", high)) if value is not None)
        number = f'<input type="number" step="{1 if kind is int else "any"}"{edges} {attributes}>'
        if field == "seed":
            dice = escape(t("inference.random_seed", language))
            return f'<span class="slider">{number}<button type="button" data-random="seed">{dice}</button></span>'
        maximum = self.sliders.get(field, high)
        if low is None or maximum is None or (field not in self.sliders and maximum - low > MAX_SLIDER_STEPS):
            return number
        step = 1 if kind is int else 10.0 ** math.floor(math.log10((maximum - low) / 20))  # at least twenty steps
        slider = f'<input type="range" step="{step}" min="{low:g}" max="{maximum:g}" data-slider="{field}"'
        return f'<span class="slider">{slider} aria-labelledby="{self.name}-{field}-label">{number}</span>'


def _toolbar(language: str) -> str:
    """Return the search, the button that resets, and the place where changed settings are named."""
    search, reset, changed = (escape(t(f"training.{key}", language)) for key in ("search", "reset", "changed_settings"))
    return (
        f'<div class="toolbar more"><input type="search" placeholder="{search}" aria-label="{search}">'
        f'<button type="button" data-reset>{reset}</button>'
        f'<p class="hint" hidden>{changed} <span data-changed></span></p></div>'
    )


def _options(choices: Sequence[tuple[str, str]]) -> str:
    return "".join(f'<option value="{escape(value)}">{escape(label)}</option>' for label, value in choices)


def editable_dropdown(config: type[Config], name: str, choices: Sequence[Any], value: str | None) -> gr.Dropdown:
    """Return the widget of a field whose choices the page lists; other values can be typed."""
    return gr.Dropdown(
        choices,
        value=value,
        label=field_title(config, name),
        info=phrase(lambda language: describe(config, name, language)),
        allow_custom_value=True,
        interactive=True,
        elem_id=name,
    )


def bounds(field: FieldInfo) -> dict[str, float]:
    """Return the bounds of a field by their pydantic names."""
    return {
        sign: getattr(rule, sign) for rule in field.metadata for sign in SIGNS if type(rule).__name__.lower() == sign
    }


def describe(config: type[Config], name: str, language: str) -> str:
    """Return the field's description with its bounds in brackets."""
    limits = bounds(config.model_fields[name])
    return field_text(config, name, "description", language) + (f" [{range_text(limits)}]" if limits else "")


def range_text(limits: Mapping[str, float]) -> str:
    """Return bounds as text that needs no translation: 1-512, or > 0."""

    def plain(value: float) -> str:  # without an exponent: 4 294 967 296
        return (f"{value:,.0f}" if float(value).is_integer() else f"{value:,g}").replace(",", "\u202f")

    if limits.keys() == {"ge", "le"} and limits["ge"] >= 0:
        return f"{plain(limits['ge'])}-{plain(limits['le'])}"
    return ", ".join(f"{SIGNS[kind]}\u00a0{plain(value)}" for kind, value in limits.items())


def language_choices() -> list[tuple[str, str]]:
    return [
        (f"{language.native_name} · {language.name} ({language.code})", language.code) for language in known_languages()
    ]
