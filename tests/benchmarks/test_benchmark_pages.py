"""The benchmarks page, README's figures and the plots are what the result files say, and each file tells enough."""

import re
from pathlib import Path

import pytest

from benchmarks import archive, claims, render
from benchmarks.archive import NOT_RECORDED, Finding
from benchmarks.programs import BENCHMARKS, named
from utils.core.paths import ROOT

SURROUNDINGS = {"hardware", "software", "command", "date"}
OLD = {  # written before programs of speech wrote their surroundings into the JSON; they stay as they are
    "decoding_6x512_amd-epyc-2-cores_2026-11-21",
    "speech_30x1024_amd-epyc-2-cores_2026-11-21",
    "speech_30x1024_int8_amd-epyc-2-cores_2026-11-21",
    "speech_6x512_amd-epyc-2-cores_2026-11-21",
}
EVERY = archive.findings()
PAGE = (ROOT / render.PAGE).read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_nothing_is_stale() -> None:
    assert render.stale() == [], "run: python -m benchmarks.render"


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.path.stem)
def test_a_result_file_tells_hardware_versions_command_and_date(one: Finding) -> None:
    missing = {what for what in SURROUNDINGS if one.told(what) == NOT_RECORDED}
    assert missing == (SURROUNDINGS if one.path.stem in OLD else set())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", one.date)
    assert one.data.get("date", one.date) == one.date
    assert one.path.with_suffix(".md").is_file()


def test_every_result_belongs_to_a_benchmark_and_what_was_not_measured_is_listed_with_its_command() -> None:
    known = {(benchmark.finding, benchmark.device) for benchmark in BENCHMARKS}
    assert {(one.benchmark, one.device) for one in EVERY} <= known
    missing = PAGE.partition(f"### {render.NOT_YET.capitalize()}")[2]
    for one in BENCHMARKS:
        assert (f"- {one.name}: `{one.command}`" in missing) is (not archive.of(one, EVERY))


def test_readme_shows_each_claim_with_its_command_and_says_what_no_gpu_has_shown() -> None:
    on_gpu = claims.claims(EVERY, "cuda")
    shown = [*claims.claims(EVERY, "cpu"), *on_gpu]
    assert shown
    for claim in shown:
        assert f"| {claim.figure(claim.ours)} | **{claim.told}**{claim.remark} | `{claim.command}` |" in README
    assert (f"On a GPU: **{render.NOT_YET}**" in README) is (not on_gpu)


def test_ratios_come_from_figures_that_were_not_rounded() -> None:
    measured = [one for one in EVERY if one.path.stem == "speech_30x1024_amd-epyc-2-cores_2026-11-21"]
    (claim,) = [one for one in claims.claims(measured, "cpu") if "int8: several together" in one.what]
    assert (claim.theirs, claim.ours, claim.gain) == (3.2, 0.34, 9.35)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["training_a_2026-01-02", "training_b_2026-01-03"], ["training_b_2026-01-03", "training_a_2026-01-02"]),
        (
            ["training_a_2026-01-01", "training_b_2026-01-02", "training_a_2026-01-03"],
            ["training_a_2026-01-03", "training_b_2026-01-02"],
        ),
        (["training_switches_a_2026-01-02"], []),
    ],
)
def test_the_last_result_of_each_machine_is_shown_the_newest_first(
    names: list[str], expected: list[str], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / f"{name}.json").write_text("{}", encoding="utf-8")
    assert [one.path.stem for one in archive.of(named("training"), archive.findings(tmp_path))] == expected


def test_a_figure_changed_by_hand_is_stale(tmp_path: Path) -> None:
    told = claims.claims(EVERY, "cpu")[0].told
    (tmp_path / render.PAGE).parent.mkdir()
    (tmp_path / render.PAGE).write_text(PAGE, encoding="utf-8")
    (tmp_path / "README.md").write_text(README.replace(told, "99.99 x"), encoding="utf-8")
    assert set(render.stale(tmp_path)) == {"README.md", render.SPEED, render.MEMORY, render.SWITCHES}
    assert told in render.rendered(tmp_path)[tmp_path / "README.md"]
