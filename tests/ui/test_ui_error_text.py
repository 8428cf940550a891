"""What a person reads when something cannot work: the sentence and its cure, in the language of the page."""

from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from utils.config import RehearsalConfig
from utils.core.errors import AmharicTtsError, ConfigError, RunBusyError
from utils.core.paths import Project, project, validate_name
from utils.core.storage import write_atomically
from utils.runs import find_run
from utils.ui.form import read_form
from utils.ui.i18n import describe_error
from utils.ui.page import show_errors
from utils.ui.tabs.inference.text import tokenizer_of
from utils.ui.tabs.system import downloads
from utils.workspace import comparisons, reference_clips, takes

CURE = "መፍትሔ፦"


def raised(action: Any) -> AmharicTtsError:
    with pytest.raises(AmharicTtsError) as caught:
        action()
    return caught.value


def commonest(folder: Path) -> list[Any]:
    """What goes wrong most often, each as a person brings it about."""
    place = Project(folder)
    return [
        lambda: validate_name("../up"),
        lambda: find_run(place, "r1"),
        lambda: tokenizer_of(""),
        lambda: tokenizer_of(str(folder)),
        lambda: reference_clips.candidates(place),
        lambda: takes.load(place, "gone"),
        lambda: takes.restore(place),
        lambda: comparisons.create_comparison(place, ["a", "b"], ""),
        lambda: downloads.pause(folder),
        lambda: project("a/../../b", folder),
        lambda: write_atomically(folder, "text"),
    ]


@pytest.mark.parametrize("number", range(11))
def test_the_commonest_errors_are_told_in_amharic_with_their_cure(tmp_path: Path, number: int) -> None:
    told = describe_error(raised(commonest(tmp_path)[number]), "am")
    assert "በእንግሊዝኛ" not in told, told
    assert CURE in told


def test_faults_of_a_form_are_told_one_by_one() -> None:
    error = raised(lambda: read_form({"seconds": 0, "ticks_per_second": "many"}, RehearsalConfig))
    first, second = describe_error(error, "am").split("; ")
    assert first.startswith("seconds፦ 0")
    assert second == "ticks_per_second፦ 'many' ቁጥር አይደለም"


def test_an_error_that_nobody_translated_is_shown_in_english() -> None:
    error = ConfigError("The moon is full.", hint="Wait two weeks.")
    assert describe_error(error, "am") == f"The moon is full. {CURE} Wait two weeks."
    assert describe_error(error, "en") == "The moon is full. Wait two weeks."


def test_names_and_figures_stay_as_they_are() -> None:
    error = RunBusyError("20260101-train of የአበበ is running.", hint="Stop it first.")
    assert describe_error(error, "am") == f"የየአበበ ሥራ 20260101-train እየሄደ ነው። {CURE} መጀመሪያ ያቁሙት።"


@pytest.mark.parametrize(
    ("given", "named", "expected"),
    [
        (("am",), {}, CURE),
        (("en",), {}, "Stop it first."),
        ((), {"language": "am"}, CURE),
        (("nonsense",), {}, "Stop it first."),
    ],
)
def test_a_handler_fails_in_the_language_that_it_was_given(given: Any, named: Any, expected: str) -> None:
    @show_errors
    def act(language: str) -> None:
        raise RunBusyError("r1 is at work.", hint="Stop it first.")

    with pytest.raises(gr.Error, match=expected):
        act(*given, **named)


def test_the_language_of_a_text_is_not_that_of_the_page() -> None:
    @show_errors
    def act(page_language: str, **values: object) -> None:
        raise RunBusyError("r1 is at work.", hint="Stop it first.")

    with pytest.raises(gr.Error, match="Stop it first"):
        act(page_language="en", language="am")


def test_a_fault_of_the_program_is_told_as_one() -> None:
    assert "ZeroDivisionError: by zero" in describe_error(ZeroDivisionError("by zero"), "en")
    assert "ZeroDivisionError" in describe_error(ZeroDivisionError("by zero"), "am")
    assert describe_error(ZeroDivisionError("by zero"), "am").startswith("ይህ የፕሮግራሙ ስሕተት ነው")
