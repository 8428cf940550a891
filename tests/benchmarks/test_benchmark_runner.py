"""One command runs all benchmarks: a failure stops nothing, and every toy works."""

from pathlib import Path

import pytest

from benchmarks import __main__ as runner
from benchmarks.archive import findings
from benchmarks.programs import Benchmark, of_device
from benchmarks.render import figures, surroundings

HERE = of_device("cpu")
PROGRAMS = {one.words.split()[0]: one for one in HERE}  # of several with one program the last, which is the quickest
QUICK = "front_end.py"
ELSEWHERE = {"training.py", "phone_error.py", "serving.py"}  # tested here, in tests/amharic and in tests/server
TOYS = [
    pytest.param(one, id=one.name, marks=pytest.mark.slow if program == QUICK else pytest.mark.long)
    for program, one in PROGRAMS.items()
    if program not in ELSEWHERE
]


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


@pytest.mark.parametrize("one", TOYS)
def test_every_toy_works_and_leaves_a_finding_that_can_be_shown(one: Benchmark, tmp_path: Path) -> None:
    assert runner.main(["--toy", "--only", one.name, "--results", str(tmp_path)]) == 0
    (found,) = findings(tmp_path)
    assert figures(found).count("|") > 4
    assert "not recorded" not in surroundings(found)
