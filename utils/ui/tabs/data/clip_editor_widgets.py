"""The widgets of the clip table and of the chosen clip: filters, buttons, reasons and times."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr

from utils.dataset.clip import Clip
from utils.ui.i18n import t

STATUSES = {
    "all": "data.all_clips",
    "kept": "common.in_use",
    "approved": "data.approved",
    "excluded": "data.not_in_use",
}
ORDERS = {
    "worst": "data.suspicious_first",
    "recording": "data.recording_order",
    "longest": "data.longest_first",
    "shortest": "data.shortest_first",
    "noisiest": "data.noisiest_first",
}
HEARD_REASONS = ("wrong transcript", "noise", "another speaker", "cut off", "music")


def filters() -> dict[str, Any]:
    """Lay out what decides which clips are listed."""
    made: dict[str, Callable[[], Any]] = {
        "status": lambda: _choice(STATUSES, "kept", "data.which_clips", "data.approved_hint", "filter-status"),
        "reason": lambda: _choice(
            {"": "data.any_reason"}, "", "data.exclusion_reason", "data.reason_filter_hint", "filter-reason"
        ),
        "search": lambda: gr.Textbox(
            label=t("data.search"), info=t("data.search_hint"), max_lines=1, elem_id="filter-search"
        ),
        "order": lambda: _choice(ORDERS, "worst", "data.order", "data.order_hint", "filter-order"),
        "page": lambda: gr.Number(
            1,
            label=t("data.page"),
            info=t("data.page_hint"),
            precision=0,
            minimum=1,
            elem_id="filter-page",
            interactive=True,
        ),
    }
    return side_by_side(made)


def side_by_side(made: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Lay widgets out in a grid, as many in a row as there is room for."""
    with gr.Row(elem_classes="fields"):
        return {name: make() for name, make in made.items()}


def _choice(labels: Mapping[str, str], value: str, title: str, told: str, name: str) -> gr.Dropdown:
    choices = [(t(label, "en"), key) for key, label in labels.items()]
    return gr.Dropdown(choices, value=value, label=t(title), info=t(told), interactive=True, elem_id=name)


def buttons(*labels: str) -> dict[str, gr.Button]:
    """Lay out buttons side by side; they are locked until a clip is chosen."""
    with gr.Row():
        return {
            label: gr.Button(
                t(label),
                variant="primary" if label == "data.save_text" else "secondary",
                elem_id=label.removeprefix("data.").replace("_", "-"),
                interactive=False,
                min_width=120,
            )
            for label in labels
        }


def reason_picker(reasons: Sequence[str], label: str, told: str, name: str) -> gr.Dropdown:
    """Make the choice of a reason for which clips are set aside."""
    return gr.Dropdown(
        [(reason, reason) for reason in reasons],
        value=reasons[0],
        label=t(label),
        info=t(told),
        allow_custom_value=True,
        interactive=True,
        elem_id=name,
    )


def marks() -> dict[str, Any]:
    """Lay out the times at which a clip is cut."""
    return side_by_side(
        {
            "start": lambda: _mark("start", "data.trim_start", "data.trim_start_hint"),
            "end": lambda: _mark("end", "data.trim_end", "data.trim_end_hint"),
            "at": lambda: _mark("at", "data.split_at", "data.split_at_hint"),
        }
    )


def _mark(name: str, label: str, told: str) -> gr.Slider:
    return gr.Slider(0, 12, value=0, step=0.01, label=t(label), info=t(told), elem_id=f"mark-{name}", interactive=False)


def mark_values(clip: Clip) -> list[Any]:
    """Return what the times show of a clip: all of it, and its middle."""
    seconds = round(clip.span.seconds, 2)
    can = bool(clip.audio)
    return [gr.update(maximum=seconds, value=value, interactive=can) for value in (0.0, seconds, round(seconds / 2, 2))]
