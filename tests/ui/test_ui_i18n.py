"""The two languages of the page, and what is shown in them when something goes wrong."""

import re
import string
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gradio as gr
import pytest

from tests.run_kinds.count import CountConfig
from tests.worded import worded
from utils.core.errors import AmharicTtsError, DataError, RunBusyError
from utils.core.paths import ROOT
from utils.core.wording import TABLES, read_table, speaking
from utils.core.wording import rows as phrases
from utils.studio.facts import RunActiveError
from utils.ui.i18n import describe_error, t
from utils.ui.page import show_errors

ROWS = [row for table in (TABLES / "page").glob("*.tsv") for row in read_table(table)]
CURE = "መፍትሔ፦"


def test_every_id_in_the_code_is_defined_once() -> None:
    areas = {row.id.partition(".")[0] for row in ROWS if row.english}
    name = re.compile(rf'"((?:{"|".join(areas)})\.[a-z0-9_.]*[a-z0-9_])"')
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "utils" / "ui").rglob("*.py"))
    assert sorted(set(name.findall(code)) - phrases().keys()) == []
    assert len(ROWS) == len({row.id for row in ROWS})


def test_a_translation_has_the_gaps_of_its_phrase() -> None:
    def gaps(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    assert [row.id for row in ROWS if row.english and row.amharic and gaps(row.english) != gaps(row.amharic)] == []


def raised(action: Any) -> AmharicTtsError:
    with pytest.raises(AmharicTtsError) as caught:
        action()
    return caught.value


def test_the_problems_of_a_form_are_translated_one_by_one() -> None:
    error = raised(lambda: CountConfig.parse({"seconds": 0, "ticks_per_second": "many"}, source="The form"))
    with speaking("am"):
        first, second = describe_error(error).split("; ")
    assert first.startswith("seconds፦ 0")
    assert second == "ticks_per_second፦ 'many' ቁጥር አይደለም"


def test_an_error_is_described_in_both_languages_an_internal_one_as_such() -> None:
    busy = RunActiveError("20260101-train", "የአበበ")
    untranslated = worded(DataError, "The moon is full.", "Wait two weeks.")
    assert describe_error(busy) == str(busy)
    assert "ZeroDivisionError: by zero" in describe_error(ZeroDivisionError("by zero"))
    with speaking("am"):
        assert describe_error(busy) == f"የየአበበ ሥራ 20260101-train እየሄደ ነው። {CURE} መጀመሪያ ያቁሙት፣ ወይም እስኪያልቅ ይጠብቁ።"
        assert describe_error(untranslated) == f"The moon is full. {CURE} Wait two weeks."
        assert describe_error(ZeroDivisionError("by zero")).startswith("ይህ የፕሮግራሙ ስሕተት ነው")


def test_two_visitors_are_answered_in_their_own_languages_at_the_same_time() -> None:
    both_are_in = threading.Barrier(2)

    @show_errors
    def answer() -> str:
        both_are_in.wait(10)
        return t("data.tab")

    with ThreadPoolExecutor(2) as threads:
        english, amharic = threads.map(answer, ("en", "am"))
    assert (english, amharic) == ("Data", "ውሂብ")
    assert t("data.tab") == "Data"


def test_an_answer_in_steps_keeps_its_language_in_whichever_thread_a_step_is_made() -> None:
    @show_errors
    def count() -> Iterator[str]:
        for number in (1, 2):
            yield t("steps.clips", count=number)

    english, amharic = count("en"), count("am")
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        steps = [thread.submit(next, answer).result() for thread in (one, other) for answer in (english, amharic)]
    assert steps == ["1 clip", "1 ቅንጥብ", "2 clips", "2 ቅንጥቦች"]


@pytest.mark.parametrize(("language", "expected"), [("am", CURE), ("en", "Stop it first."), ("xx", "Stop it first.")])
def test_a_handler_fails_in_the_language_of_the_page_without_a_traceback(
    language: str, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    @show_errors
    def act() -> None:
        raise worded(RunBusyError, "r1 is at work.", "Stop it first.")

    with pytest.raises(gr.Error, match=expected) as raised:
        act(language)
    assert caplog.records == []  # an expected error needs no traceback in the log, from us or from gradio
    assert not raised.value.print_exception
