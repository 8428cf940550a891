"""The two languages of the page, and what is shown in them when something goes wrong."""

import re
import string
from collections import Counter
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from utils.config import RehearsalConfig, TrainConfig
from utils.core.errors import AmharicTtsError, ConfigError, RunBusyError
from utils.core.paths import ROOT, Project, project, validate_name
from utils.core.storage import write_atomically
from utils.runs import find_run
from utils.ui.form import read_form
from utils.ui.i18n import TABLES, Phrase, describe_error, field_title, heading, phrases, read_table, t
from utils.ui.page import show_errors
from utils.ui.tabs.inference.text import tokenizer_of
from utils.ui.tabs.system import downloads
from utils.workspace import comparisons, reference_clips, takes

ROWS = [row for table in TABLES.glob("*.tsv") for row in read_table(table)]
CURE = "መፍትሔ፦"


def test_every_id_in_the_code_has_its_phrase() -> None:
    areas = {row.id.partition(".")[0] for row in ROWS if row.english}
    name = re.compile(rf'"((?:{"|".join(areas)})\.[a-z0-9_.]*[a-z0-9_])"')
    code = "\n".join(path.read_text(encoding="utf-8") for path in Path(ROOT / "utils" / "ui").rglob("*.py"))
    assert sorted(set(name.findall(code)) - phrases().keys()) == []


def test_an_id_stands_in_the_tables_once() -> None:
    assert [key for key, count in Counter(row.id for row in ROWS).items() if count > 1] == []


def test_a_translation_has_the_gaps_of_its_phrase() -> None:
    def gaps(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    assert [row.id for row in ROWS if row.english and row.amharic and gaps(row.english) != gaps(row.amharic)] == []


def test_gaps_are_filled_and_an_unknown_id_comes_back() -> None:
    assert t("project.created", "en", name="Abebe").count("Abebe") == 1
    assert "Abebe" in t("project.created", "am", name="Abebe") != t("project.created", "en", name="Abebe")
    assert t("no.such_phrase", "am") == "no.such_phrase"


def test_the_text_of_a_widget_knows_its_translation() -> None:
    for text, amharic in (
        (t("common.project"), t("common.project", "am")),
        (heading("common.training"), f"## {t('common.training', 'am')}"),
        (field_title(TrainConfig, "num_epochs"), field_title(TrainConfig, "num_epochs", "am")),
    ):
        assert isinstance(text, Phrase)
        assert text.in_language("am") == amharic != text.in_language("en") == text


def raised(action: Any) -> AmharicTtsError:
    with pytest.raises(AmharicTtsError) as caught:
        action()
    return caught.value


def test_the_commonest_errors_are_shown_in_amharic_with_their_cure(tmp_path: Path) -> None:
    place = Project(tmp_path)
    for action in (
        lambda: validate_name("../up"),
        lambda: find_run(place, "r1"),
        lambda: tokenizer_of(""),
        lambda: tokenizer_of(str(tmp_path)),
        lambda: reference_clips.candidates(place),
        lambda: takes.load(place, "gone"),
        lambda: takes.restore(place),
        lambda: comparisons.create_comparison(place, ["a", "b"], ""),
        lambda: downloads.pause(tmp_path),
        lambda: project("a/../../b", tmp_path),
        lambda: write_atomically(tmp_path, "text"),
    ):
        shown = describe_error(raised(action), "am")
        assert "በእንግሊዝኛ" not in shown
        assert CURE in shown, shown


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
    ("given", "expected"),
    [
        ({"language": "am"}, CURE),
        ({"language": "nonsense"}, "Stop it first."),
        ({"page_language": "en", "language": "am"}, "Stop it first."),  # the language of a text is not the page's
    ],
)
def test_a_handler_fails_in_the_language_of_the_page(given: dict[str, str], expected: str) -> None:
    @show_errors
    def act(language: str, page_language: str = "") -> None:
        raise RunBusyError("r1 is at work.", hint="Stop it first.")

    with pytest.raises(gr.Error, match=expected):
        act(**given)


def test_a_fault_of_the_program_is_told_as_one() -> None:
    assert "ZeroDivisionError: by zero" in describe_error(ZeroDivisionError("by zero"), "en")
    assert "ZeroDivisionError" in describe_error(ZeroDivisionError("by zero"), "am")
    assert describe_error(ZeroDivisionError("by zero"), "am").startswith("ይህ የፕሮግራሙ ስሕተት ነው")
