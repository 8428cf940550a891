"""What every tab is given: where projects lie, which one is open, in which language, and how a handler fails."""

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import gradio as gr

from utils import paths
from utils.errors import AmharicTtsError

P = ParamSpec("P")
R = TypeVar("R")

# How events are tied that come often or without a click: no spinner, and no waiting behind others.
QUIET: dict[str, Any] = {"show_progress": "hidden", "queue": False}
REPORT = "The terminal has the details; please report it."
ERROR_SECONDS = 30.0  # long enough to read the cure and do it

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Page:
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


def handler(function: Callable[P, R]) -> Callable[P, R]:
    """Turn an error with a cure into one sentence on the page, and a fault of ours into an honest one."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except AmharicTtsError as error:
            raise shown(str(error)) from error
        except gr.Error:
            raise
        except Exception as error:
            logger.exception("A handler of the page failed.")
            raise shown(f"This is a fault of the program: {type(error).__name__}: {error}. {REPORT}") from error

    return guarded


def shown(sentence: str) -> gr.Error:
    """Make an error that the page shows; the sentence may hold what a person typed, so it is no HTML."""
    return gr.Error(escape(sentence), duration=ERROR_SECONDS, print_exception=False)


def tell(sentence: str) -> None:
    """Show one sentence for a few seconds."""
    gr.Info(escape(sentence), duration=5)
