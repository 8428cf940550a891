"""Every fact and error has its text, in every language, and every gap is a field."""

import importlib
import pkgutil
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import utils
from utils.core import wording
from utils.core.errors import AmharicTtsError
from utils.core.facts import Fact, Progress
from utils.core.paths import ROOT
from utils.dataset.facts import ReasonTotal
from utils.media.facts import AudioFileError
from utils.xtts.facts import ModelFileError


def import_everything() -> None:
    """Import the modules that declare facts and errors."""
    for module in pkgutil.walk_packages(utils.__path__, "utils."):
        if module.name.endswith((".facts", ".errors", ".schema")):
            importlib.import_module(module.name)


def subclasses(base: type) -> Iterator[Any]:
    child: Any
    for child in base.__subclasses__():
        yield child
        yield from subclasses(child)


def typed() -> list[Any]:
    import_everything()
    found = [*subclasses(Fact), *(kind for kind in subclasses(AmharicTtsError) if kind.fields)]
    return [kind for kind in found if kind.__module__.startswith("utils.") and not kind.__subclasses__()]


def test_what_a_run_stored_is_known_without_its_command() -> None:
    code = "import utils.cli.runs; from utils.core import errors, facts; print(*facts.KINDS, *errors.ERRORS)"
    known = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    stored = {getattr(kind, "kind", kind.__name__): kind for kind in typed() if "server" not in kind.__module__}
    assert stored.keys() - known.split() == set()


def test_every_text_is_used_and_translated() -> None:
    command = [sys.executable, "-m", "tools.translations"]
    assert subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout == ""


def test_the_text_of_a_reason_has_the_gaps_of_the_whole() -> None:
    assert wording.describe(ModelFileError(Path("model"), "lacks", "a vocabulary")) == "model has no a vocabulary."


def test_a_reason_beside_a_persons_own_words_has_its_text() -> None:
    with wording.speaking("am"):
        assert wording.describe(ReasonTotal("too short", 60)).startswith("በጣም አጭር")
        assert wording.describe(ReasonTotal("ሳል", 60)).startswith("ሳል")


def test_a_reason_brings_its_own_cure() -> None:
    error = AudioFileError(Path("a.wav"), "empty")
    assert str(error) == "a.wav is empty (0 bytes). Copy or download it again."


def test_every_gap_is_a_field() -> None:
    rows = wording.rows()
    wrong = [
        (kind.__name__, gap)
        for kind in typed()
        for key in (kind.__name__, f"{kind.__name__}.cure")
        if key in rows
        for text in rows[key][1:]
        for _, gap, _, _ in string.Formatter().parse(text)
        if gap and gap not in kind.fields
    ]
    assert wrong == []


def test_every_row_has_three_columns_and_its_own_id() -> None:
    ids = [row.id for table in wording.TABLES.rglob("*.tsv") for row in wording.read_table(table)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("gap", "value", "written"),
    [
        ("{a:time}", 8.24, "8.2 s"),
        ("{a:time}", 99.0, "99 s"),
        ("{a:time}", 200.0, "3.3 min"),
        ("{a:time}", 90_000.0, "25 h"),
        ("{a:percent}", 0.5, "50 %"),
        ("{b:time}", 0.5, "{b}"),
        ("{b:list}", 0.5, "{b}"),
        ("{b:count clip|clips}", 0.5, "{b}"),
        ("{a:bytes}", 1_250_000_000, "1.25 GB"),
        ("{a:count clip|clips}", 1, "1 clip"),
        ("{a:count clip|clips}", 3, "3 clips"),
        ("{a}", ("x", "y"), "x, y"),
        ("{a}", (), "–"),
        ("{a:.2f}", 1.234, "1.23"),
        ("{a}", None, "–"),
        ("{b}", 1, "{b}"),
    ],
)
def test_a_gap_says_how_its_value_is_written(
    monkeypatch: pytest.MonkeyPatch, gap: str, value: object, written: str
) -> None:
    tables = wording.rows()
    monkeypatch.setattr(wording, "rows", lambda: tables | {"x": wording.Wording("x", gap, gap)})
    assert wording.text("x", {"a": value}) == written


def test_a_phase_has_a_name_in_every_language() -> None:
    assert str(Progress(3, 4, "learn_voice")) == "Passes to learn the voice: 3 of 4"
    with wording.speaking("am"):
        assert "learn_voice" not in wording.describe(Progress(3, 4, "learn_voice"))
    assert str(Progress(3, 4, "a.wav")) == "a.wav: 3 of 4"


def test_a_list_in_amharic_has_the_amharic_comma() -> None:
    with wording.speaking("am"):
        assert wording.join_list(["ሀ", "ለ"]) == "ሀ፣ ለ"
