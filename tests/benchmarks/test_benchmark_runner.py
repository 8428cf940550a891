"""One command runs all benchmarks: each command is understood, a failure stops nothing, and every toy works."""

import re
import shlex
from pathlib import Path

import pytest

from benchmarks import __main__ as runner
from benchmarks import record, training
from benchmarks.archive import findings
from benchmarks.programs import BENCHMARKS, Benchmark, of_device
from benchmarks.render import figures, surroundings
from utils.core.paths import ROOT

HERE = of_device("cpu")
PROGRAMS = {one.words.split()[0]: one for one in HERE}  # of several with one program the last, which is the quickest
TOYS = [one for program, one in PROGRAMS.items() if program != "training.py"]  # it has tests of its own


@pytest.mark.parametrize("one", BENCHMARKS, ids=lambda one: one.name)
@pytest.mark.parametrize("kind", ["words", "toy"])
def test_the_words_of_a_benchmark_are_of_its_program_and_device(one: Benchmark, kind: str) -> None:
    program, *words = shlex.split(getattr(one, kind))
    assert (ROOT / "benchmarks" / program).is_file()
    assert ("cuda" in words) == (one.device == "cuda")
    if program == "training.py":
        assert training.parser().parse_args(words).device == one.device


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--device cuda", [one.name for one in BENCHMARKS if one.device == "cuda"]),
        ("--only speech training", ["training", "speech"]),
    ],
)
def test_those_that_are_named_run_or_all_of_a_device(words: str, expected: list[str]) -> None:
    assert [one.name for one in runner.chosen(runner.parser().parse_args(words.split()))] == expected


@pytest.mark.parametrize(
    "line",
    re.findall(r"^python -m benchmarks(?![.]).*", (ROOT / "benchmarks/README.md").read_text("utf-8"), re.MULTILINE),
)
def test_the_commands_of_the_page_are_understood(line: str) -> None:
    arguments = runner.parser().parse_args(shlex.split(line, comments=True)[3:])
    assert runner.chosen(arguments)


def test_the_others_run_when_one_fails_and_the_end_says_which(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Benchmark("broken", "", "", "", "front_end.py --nonsense", "")
    quick = Benchmark("quick", "", "", "", "front_end.py --help", "")
    monkeypatch.setattr(runner, "of_device", lambda _: [broken, quick])
    assert runner.main(["--toy", "--results", str(tmp_path)]) == 1
    said = capfd.readouterr().out
    assert "usage: front_end.py" in said
    assert "broken          FAILED with 2" in said
    assert "quick           done" in said


def test_a_finding_is_written_with_its_surroundings(tmp_path: Path) -> None:
    page = record.save_table("what", "A title", ["", "figure"], [["row", "1"]], tmp_path)
    (found,) = findings(tmp_path)
    assert found.page == page.name
    assert found.benchmark == "what"
    assert found.machine == record.slug(record.hardware("cpu"))
    assert all(str(found.data[what]) in page.read_text(encoding="utf-8") for what in ("hardware", "software", "date"))
    assert "torch " in found.told("software")
    assert found.told("software").startswith("Python ")
    assert found.data["took"] > 0
    assert found.cell("row", 1) == "1"


@pytest.mark.slow
@pytest.mark.parametrize("one", TOYS, ids=lambda one: one.name)
def test_every_toy_works_and_leaves_a_finding_that_can_be_shown(one: Benchmark, tmp_path: Path) -> None:
    assert runner.main(["--toy", "--only", one.name, "--results", str(tmp_path)]) == 0
    (found,) = findings(tmp_path)
    assert figures(found).count("|") > 4
    assert "not recorded" not in surroundings(found)
