"""Many clips at once: those that are ticked, all that fit the filter, or all that stay below a limit."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import DatasetConfig
from utils.core.errors import AmharicTtsError, DataError
from utils.core.paths import Project
from utils.dataset import editor, filtering
from utils.dataset.clip import Clip
from utils.dataset.editor import Edit
from utils.dataset.store import Store
from utils.ui.form import read_form
from utils.ui.i18n import t, translate
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, show_errors
from utils.ui.tabs.data import clip_render, start
from utils.ui.tabs.data.clip_editor import Desk
from utils.ui.tabs.data.clip_editor_widgets import HEARD_REASONS, reason_picker, side_by_side
from utils.ui.tabs.data.clip_table import Values, ticked_names, tie_action
from utils.ui.tabs.data.settings_form import DataForm
from utils.ui.views import error_box, message_box

MEASURES: Mapping[str, tuple[str, Callable[[Clip], float | None]]] = {
    "snr": ("data.snr_db_below", lambda clip: clip.scores.snr_db),
    "confidence": ("data.confidence_below", lambda clip: clip.scores.confidence),
    "speech": ("data.speech_below", lambda clip: clip.scores.speech_ratio),
    "short": ("data.seconds_below", lambda clip: clip.span.seconds),
    "long": ("data.seconds_above", lambda clip: -clip.span.seconds),
    "slow": ("data.rate_below", lambda clip: clip.scores.chars_per_second),
    "fast": ("data.rate_above", lambda clip: _negative(clip.scores.chars_per_second)),
}
REASONS = ("reviewed", *HEARD_REASONS)
BY_LIMIT = "beyond a limit"


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def beyond(clips: list[Clip], measure: str, limit: float) -> list[str]:
    """Name the clips in use that lie beyond a limit; what was not measured is not judged."""
    if measure not in MEASURES:
        raise DataError("No measure is selected.", hint="Select a measure.")
    of = MEASURES[measure][1]
    edge = -limit if measure in {"long", "fast"} else limit
    return [clip.id for clip in clips if clip.status == "kept" and (value := of(clip)) is not None and value < edge]


def build_bulk(desk: Desk, form: DataForm) -> None:
    """Lay out what acts on many clips."""
    why = reason_picker(REASONS, "data.reason", "data.bulk_reason_hint", "bulk-reason")
    gr.Markdown(t("data.selected_on_page"))
    with gr.Row():
        approve = gr.Button(t("data.approve_selected"), elem_id="bulk-approve", min_width=150)
        aside = gr.Button(t("data.exclude_selected"), elem_id="bulk-aside", min_width=150)
        restore = gr.Button(t("data.restore_selected"), elem_id="bulk-restore", min_width=150)
    gr.Markdown(t("data.exclude_by_limit"))
    widgets = side_by_side(
        {
            "measure": lambda: gr.Dropdown(
                [(t(label, "en"), name) for name, (label, _) in MEASURES.items()],
                value="snr",
                label=t("data.measure"),
                info=t("data.measure_hint"),
                interactive=True,
                elem_id="bulk-measure",
            ),
            "limit": lambda: gr.Number(
                15, label=t("data.limit"), info=t("data.limit_hint"), elem_id="bulk-limit", interactive=True
            ),
        }
    )
    beyond_limit = gr.Button(t("data.exclude_all"), elem_id="bulk-limit-aside")
    gr.Markdown(t("data.filter_again"))
    with gr.Row():
        ask = gr.Button(t("data.preview_filters"), elem_id="rules-ask", min_width=150)
        apply = gr.Button(t("data.rerun_filters"), elem_id="rules-apply", min_width=150)
    said = gr.HTML(elem_id="bulk-said")
    _tie_ticked(desk, {"approve": approve, "aside": aside, "restore": restore}, why)
    _tie_limit(desk, beyond_limit, widgets["measure"], widgets["limit"])
    _tie_rules(desk, form, ask, apply, said)
    _tie_language(desk, widgets["measure"], why)


def _tie_ticked(desk: Desk, buttons: Mapping[str, gr.Button], why: gr.Dropdown) -> None:
    """Act on the ticked clips; the browser says which they are at the moment of the click."""
    actions: dict[str, Callable[[Path, list[str], str], Edit]] = {
        "approve": lambda folder, names, _: editor.approve(folder, names),
        "aside": editor.exclude,
        "restore": lambda folder, names, _: editor.restore(folder, names),
    }
    gather = f"(...values) => [...values.slice(0, -1), ({clip_render.TICKED})()]"
    for name, action in actions.items():

        def act(place: Project, of: Values, action: Callable[[Path, list[str], str], Edit] = action) -> Edit:
            return action(place.dataset, ticked_names(of["ticked"]), str(of["why"]))

        tie_action(desk, buttons[name], act, {"why": why, "ticked": desk.ticked}, f"{name}_ticked", gather)


def _tie_limit(desk: Desk, button: gr.Button, measure: gr.Dropdown, limit: gr.Number) -> None:
    def act(place: Project, of: Values) -> Edit:
        store = Store(place.dataset)
        if not store.exists or not isinstance(of["limit"], int | float):
            raise DataError("There are no clips, or no limit is set.", hint="Enter a number as the limit.")
        names = beyond(store.clips("status = 'kept'"), str(of["measure"]), of["limit"])
        if not names:
            raise DataError("No clip in use is beyond this limit.", hint="Choose another limit.")
        return editor.exclude(place.dataset, names, BY_LIMIT)

    tie_action(desk, button, act, {"measure": measure, "limit": limit}, "set_aside_beyond")


def _tie_rules(desk: Desk, form: DataForm, ask: gr.Button, apply: gr.Button, said: gr.HTML) -> None:
    """Judge all clips by the limits of the form; first only say what would change."""
    page = desk.page

    def judged(project: str, language: str, values: Mapping[str, object], *, act: bool) -> str:
        try:
            place = page.open(project)
            if act:
                start.refuse_while_busy(place)
            config = read_form({**values, "inputs": ""}, DatasetConfig)
            plan = filtering.refilter(place.dataset, config, apply=act)
        except AmharicTtsError as error:
            return error_box(error, language)
        pairs = list(zip(plan.before, plan.after, strict=True))
        aside = sum(old.status == "kept" and new.status == "excluded" for old, new in pairs)
        back = sum(old.status == "excluded" and new.status == "kept" for old, new in pairs)
        return message_box(
            "success",
            t("data.excluded_count", language, count=aside),
            t("data.restored_count", language, count=back),
            t("data.in_use_count", language, count=len(plan.kept)),
            t("data.changes_applied" if act else "data.preview_only", language),
        )

    @show_errors
    def ask_first(project: str, page_language: str, **values: object) -> str:
        return judged(project, page_language, values, act=False)

    @show_errors
    def judge(project: str, page_language: str, **values: object) -> str:
        return judged(project, page_language, values, act=True)

    ask.click(ask_first, inputs_kwargs=form.given, outputs=said, api_name="plan_rules", **RAW_INPUTS)
    apply.click(judge, inputs_kwargs=form.given, outputs=said, api_name="judge_again", **RAW_INPUTS)


def _tie_language(desk: Desk, measure: gr.Dropdown, why: gr.Dropdown) -> None:
    def offered(language: str) -> tuple[Any, Any]:
        measures = [(t(label, language), name) for name, (label, _) in MEASURES.items()]
        return gr.update(choices=measures), gr.update(
            choices=[(translate(reason, language), reason) for reason in REASONS]
        )

    language = desk.page.language
    gr.on([desk.page.blocks.load, language.change], offered, language, [measure, why], **PRIVATE_EVENT)
