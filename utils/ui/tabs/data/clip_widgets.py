"""The widgets of the clip table and of the clip editor."""

from collections.abc import Sequence
from typing import Any

import gradio as gr

from utils.dataset.clip import Clip
from utils.ui.i18n import Choices, choices, labels, t, translate
from utils.ui.page import Advanced

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
MARKS = {"start": "data.trim_start", "end": "data.trim_end", "at": "data.split_at"}
AUDIBLE_REASONS = ("wrong transcript", "noise", "another speaker", "cut off", "music")


def build_filters(advanced: Advanced) -> dict[str, Any]:
    any_reason = [(t("data.any_reason", "en"), "")]  # follows the table
    page: dict[str, Any] = {"elem_id": "filter-page", "precision": 0, "minimum": 1}
    with gr.Row():
        status = _filter("status", choices(STATUSES), "kept", "data.which_clips", "data.approved_hint")
        search = gr.Textbox(max_lines=1, elem_id="filter-search", **labels("data.search"))
    with advanced.section(), gr.Row(elem_classes="fields"):
        return {
            "status": status,
            "reason": _filter("reason", any_reason, "", "data.exclusion_reason", "data.reason_filter_hint"),
            "search": search,
            "order": _filter("order", choices(ORDERS), "worst", "data.order"),
            "page": gr.Number(1, interactive=True, **page, **labels("data.page")),
        }


def _filter(name: str, offered: Sequence[tuple[str, str]], value: str, label: str, info: str = "") -> gr.Dropdown:
    return gr.Dropdown(offered, value=value, interactive=True, elem_id=f"filter-{name}", **labels(label, info))


def reason_picker(reasons: Sequence[str], elem_id: str, **options: Any) -> gr.Dropdown:  # noqa: ANN401  # gradio's
    """Return a picker for the reason why clips are excluded; others can be typed."""
    offered = Choices(lambda language: [(translate(reason, language), reason) for reason in reasons])
    return gr.Dropdown(offered, value=reasons[0], allow_custom_value=True, interactive=True, elem_id=elem_id, **options)


def build_buttons(*keys: str) -> dict[str, gr.Button]:
    """Lay out buttons side by side; those that can act on the chosen clip are shown."""
    with gr.Row():
        return {
            key: gr.Button(
                t(key),
                variant="primary" if key == "data.save_text" else "secondary",
                elem_id=key.removeprefix("data.").replace("_", "-"),
                visible=False,
                min_width=100,
            )
            for key in keys
        }


def mark_updates(clip: Clip | None) -> list[Any]:
    """Set the marks to all of a clip, and to its middle."""
    if clip is None or not clip.audio:
        return [gr.update(visible=False)] * 3
    seconds = round(clip.span.seconds, 2)
    values = (0.0, seconds, round(seconds / 2, 2))
    return [gr.update(maximum=seconds, value=value, visible=True) for value in values]
