"""A question with two buttons before something is deleted; hidden until it is asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from utils.core.errors import ConfigError
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, show_errors
from utils.ui.views import note


@dataclass(frozen=True)
class Confirmation:
    """The widgets of the question.

    Attributes:
        box: All of it.
        question: The sentence.
        confirm: Says yes.
        cancel: Says no.
        subject: The values that the question was asked about; None in a call over the API, which is not asked.
    """

    box: gr.Column
    question: gr.HTML
    confirm: gr.Button
    cancel: gr.Button
    subject: gr.State

    def connect(
        self,
        button: gr.Button,
        subject: Sequence[Any],
        language: gr.Radio,
        sentence: Callable[..., str],
        action: Callable[..., Any],
        outputs: Any,  # noqa: ANN401  # one widget or several
        **event: Any,  # noqa: ANN401  # of many kinds
    ) -> None:
        """Ask on a click, act when confirmed, and hide the question when the selection changes.

        Args:
            button: Asks the question.
            subject: The widgets that say what it is about.
            language: Of the page.
            sentence: Makes the question from the values of the subject and the language.
            action: Acts; is given the same values and the subject of the question, which ``refuse_other`` checks.
            outputs: Of the action.
            event: More settings of the action's event.
        """

        def ask(language: str, *values: object) -> tuple[Any, ...]:
            return note(sentence(*values, language)), gr.update(visible=True), list(values)

        def hide_when_changed(asked: object, *values: object) -> Any:  # noqa: ANN401  # gradio's updates have no type
            return gr.skip() if asked == list(values) else hide()

        def hide() -> Any:  # noqa: ANN401  # gradio's updates have no type
            return gr.update(visible=False)

        asked = [self.question, self.box, self.subject]
        button.click(show_errors(ask), [language, *subject], asked, **RAW_INPUTS, **PRIVATE_EVENT)
        self.cancel.click(hide, None, self.box, **PRIVATE_EVENT)
        changes = [widget.change for widget in subject]
        gr.on(changes, hide_when_changed, [self.subject, *subject], self.box, **RAW_INPUTS, **PRIVATE_EVENT)
        confirmed = self.confirm.click(action, [*subject, language, self.subject], outputs, **event)
        confirmed.then(hide, None, self.box, **PRIVATE_EVENT)


def build_confirmation(elem_id: str, confirm: str, cancel: str) -> Confirmation:
    """Lay out a question; ``confirm`` and ``cancel`` are the ids of the phrases on its buttons."""
    with gr.Column(visible=False) as box:
        question = gr.HTML(elem_id=elem_id)
        with gr.Row():
            yes = gr.Button(t(confirm), variant="stop", min_width=150, elem_id=f"{elem_id}-confirm")
            no = gr.Button(t(cancel), min_width=150, elem_id=f"{elem_id}-cancel")
    return Confirmation(box, question, yes, no, gr.State(None))


def refuse_other(asked: object, *values: object) -> None:
    """Refuse to act on something else than the question was about."""
    if asked is not None and asked != list(values):
        raise ConfigError("The selection has changed; nothing was deleted.", hint="Press the button again.")
