"""The training benchmark: its figures follow from its rounds, and it runs from end to end."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import training
from benchmarks.training_findings import Comparison, Measured, ratios_of
from benchmarks.training_plan import Memory, Plan, Round
from benchmarks.training_report import comparison_table
from benchmarks.training_sides import SIDES

TINY = ["--layers", "1", "--dim", "64", "--clips", "4", "--batch", "2", "--threads", "1"]


def measured(*seconds: float, peak: float, loss: float) -> Measured:
    rounds = [Round(one, 2 * one, 8, 44.0, 5.0) for one in seconds]
    return Measured(rounds, Memory(300.0, peak, peak / 2, 0.0), 7.0, loss, 4, ["a note"])


def test_figures_follow_from_the_medians_of_the_rounds() -> None:
    coqui, ours = measured(8.0, 10.0, 16.0, peak=2000, loss=6.0), measured(4.0, 2.0, 5.0, peak=1000, loss=5.7)
    padded = measured(5.0, 8.0, 4.0, peak=1500, loss=5.8)
    comparison = Comparison(Plan(clips=16), coqui, ours, padded, 12.0, 20.0, "a machine", "a command", "2026-01-01")
    assert (comparison.coqui.speed, comparison.ours.speed) == (0.8, 2.0)
    assert comparison.ratio == 2.5
    assert comparison.ratios == [2.0, 5.0, 3.2]
    assert ratios_of(coqui, padded) == [1.6, 1.25, 4.0]
    assert comparison.ours.work == 1.0
    assert comparison.memory_share == 0.5
    assert comparison.speed_with_features == pytest.approx(1 / (0.5 + 12 / 16 / 3))
    assert comparison.ratio_with_features == pytest.approx(4 / 3 / 0.8)
    (spans,) = [line for line in comparison_table(comparison).splitlines() if "slowest" in line]
    assert spans == (
        "| slowest and fastest round | 0.500 to 1.000 | 1.600 to 4.000 | 2.00 to 5.00 x "
        "| 1.000 to 2.000 | 1.25 to 4.00 x |"
    )


def run(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the program here: its sides are processes of their own, and this one has read the libraries already."""
    monkeypatch.setattr(sys, "argv", ["benchmarks/training.py", *TINY, *words, "--results", str(folder)])
    training.main()


@pytest.mark.long
def test_the_comparison_runs_and_one_judge_finds_all_sides_equal_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["--rounds", "1", "--updates", "1"], tmp_path, monkeypatch)
    (path,) = tmp_path.glob("training_1x64_*.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["ratio"] > 0
    assert found["ours"]["loss_before"] == pytest.approx(found["coqui"]["loss_before"], rel=1e-6)
    assert len({found[side]["loss_after"] for side in SIDES} - {found["coqui"]["loss_before"]}) == len(SIDES)
    memory = found["coqui"]["memory"]
    assert memory["peak"] >= memory["training"] > memory["start"] > 0
