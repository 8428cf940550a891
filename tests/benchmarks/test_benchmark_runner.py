"""One command runs all benchmarks: each command is understood, a failure stops nothing, and every toy works."""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks import __main__ as runner
from benchmarks import record, speech_options, training
from benchmarks.archive import findings
from benchmarks.programs import BENCHMARKS, Benchmark, named, of_device
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


def test_names_and_findings_are_not_used_twice() -> None:
    assert len({one.name for one in BENCHMARKS}) == len(BENCHMARKS)
    assert len({(one.finding, one.device) for one in BENCHMARKS}) == len(BENCHMARKS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", [one.name for one in BENCHMARKS if one.device == "cpu"]),
        ("--device cuda", [one.name for one in BENCHMARKS if one.device == "cuda"]),
        ("--only speech training", ["training", "speech"]),
        ("--only speech-gpu", ["speech-gpu"]),
    ],
)
def test_those_that_are_named_run_or_all_of_a_device(words: str, expected: list[str]) -> None:
    assert [one.name for one in runner.chosen(runner.parser().parse_args(words.split()))] == expected


def test_the_list_has_every_name_and_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--list"]) == 0
    said = capsys.readouterr().out
    assert [one.name for one in BENCHMARKS if one.name not in said or one.command not in said] == []


@pytest.mark.parametrize(
    "line",
    re.findall(r"^python -m benchmarks(?![.]).*", (ROOT / "benchmarks/README.md").read_text("utf-8"), re.MULTILINE),
)
def test_the_commands_of_the_page_are_understood(line: str) -> None:
    arguments = runner.parser().parse_args(shlex.split(line, comments=True)[3:])
    assert runner.chosen(arguments)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SystemExit):
        runner.main(["--only", "nothing"])


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


def test_toys_leave_the_results_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: dict[bool, set[Path]] = {True: set(), False: set()}

    def run(_: Benchmark, folder: Path, *, toy: bool) -> int:
        folders[toy].add(folder)
        return 0

    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: "/toys")
    assert runner.main(["--toy"]) == runner.main([]) == 0
    assert folders == {True: {Path("/toys").resolve()}, False: {record.RESULTS}}


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


@pytest.mark.parametrize(
    ("words", "name"),
    [([], "speech_30x1024"), (["--precisions", "int8"], "speech_30x1024_int8"), (["--dim", "64"], "speech_30x64")],
)
def test_the_name_of_a_result_tells_the_size_and_unusual_precisions(
    words: list[str], name: str, tmp_path: Path
) -> None:
    options = speech_options.parser("", codes=129, precisions=("fp32", "int8"))
    arguments = options.parse_args([*words, "--results", str(tmp_path)])
    speech_options.conclude("speech", "{hardware} {table}", arguments, ["", "s"], [["coqui", "1"]])
    (found,) = findings(tmp_path)
    assert found.benchmark == name
    assert found.data["settings"]["codes"] == 129


def test_a_gpu_keeps_the_name_whatever_the_precisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "hardware", lambda _: "A Card")
    options = speech_options.parser("", codes=129, precisions=("fp32", "int8"))
    arguments = options.parse_args([*named("speech-gpu").words.split()[1:5], "--results", str(tmp_path)])
    speech_options.conclude("speech", "{hardware}", arguments, ["", "s"], [["coqui", "1"]])
    (found,) = findings(tmp_path)
    assert (found.benchmark, found.machine, found.device) == ("speech_30x1024", "a-card", "cuda")


def test_the_runner_and_the_pages_need_no_torch() -> None:
    code = "import sys; import benchmarks.__main__, benchmarks.render; print(json.dumps('torch' in sys.modules))"
    said = subprocess.run([sys.executable, "-c", f"import json; {code}"], cwd=ROOT, capture_output=True, check=True)
    assert json.loads(said.stdout) is False


@pytest.mark.slow
@pytest.mark.parametrize("one", TOYS, ids=lambda one: one.name)
def test_every_toy_works_and_leaves_a_finding_that_can_be_shown(one: Benchmark, tmp_path: Path) -> None:
    assert runner.main(["--toy", "--only", one.name, "--results", str(tmp_path)]) == 0
    (found,) = findings(tmp_path)
    assert figures(found).count("|") > 4
    assert "not recorded" not in surroundings(found)
