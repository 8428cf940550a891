"""The widgets of the clip table and of the clip editor."""

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from utils.dataset.clip import Clip
from utils.ui.i18n import labels, t, translate

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


def build_filters() -> dict[str, Any]:
    any_reason = {"": "data.any_reason"}
    page: dict[str, Any] = {"elem_id": "filter-page", "precision": 0, "minimum": 1}
    with gr.Row(elem_classes="fields"):
        return {
            "status": _choice("status", STATUSES, "kept", **labels("data.which_clips", "data.approved_hint")),
            "reason": _choice("reason", any_reason, "", **labels("data.exclusion_reason", "data.reason_filter_hint")),
            "search": gr.Textbox(max_lines=1, elem_id="filter-search", **labels("data.search")),
            "order": _choice("order", ORDERS, "worst", **labels("data.order")),
            "page": gr.Number(1, interactive=True, **page, **labels("data.page")),
        }


def _choice(name: str, phrases: Mapping[str, str], value: str, **options: Any) -> gr.Dropdown:  # noqa: ANN401  # gradio's
    choices = choices_in(phrases, "en")
    return gr.Dropdown(choices, value=value, interactive=True, elem_id=f"filter-{name}", **options)


def choices_in(labels: Mapping[str, str], language: str) -> list[tuple[str, str]]:
    return [(t(label, language), name) for name, label in labels.items()]


def reasons_in(reasons: Sequence[str], language: str) -> list[tuple[str, str]]:
    return [(translate(reason, language), reason) for reason in reasons]


def reason_picker(reasons: Sequence[str], elem_id: str, **options: Any) -> gr.Dropdown:  # noqa: ANN401  # gradio's
    """Return a picker for the reason why clips are excluded; others can be typed."""
    return gr.Dropdown(
        reasons_in(reasons, "en"),
        value=reasons[0],
        allow_custom_value=True,
        interactive=True,
        elem_id=elem_id,
        **options,
    )


def build_buttons(*labels: str) -> dict[str, gr.Button]:
    """Lay out buttons side by side; they are disabled until a clip is chosen."""
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


def mark_slider(name: str, label: str) -> gr.Slider:
    return gr.Slider(0, 12, value=0, step=0.01, interactive=False, elem_id=f"mark-{name}", **labels(label))


def mark_updates(clip: Clip | None) -> list[Any]:
    """Set the marks to all of a clip, and to its middle."""
    if clip is None:
        return [gr.update(interactive=False)] * 3
    seconds = round(clip.span.seconds, 2)
    values = (0.0, seconds, round(seconds / 2, 2))
    return [gr.update(maximum=seconds, value=value, interactive=bool(clip.audio)) for value in values]
