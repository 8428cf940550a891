"""What the page shows of a long work."""

import threading
import time
from collections.abc import Iterator

import pytest

from utils.core.errors import RunError
from utils.runs.background_jobs import Errand
from utils.ui.tabs.inference.job_panel import Heard, state_of


def hear(item: object, language: str) -> Heard | None:
    """Take words for the result, and numbers for a step; anything else says nothing."""
    if isinstance(item, str):
        return Heard(f"{item} ({language})", is_result=True)
    return Heard("at work", item, 5) if isinstance(item, int) else None


def ended(*told: object, error: Exception | None = None) -> Errand:
    """A work that is over."""

    def work() -> Iterator[object]:
        yield from told
        if error:
            raise error

    errand = Errand(work)
    errand._listener.join(10)
    assert errand.is_over
    return errand


@pytest.mark.parametrize(
    ("told", "error", "kind", "words"),
    [
        ((1, "made"), None, "success", "made (en)"),
        ((1,), None, "warning", "Stopped."),
        ((), None, "warning", "Stopped."),
        ((1,), RunError("It broke.", hint="Mend it."), "error", "It broke. Mend it."),
        (("made",), RunError("It broke.", hint="Mend it."), "error", "It broke. Mend it."),
    ],
)
def test_how_a_work_ended_is_told(told: tuple[object, ...], error: Exception | None, kind: str, words: str) -> None:
    shown, button = state_of(ended(*told, error=error), "en", hear)
    assert shown.startswith(f'<div class="message {kind}"')
    assert words in shown
    assert button == {"interactive": False}


@pytest.mark.parametrize(("told", "words"), [(2, "at work"), (None, "Getting ready")])
def test_a_work_that_goes_on_can_be_stopped(told: int | None, words: str) -> None:
    heard, over = threading.Event(), threading.Event()

    def work() -> Iterator[int | None]:
        yield told
        heard.set()
        over.wait(10)

    errand = Errand(work)
    try:
        assert heard.wait(10)
        while told and errand.last is None and errand.work.seconds < 10:
            time.sleep(0.001)
        shown, button = state_of(errand, "en", hear)
    finally:
        over.set()
    assert words in shown
    assert ('<progress max="5" value="2"' in shown) == bool(told)
    assert "role=" not in shown  # its seconds would be said aloud on every beat
    assert button == {"interactive": True}


def test_without_a_work_there_is_nothing_to_show_or_to_stop() -> None:
    assert state_of(None, "en", hear) == ("", {"interactive": False})
