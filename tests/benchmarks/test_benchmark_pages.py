"""The benchmarks page, README's figures and the plots are what the result files say, and each file tells enough."""

import re

import pytest

from benchmarks import archive, render
from benchmarks.archive import NOT_RECORDED, Finding
from benchmarks.programs import BENCHMARKS
from utils.core.paths import ROOT

SURROUNDINGS = {"hardware", "software", "command", "date"}
EVERY = archive.findings()
PAGE = (ROOT / render.PAGE).read_text(encoding="utf-8")


def test_nothing_is_stale() -> None:
    assert render.stale() == [], "run: python -m benchmarks.render"


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.path.stem)
def test_a_result_file_tells_hardware_versions_command_and_date(one: Finding) -> None:
    assert [what for what in SURROUNDINGS if one.told(what) == NOT_RECORDED] == []
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", one.date)
    assert one.data.get("date", one.date) == one.date
    assert one.path.with_suffix(".md").is_file()


def test_every_result_belongs_to_a_benchmark_and_what_was_not_measured_is_listed_with_its_command() -> None:
    known = {(benchmark.finding, benchmark.device) for benchmark in BENCHMARKS}
    assert {(one.benchmark, one.device) for one in EVERY} <= known
    missing = PAGE.partition(f"### {render.NOT_YET.capitalize()}")[2]
    for one in BENCHMARKS:
        assert (f"- {one.name}: `{one.command}`" in missing) is (not archive.of(one, EVERY))
