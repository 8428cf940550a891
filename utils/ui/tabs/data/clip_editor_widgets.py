"""The widgets of the clip table and of the chosen clip: filters, buttons, reasons and times."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr

from utils.dataset.clip import Clip

STATUSES = {"all": "All clips", "kept": "In use", "approved": "Approved", "aside": "Not in use"}
ORDERS = {
    "worst": "The most doubtful first",
    "recording": "As in the recordings",
    "longest": "The longest first",
    "shortest": "The shortest first",
    "noisiest": "The noisiest first",
}
HEARD_REASONS = ("not what is said", "noise", "another voice", "cut off", "music")


def filters() -> dict[str, Any]:
    """Lay out what decides which clips are listed."""
    made: dict[str, Callable[[], Any]] = {
        "status": lambda: _choice(STATUSES, "kept", "Which clips", "Approved ones were listened to.", "filter-status"),
        "reason": lambda: _choice(
            {"": "Every reason"}, "", "Set aside for", "Choose All clips beside it to see them.", "filter-reason"
        ),
        "search": lambda: gr.Textbox(
            label="Search", info="Words of the text or the recording.", max_lines=1, elem_id="filter-search"
        ),
        "order": lambda: _choice(
            ORDERS, "worst", "Order", "Doubtful: noisy, unsure, or of an odd pace.", "filter-order"
        ),
        "page": lambda: gr.Number(
            1, label="Page", info="Twenty clips each.", precision=0, minimum=1, elem_id="filter-page", interactive=True
        ),
    }
    return side_by_side(made)


def side_by_side(made: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Lay widgets out in a grid, as many in a row as there is room for."""
    with gr.Row(elem_classes="fields"):
        return {name: make() for name, make in made.items()}


def _choice(labels: Mapping[str, str], value: str, title: str, told: str, name: str) -> gr.Dropdown:
    choices = [(label, key) for key, label in labels.items()]
    return gr.Dropdown(choices, value=value, label=title, info=told, interactive=True, elem_id=name)


def buttons(*labels: str) -> dict[str, gr.Button]:
    """Lay out buttons side by side; they are locked until a clip is chosen."""
    with gr.Row():
        return {
            label: gr.Button(
                label,
                variant="primary" if label == "Save text" else "secondary",
                elem_id=label.lower().replace(" ", "-"),
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
        label=label,
        info=told,
        allow_custom_value=True,
        interactive=True,
        elem_id=name,
    )


def marks() -> dict[str, Any]:
    """Lay out the times at which a clip is cut."""
    return side_by_side(
        {
            "start": lambda: _mark("start", "Start (s)", "Trim leaves out what is before."),
            "end": lambda: _mark("end", "End (s)", "Trim leaves out what is behind."),
            "at": lambda: _mark("at", "Split at (s)", "Split makes two clips here."),
        }
    )


def _mark(name: str, label: str, told: str) -> gr.Slider:
    return gr.Slider(0, 12, value=0, step=0.01, label=label, info=told, elem_id=f"mark-{name}", interactive=False)


def mark_values(clip: Clip) -> list[Any]:
    """Return what the times show of a clip: all of it, and its middle."""
    seconds = round(clip.span.seconds, 2)
    can = bool(clip.audio)
    return [gr.update(maximum=seconds, value=value, interactive=can) for value in (0.0, seconds, round(seconds / 2, 2))]
