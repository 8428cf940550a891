"""Asking before something is deleted: a sentence with two buttons, out of sight until the question is put."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from utils.ui.views import note


@dataclass(frozen=True)
class Question:
    """Its widgets.

    Attributes:
        box: All of it; hidden until it is asked.
        words: The question.
        confirm: Answers with yes.
        keep: Answers with no.
    """

    box: gr.Column
    words: gr.HTML
    confirm: gr.Button
    keep: gr.Button

    @property
    def outputs(self) -> list[Any]:
        """Return what ``asked`` fills, in its order."""
        return [self.words, self.box]


def build_question(name: str, yes: str, no: str) -> Question:
    """Lay out a question.

    Args:
        name: Of the element with the question.
        yes: On the button that deletes.
        no: On the button that keeps.
    """
    with gr.Column(visible=False) as box:
        words = gr.HTML(elem_id=name)
        with gr.Row():
            confirm = gr.Button(yes, variant="stop", min_width=150)
            keep = gr.Button(no, min_width=150)
    return Question(box, words, confirm, keep)


def asked(sentence: str) -> tuple[str, Any]:
    """Put the question."""
    return note(sentence), gr.update(visible=True)


def withdrawn() -> Any:  # noqa: ANN401  # gradio's updates have no type
    """Take the question away, answered or not."""
    return gr.update(visible=False)
