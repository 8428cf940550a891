"""The benchmarks page, README's figures and the plots are what the result files say, and each file tells enough."""

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks import archive, bars, claims, record, render
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


def finding(name: str, **data: object) -> Finding:
    return Finding(Path(f"{name}.json"), dict(data))


def test_nothing_is_stale() -> None:
    assert render.stale() == [], "run: python -m benchmarks.render"


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.path.stem)
def test_a_result_file_tells_hardware_versions_command_and_date(one: Finding) -> None:
    missing = {what for what in SURROUNDINGS if one.told(what) == NOT_RECORDED}
    assert missing == (SURROUNDINGS if one.path.stem in OLD else set())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", one.date)
    assert one.data.get("date", one.date) == one.date
    assert one.path.with_suffix(".md").is_file()


def test_every_result_file_belongs_to_a_benchmark() -> None:
    known = {(benchmark.finding, benchmark.device) for benchmark in BENCHMARKS}
    assert {(one.benchmark, one.device) for one in EVERY} <= known


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["serving.py"], "python benchmarks/serving.py"),
        (["/some where/speech.py", "--results", "/of/mine", "--rounds", "1"], "python benchmarks/speech.py --rounds 1"),
    ],
)
def test_the_command_of_a_finding_leads_into_no_folder_of_its_machine(
    words: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", words)
    assert record.typed() == told


def test_what_was_not_measured_is_listed_with_its_command() -> None:
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


def test_no_figure_of_speed_stands_outside_the_rendered_part_of_readme() -> None:
    before, _, rest = README.partition("<!-- benchmarks: made by")
    written = before + rest.partition("<!-- benchmarks: end -->")[2]
    assert re.findall(r"\d[\d.]* ?(?:x\b|times|%|MiB)(?! 1024)", written) == []


def test_ratios_come_from_figures_that_were_not_rounded() -> None:
    measured = [one for one in EVERY if one.path.stem == "speech_30x1024_amd-epyc-2-cores_2026-11-21"]
    (claim,) = [one for one in claims.claims(measured, "cpu") if "int8: several together" in one.what]
    assert (claim.theirs, claim.ours, claim.gain) == (3.2, 0.34, 9.35)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["training_a_2026-01-02", "training_a_2026-01-01"], ["training_a_2026-01-02"]),
        (["training_a_2026-01-02", "training_b_2026-01-03"], ["training_b_2026-01-03", "training_a_2026-01-02"]),
        (["training_a_2026-01-03", "training_b_2026-01-01"], ["training_a_2026-01-03", "training_b_2026-01-01"]),
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


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({}, f"machine, 2026-01-01, versions {NOT_RECORDED}"),
        ({"hardware": "A Machine", "software": "torch 9"}, "A Machine, 2026-01-01, torch 9"),
    ],
)
def test_what_a_file_lacks_is_said(data: dict[str, object], told: str) -> None:
    assert render.surroundings(finding("speech_1x64_machine_2026-01-01", **data)) == told


@pytest.mark.parametrize(
    ("data", "told"), [({"took": 12.3}, "12 s"), ({"took": 600.0}, "10 min"), ({"rows": []}, NOT_RECORDED)]
)
def test_durations_are_told_where_they_were_recorded(data: dict[str, object], told: str) -> None:
    assert render.duration(finding("speech_1x64_machine_2026-01-01", **data)) == told


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("README.md", render.PAGE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


def test_a_figure_changed_by_hand_is_stale(copy: Path) -> None:
    readme = copy / "README.md"
    told = claims.claims(EVERY, "cpu")[0].told
    readme.write_text(readme.read_text(encoding="utf-8").replace(told, "99.99 x"), encoding="utf-8")
    assert set(render.stale(copy)) == {"README.md", render.SPEED, render.MEMORY, render.SWITCHES}
    assert told in render.rendered(copy)[readme]


def test_a_page_without_markers_is_refused(copy: Path) -> None:
    (copy / "README.md").write_text("# Nothing\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"README\.md wants these two lines"):
        render.rendered(copy)


@pytest.mark.parametrize("name", [render.SPEED, render.MEMORY, render.SWITCHES])
def test_a_plot_is_light_has_a_title_and_keeps_its_bars_inside(name: str) -> None:
    root = ET.fromstring((ROOT / name).read_text(encoding="utf-8"))
    shapes = [shape.attrib for shape in root.iter(f"{{{bars.NAMESPACE}}}rect")]
    assert shapes[0]["fill"] == "#ffffff"
    assert root.find(f".//{{{bars.NAMESPACE}}}title") is not None
    assert len(shapes) > 3
    assert all(float(shape["x"]) + float(shape["width"]) < bars.WIDTH for shape in shapes)


def test_a_bar_is_as_long_as_its_value_says() -> None:
    drawn = bars.chart("title", "note", [bars.Bar("a", 1, "1 x", "ours"), bars.Bar("b", 4, "4 <x>", "theirs")], 2)
    one, four = (float(found) for found in re.findall(r'width="([\d.]+)" height="18"', drawn))
    assert four == pytest.approx(4 * one, abs=0.5)
    assert "4 &lt;x&gt;" in drawn
    assert "stroke-dasharray" in drawn


def test_links_of_the_page_lead_somewhere() -> None:
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", PAGE) if "://" not in target]
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / "benchmarks" / target).exists()] == []
