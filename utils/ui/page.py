"""What every tab is given: where projects lie, which one is open, in which language, and how a handler fails."""

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

# How events are tied that come often or without a click: no spinner, and no waiting behind others.
QUIET_EVENT: dict[str, Any] = {"show_progress": "hidden", "queue": False}
PRIVATE_EVENT: dict[str, Any] = {
    "api_visibility": "private",
    **QUIET_EVENT,
}  # of the page alone: no program is offered them
RAW_INPUTS: dict[str, Any] = {
    "preprocess": False
}  # names are checked below the page, not against the list of one browser tab
ERROR_SECONDS = 30.0  # long enough to read the cure and do it

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PageContext:
    """The frame around the tabs.

    Attributes:
        output: The folder of the projects.
        project: The widget that says which project is open.
        language: The widget that says in which language the page speaks.
        clock: Ticks every few seconds; what is shown of the disk is read on its tick.
        blocks: The whole page.
    """

    output: Path
    project: gr.Dropdown
    language: gr.Radio
    clock: gr.Timer
    blocks: gr.Blocks

    @property
    def refresh(self) -> list[Any]:
        """Return the events after which everything live is read anew."""
        return [self.blocks.load, self.clock.tick, self.language.change, self.project.change]

    def open(self, name: str) -> paths.Project:
        """Return the project of this name."""
        return paths.project(name, self.output)


def show_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Turn an error with a cure into one sentence on the page, and a fault of ours into an honest one.

    A parameter that is declared as text gets text: of an empty box, a browser or a program may send nothing.
    """
    known = inspect.signature(function)
    texts = [name for name, parameter in known.parameters.items() if parameter.annotation is str]

    def filled(*args: P.args, **kwargs: P.kwargs) -> inspect.BoundArguments:
        given = known.bind(*args, **kwargs)
        given.arguments.update({name: "" for name in texts if given.arguments.get(name, "") is None})
        return given

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with _telling(known, args, kwargs):
            given = filled(*args, **kwargs)
            return function(*given.args, **given.kwargs)

    @functools.wraps(function)
    def guarded_steps(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
        with _telling(known, args, kwargs):
            given = filled(*args, **kwargs)
            yield from function(*given.args, **given.kwargs)  # type: ignore[misc]  # it is one that yields

    return guarded_steps if inspect.isgeneratorfunction(function) else guarded  # type: ignore[return-value]


@contextmanager
def _telling(known: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> Iterator[None]:
    try:
        yield
    except gr.Error:
        raise
    except Exception as error:
        if not isinstance(error, AmharicTtsError):
            logger.exception("A handler of the page failed.")
        raise page_error(error_text.describe(error, _language(known, args, kwargs))) from error


def _language(known: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the language of the page as a handler was given it; one that was given none speaks English."""
    given = {**known.bind_partial(*args).arguments, **kwargs}
    found = given.get("page_language", given.get("language"))
    return found if isinstance(found, str) and found in LANGUAGES else "en"


def page_error(sentence: str) -> gr.Error:
    """Make an error that the page shows; the sentence may hold what a person typed, so it is no HTML."""
    return gr.Error(escape(sentence), duration=ERROR_SECONDS, print_exception=False)


def notify(sentence: str) -> None:
    """Show one sentence for a few seconds."""
    gr.Info(escape(sentence), duration=5)


def changed_updates(seen: Mapping[str, Any], made: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    """Return the new state of what a visitor has seen, and for each name an update where it is new to him."""
    fresh = {name: value for name, value in made.items() if seen.get(name) != value}
    updates = [_update(fresh[name]) if name in fresh else gr.skip() for name in names]
    return [{**seen, **fresh}, *updates]


def _update(value: Any) -> Any:  # noqa: ANN401  # gradio's updates have no type
    return gr.update(**value) if isinstance(value, dict) else value
