"""A long work of the project on the page: begun, stopped, and how far it is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from utils.runs.background_jobs import Errand
from utils.ui.i18n import t
from utils.ui.tabs.inference import render
from utils.ui.tabs.inference.context import Room, fault
from utils.ui.views import error_box, message_box


@dataclass(frozen=True)
class Heard:
    """What a long work told last, in the language of the page.

    Attributes:
        words: The sentence.
        step: How far it is.
        total: Where its end is; 0 when nobody knows.
        is_result: Whether this is what came of it.
    """

    words: str
    step: int = 0
    total: int = 0
    is_result: bool = False


Hear = Callable[[Any, str], Heard | None]  # what an errand told, language of the page


def stop_button(room: Room, kind: str) -> gr.Button:
    """Make a button that ends a long work of the project."""
    button = gr.Button(t("inference.stop"), variant="stop", interactive=False, min_width=100, elem_id=f"stop-{kind}")

    def stop(project: str) -> None:
        room.errands.stop(project, kind)

    button.click(stop, room.page.project, None, api_name=f"stop_{kind}", queue=False, show_progress="hidden")
    return button


def begin(room: Room, project: str, kind: str, task: Callable[[], Iterator[Any]], language: str) -> str:
    """Begin a long work of the project and say so, or why not."""
    try:
        room.errands.begin(project, kind, task)
    except Exception as error:  # noqa: BLE001  # it is shown
        return fault(error, language)
    return message_box("success", t("inference.job_started", language))


def state_of(errand: Errand | None, language: str, hear: Hear) -> tuple[str, dict[str, object]]:
    """Say how far a long work is, or how it ended, and whether it can be stopped.

    Args:
        errand: The work; None when none was begun.
        language: Of the page.
        hear: Puts into words what it told; nothing for what says nothing.
    """
    if errand is None:
        return "", {"interactive": False}
    over = errand.is_over
    heard = hear(errand.last, language)
    if errand.error:
        shown = error_box(errand.error, language)
    elif heard and heard.is_result:
        shown = message_box("success", heard.words)
    elif over:
        shown = message_box("warning", t("inference.stopped", language))
    else:
        heard = heard or Heard(t("inference.getting_ready", language))
        shown = render.working(f"{heard.words} · {errand.work.seconds:.0f} s", heard.step, heard.total)
    return shown, {"interactive": not over}
