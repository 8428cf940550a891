"""What the tabs share: the open project, the language, kinds of events, and errors in handlers."""

import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import gradio as gr

from utils.core import paths
from utils.core.errors import AmharicTtsError
from utils.ui import error_text
from utils.ui.i18n import LANGUAGES

P = ParamSpec("P")
R = TypeVar("R")

# For events that come often or without a click: no spinner, no queue.
QUIET_EVENT: dict[str, Any] = {"show_progress": "hidden", "queue": False}
PRIVATE_EVENT: dict[str, Any] = {
    "api_visibility": "private",
    **QUIET_EVENT,
}  # not part of the API
RAW_INPUTS: dict[str, Any] = {
    "preprocess": False
}  # values are checked below the page, not against the choices of one browser tab
ERROR_SECONDS = 30.0  # long enough to read the hint and follow it

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PageContext:
    """What a tab needs to know of the page.

    Attributes:
        output: The folder of the projects.
        project: The widget with the open project.
        language: The widget with the language of the page.
        clock: Ticks every few seconds while the tab is visible.
        blocks: The whole page.
    """

    output: Path
    project: gr.Dropdown
    language: gr.Radio
    clock: gr.Timer
    blocks: gr.Blocks

    @property
    def refresh(self) -> list[Any]:
        """Return the events after which live parts are refreshed."""
        return [self.blocks.load, self.clock.tick, self.language.change, self.project.change]

    def open(self, name: str) -> paths.Project:
        """Return the project of this name."""
        return paths.project(name, self.output)


def show_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Show an error of a handler on the page, in its language.

    A parameter that is declared as ``str`` gets "" for None, which an empty box may send.
    """
    signature = inspect.signature(function)
    texts = [name for name, parameter in signature.parameters.items() if parameter.annotation is str]

    def bind(*args: P.args, **kwargs: P.kwargs) -> inspect.BoundArguments:
        bound = signature.bind(*args, **kwargs)
        bound.arguments.update({name: "" for name in texts if bound.arguments.get(name, "") is None})
        return bound

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with _errors_shown(signature, args, kwargs):
            bound = bind(*args, **kwargs)
            return function(*bound.args, **bound.kwargs)

    @functools.wraps(function)
    def guarded_steps(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
        with _errors_shown(signature, args, kwargs):
            bound = bind(*args, **kwargs)
            yield from function(*bound.args, **bound.kwargs)  # type: ignore[misc]  # a generator function

    return guarded_steps if inspect.isgeneratorfunction(function) else guarded  # type: ignore[return-value]


@contextmanager
def _errors_shown(signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> Iterator[None]:
    try:
        yield
    except gr.Error:
        raise
    except Exception as error:
        if not isinstance(error, AmharicTtsError):
            logger.exception("A handler of the page failed.")
        raise page_error(error_text.describe(error, _language(signature, args, kwargs))) from error


def _language(signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the language that a handler was given; English when it was given none."""
    given = {**signature.bind_partial(*args).arguments, **kwargs}
    language = given.get("page_language", given.get("language"))
    return language if isinstance(language, str) and language in LANGUAGES else "en"


def page_error(sentence: str) -> gr.Error:
    """Return an error for gradio to show; the sentence may quote user input, so it is escaped."""
    return gr.Error(escape(sentence), duration=ERROR_SECONDS, print_exception=False)


def notify(sentence: str) -> None:
    """Show a sentence for a few seconds."""
    gr.Info(escape(sentence), duration=5)


def changed_updates(before: Mapping[str, Any], after: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    """Return what a visitor sees now, and an update for each name; unchanged ones are skipped."""
    fresh = {name: value for name, value in after.items() if before.get(name) != value}
    updates = [_update(fresh[name]) if name in fresh else gr.skip() for name in names]
    return [{**before, **fresh}, *updates]


def _update(value: Any) -> Any:  # noqa: ANN401  # gradio's updates have no type
    return gr.update(**value) if isinstance(value, dict) else value
