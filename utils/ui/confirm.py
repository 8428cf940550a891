"""Asking before something is deleted: a sentence with two buttons, out of sight until the question is put."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from utils.core.errors import ConfigError
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, show_errors
from utils.ui.views import note


@dataclass(frozen=True)
class Question:
    """Its widgets.

    Attributes:
        box: All of it; hidden until it is asked.
        words: The question.
        confirm: Answers with yes.
        keep: Answers with no.
        about: What it was put about last; None for a program, which acts without being asked.
    """

    box: gr.Column
    words: gr.HTML
    confirm: gr.Button
    keep: gr.Button
    about: gr.State

    def tie(
        self,
        button: gr.Button,
        subject: Sequence[Any],
        language: gr.Radio,
        sentence: Callable[..., str],
        answer: Callable[..., Any],
        outputs: Any,  # noqa: ANN401  # one widget or several
        **event: Any,  # noqa: ANN401  # of many kinds
    ) -> None:
        """Ask on a click, act on a yes, and withdraw the question when something else is chosen.

        Args:
            button: Puts the question.
            subject: The widgets that say what it is about.
            language: That of the page.
            sentence: Words the question; is given what the subject holds, and the language.
            answer: Acts on a yes; is given the same and ``about``, and begins with ``refuse_another``.
            outputs: What the answer fills.
            event: How the answer is tied.
        """

        def ask(language: str, *what: object) -> tuple[Any, ...]:
            return note(sentence(*what, language)), gr.update(visible=True), list(what)

        def withdraw(about: object, *what: object) -> Any:  # noqa: ANN401  # gradio's updates have no type
            """Hide it; that something was chosen may be told after the click on the button."""
            return gr.skip() if about == list(what) else hidden()

        def hidden() -> Any:  # noqa: ANN401  # gradio's updates have no type
            return gr.update(visible=False)

        button.click(
            show_errors(ask), [language, *subject], [self.words, self.box, self.about], **RAW_INPUTS, **PRIVATE_EVENT
        )
        self.keep.click(hidden, None, self.box, **PRIVATE_EVENT)
        gr.on(
            [one.change for one in subject], withdraw, [self.about, *subject], self.box, **RAW_INPUTS, **PRIVATE_EVENT
        )
        answered = self.confirm.click(answer, [*subject, language, self.about], outputs, **event)
        answered.then(hidden, None, self.box, **PRIVATE_EVENT)


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
            confirm = gr.Button(t(yes), variant="stop", min_width=150)
            keep = gr.Button(t(no), min_width=150)
    return Question(box, words, confirm, keep, gr.State(None))


def refuse_another(about: object, *what: object) -> None:
    """Refuse a yes to a question that was put about something else than what is chosen now."""
    if about is not None and about != list(what):
        raise ConfigError(
            "Something else is chosen now; nothing was deleted.", hint="Click the button again if this one is meant."
        )
