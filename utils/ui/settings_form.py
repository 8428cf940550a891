"""A form of many settings in one component, generated from the fields of a config.

Gradio builds, watches and searches a tree of widgets for each setting, shown or not; here the browser's own inputs do
the work. The value is a dict of the settings by name, in events and for programs, which may leave out any of them.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import gradio as gr
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from utils.config import Config
from utils.config.flags import bounds
from utils.core.errors import AmharicTtsError
from utils.core.languages import canonical, known_languages
from utils.core.wording import LANGUAGES, speaking
from utils.studio.facts import UsageError
from utils.studio.paths import Project
from utils.ui.html import html
from utils.ui.i18n import choices, field_text, field_title, phrase
from utils.ui.page import Action, PageContext, PanelRequest, Updates

SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
MAX_SLIDER_STEPS = 64  # more is too fine for a finger
SCRIPT = Path(__file__).with_name("settings_form.js")
Values = Mapping[str, object]  # of a form; a program may send None
Check = Callable[[PanelRequest, Any], str]  # of the settings of a form; what it found, as HTML
EDITS, PRESET = "edits", "preset"  # of a value: how many edits the browser had made, and what filled the form


def values_of(value: object) -> dict[str, Any]:
    """Return the value of a form; a program may send anything."""
    if not value:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError("not_settings")
    return {name: content for name, content in value.items() if name not in {EDITS, PRESET}}


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
        self.config = config
        self.groups = groups
        self.name = name
        self.sliders = sliders or {}
        self.fixed = fixed
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

    def value(self, settings: Config, seen: Values | None = None) -> dict[str, object]:
        """Return what the form shows of some settings; what was edited after the form had the value ``seen`` stays."""
        value = settings.model_dump(mode="json", include=set(self.fields))
        return value if seen is None else {**value, EDITS: (seen or {}).get(EDITS, 0)}

    def connect(
        self,
        page: PageContext,
        function: Callable[..., Any],
        outputs: Sequence[Any] = (),
    ) -> None:
        """Fill the form when a project is opened: the handler is given its name and the form.

        What is edited after the project was opened stays, also if its settings are asked for later.
        """
        events, edits = [page.blocks.load, page.project.change], f"window.{self.name}Edits"
        note = f"form => {{ {edits} = form?.{EDITS} ?? 0; }}"
        gr.on(events, None, self.widget, None, js=note, trigger_mode="multiple", api_visibility="private")
        seen = f"(project, form, ...rest) => [project, {{...form, {EDITS}: {edits}}}, ...rest]"
        given, filled = [page.project, self.widget], [self.widget, *outputs]
        page.on_latest(events, function, given, filled, js=seen)

    def render(self, language: str) -> str:
        """Return the HTML of the form in a language."""
        with speaking(language):
            groups = {title: [self._field(name) for name in names] for title, names in self.groups.items()}
            return html("form.html", "form", self.name, groups)

    def _field(self, field: str) -> dict[str, Any]:
        """Return what the template shows of a field; the config checks bounds, so that errors are reported together."""
        declared = self.config.model_fields[field]
        kind = declared.annotation
        shown = {
            "name": field,
            "title": field_title(self.config, field),
            "hint": describe(self.config, field),
            "choices": self._choices(field),
            "default": None if field in self.fixed else json.dumps(declared.default),
            "kind": "switch" if kind is bool else "text",
        }
        if get_origin(kind) is Literal or is_language(declared):
            return shown | {"kind": "select"}
        return shown | self._number(field) if kind in {int, float} else shown

    def _choices(self, field: str) -> Sequence[tuple[str, str]]:
        """Return the choices of a field, or common values of one that can be typed, as (label, value)."""
        declared = self.config.model_fields[field]
        if get_origin(declared.annotation) is Literal:
            return choices({value: f"choice.{field}.{value}" for value in get_args(declared.annotation)})
        if is_language(declared):
            return [(f"{each.native_name} · {each.name} ({each.code})", each.code) for each in known_languages()]
        return self.suggestions.get(field, ())

    def _number(self, field: str) -> dict[str, Any]:
        """Return the bounds of a number, and the maximum and step of its slider where its range suits one."""
        declared = self.config.model_fields[field]
        is_whole, limits = declared.annotation is int, bounds(declared)
        low, high = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
        shown = {"kind": "number", "step": "1" if is_whole else "any", "min": low, "max": high}
        maximum = self.sliders.get(field, high)
        if field == "seed" or low is None or maximum is None:
            return shown
        if field not in self.sliders and maximum - low > MAX_SLIDER_STEPS:
            return shown
        step = 1 if is_whole else 10.0 ** math.floor(math.log10((maximum - low) / 20))  # at least twenty steps
        return shown | {"slider_max": maximum, "slider_step": step}


def check_action(
    check: Check,
    read: Callable[[Values, Project], Config],
    explain: Callable[[AmharicTtsError], str],
) -> Action:
    """Return the action that shows what a check of the settings in a form finds, or what is wrong with them."""

    def act(request: PanelRequest) -> Updates:
        try:
            return {"_found": check(request, read(request.fields.get("settings", {}), request.project))}
        except AmharicTtsError as error:
            return {"_found": explain(error)}

    return act


def editable_dropdown(config: type[Config], name: str, choices: Sequence[Any], value: str | None) -> gr.Dropdown:
    """Return the widget of a field whose choices the page lists; other values can be typed."""
    return gr.Dropdown(
        choices,
        value=value,
        label=field_title(config, name),
        info=phrase(lambda: describe(config, name)),
        allow_custom_value=True,
        interactive=True,
        elem_id=name,
    )


def is_language(field: FieldInfo) -> bool:
    return any(isinstance(rule, AfterValidator) and rule.func is canonical for rule in field.metadata)


def describe(config: type[Config], name: str) -> str:
    """Return the field's description with its bounds in brackets."""
    limits = bounds(config.model_fields[name])
    return field_text(config, name, "description") + (f" [{range_text(limits)}]" if limits else "")


def range_text(limits: Mapping[str, float]) -> str:
    """Return bounds as text that needs no translation: 1-512, or > 0."""

    def plain(value: float) -> str:  # without an exponent: 4 294 967 296
        return (f"{value:,.0f}" if float(value).is_integer() else f"{value:,g}").replace(",", "\u202f")

    if limits.keys() == {"ge", "le"} and limits["ge"] >= 0:
        return f"{plain(limits['ge'])}\u2011{plain(limits['le'])}"
    return ", ".join(f"{SIGNS[kind]}\u00a0{plain(value)}" for kind, value in limits.items())
