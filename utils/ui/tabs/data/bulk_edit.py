"""Many clips at once: the selected ones, all beyond a limit, or all that other filters would exclude."""

from collections.abc import Callable
from operator import attrgetter, gt, lt
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import DatasetConfig
from utils.core.errors import AmharicTtsError, DataError
from utils.dataset import bulk_edits, editor
from utils.dataset.clip import Clip
from utils.dataset.editor import Edit
from utils.dataset.store import Store
from utils.ui.form import read_form
from utils.ui.i18n import choices, labels, t
from utils.ui.page import RAW_INPUTS, show_errors
from utils.ui.tabs.data.clip_widgets import AUDIBLE_REASONS, reason_picker
from utils.ui.tabs.data.clips import ClipPanel, Values, refuse_while_busy
from utils.ui.tabs.data.settings_form import DataForm
from utils.ui.views import error_box, message_box

MEASURES: dict[str, tuple[str, Callable[[Clip], float | None], Callable[[float, float], bool]]] = {
    "snr": ("data.snr_db_below", attrgetter("scores.snr_db"), lt),
    "confidence": ("data.confidence_below", attrgetter("scores.confidence"), lt),
    "speech": ("data.speech_below", attrgetter("scores.speech_ratio"), lt),
    "short": ("data.seconds_below", attrgetter("span.seconds"), lt),
    "long": ("data.seconds_above", attrgetter("span.seconds"), gt),
    "slow": ("data.rate_below", attrgetter("scores.chars_per_second"), lt),
    "fast": ("data.rate_above", attrgetter("scores.chars_per_second"), gt),
}  # label, value of a clip, and how it compares with the limit
REASONS = ("reviewed", *AUDIBLE_REASONS)
BEYOND_LIMIT = "beyond a limit"


def beyond(clips: list[Clip], measure: str, limit: float) -> list[str]:
    """Name the clips in use that lie beyond a limit; what was not measured is not judged."""
    if measure not in MEASURES:
        raise DataError("No measure is selected.", hint="Select a measure.")
    _, measured, is_beyond = MEASURES[measure]
    values = ((clip.id, measured(clip)) for clip in clips if clip.status == "kept")
    return [name for name, value in values if value is not None and is_beyond(value, limit)]


def build_bulk(panel: ClipPanel, form: DataForm) -> None:
    reason = reason_picker(REASONS, "bulk-reason", **labels("data.reason", "data.bulk_reason_hint"))
    gr.Markdown(t("data.selected_on_page"))
    _build_selected(panel, reason)
    gr.Markdown(t("data.exclude_by_limit"))
    _build_limit(panel)
    gr.Markdown(t("data.filter_again"))
    _build_filters(form)


def _build_selected(panel: ClipPanel, reason: gr.Dropdown) -> None:
    """Act on the selected clips; the browser says which they are at the moment of the click."""
    actions: dict[str, tuple[str, Callable[[Path, list[str], str], Edit]]] = {
        "approve": ("data.approve_selected", lambda folder, names, _: editor.approve(folder, names)),
        "aside": ("data.exclude_selected", editor.exclude),
        "restore": ("data.restore_selected", lambda folder, names, _: editor.restore(folder, names)),
    }
    ticked = "[...document.querySelectorAll('#clips input[data-tick]:checked')].map(box => box.dataset.tick)"
    insert_ticked = f"(...values) => [...values.slice(0, -1), {ticked}]"
    with gr.Row():
        for name, (label, edit) in actions.items():
            button = gr.Button(t(label), elem_id=f"bulk-{name}", min_width=150)

            def act(folder: Path, of: Values, edit: Callable[[Path, list[str], str], Edit] = edit) -> Edit:
                names = [str(name) for name in of["ticked"]] if isinstance(of["ticked"], list) else []
                if not names:
                    raise DataError("No clip is selected.", hint="Select clips in the list first.")
                return edit(folder, names, str(of["why"]))

            panel.connect(button, act, {"why": reason, "ticked": panel.ticked}, f"{name}_ticked", insert_ticked)


def _build_limit(panel: ClipPanel) -> None:
    """Exclude all clips beyond a limit."""
    with gr.Row(elem_classes="fields"):
        offered = choices({name: label for name, (label, *_) in MEASURES.items()})
        measure = gr.Dropdown(offered, value="snr", interactive=True, elem_id="bulk-measure", **labels("data.measure"))
        limit = gr.Number(15, elem_id="bulk-limit", interactive=True, **labels("data.limit"))
    button = gr.Button(t("data.exclude_all"), elem_id="bulk-limit-aside")

    def act(folder: Path, of: Values) -> Edit:
        store = Store(folder)
        if not store.exists or not isinstance(of["limit"], int | float):
            raise DataError("There are no clips, or no limit is set.", hint="Enter a number as the limit.")
        names = beyond(store.clips("status = 'kept'"), str(of["measure"]), of["limit"])
        if not names:
            raise DataError("No clip in use is beyond this limit.", hint="Choose another limit.")
        return editor.exclude(folder, names, BEYOND_LIMIT)

    panel.connect(button, act, {"measure": measure, "limit": limit}, "set_aside_beyond")


def _build_filters(form: DataForm) -> None:
    """Filter all clips again by the settings of the form, with a preview of what would change."""
    with gr.Row():
        preview = gr.Button(t("data.preview_filters"), elem_id="rules-ask", min_width=150)
        apply = gr.Button(t("data.rerun_filters"), elem_id="rules-apply", min_width=150)
    message = gr.HTML(elem_id="bulk-said")

    def refilter(*, apply: bool) -> Callable[..., str]:
        @show_errors
        def refiltered(project: str, page_language: str, **values: object) -> str:
            try:
                opened = form.page.open(project)
                if apply:
                    refuse_while_busy(opened)
                config = read_form({**values, "inputs": ""}, DatasetConfig)
                plan = bulk_edits.refilter(opened.dataset, config, apply=apply)
            except AmharicTtsError as error:
                return error_box(error, page_language)
            changes = [(old.status, new.status) for old, new in zip(plan.before, plan.after, strict=True)]
            return message_box(
                "success",
                t("data.excluded_count", page_language, count=changes.count(("kept", "excluded"))),
                t("data.restored_count", page_language, count=changes.count(("excluded", "kept"))),
                t("data.in_use_count", page_language, count=len(plan.kept)),
                t("data.changes_applied" if apply else "data.preview_only", page_language),
            )

        return refiltered

    options: dict[str, Any] = {"inputs_kwargs": form.event_inputs, "outputs": message, **RAW_INPUTS}
    preview.click(refilter(apply=False), api_name="plan_rules", **options)
    apply.click(refilter(apply=True), api_name="judge_again", **options)
