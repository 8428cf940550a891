"""What more data would bring is read from trainings on parts of it."""

from pathlib import Path

import pytest

from utils.cli.advise import conclusions
from utils.cli.demo import PRESET, settings
from utils.cli.runs import follow
from utils.config import DatasetConfig
from utils.core.facts import Fact
from utils.dataset.metadata import read_clips
from utils.studio import learning_curve, runs, sample_project
from utils.studio.learning_curve import CurvePoint, measure_curve, plot, trend

LINE = [
    CurvePoint(minutes, seed, 80 / minutes, 3 - 0.2 * step)
    for step, minutes in enumerate((5, 10, 20, 40))
    for seed in (0, 1)
]
NOISY = [point._replace(loss=point.loss + (0.1 if point.seed else -0.1)) for point in LINE]


def test_a_direction_within_the_scatter_is_called_unsure() -> None:
    flat = [point._replace(loss=2.0 + (0.1 if point.seed else -0.1)) for point in LINE]
    assert "the direction is not sure" in conclusions(flat)[0]
    assert "not sure" not in conclusions(LINE)[0]


def test_the_smaller_sizes_predict_all_data() -> None:
    assert "2.400 ± 0.000 was predicted for all data" in conclusions(LINE)[1]


def test_trainings_that_saw_only_a_part_of_the_clips_are_called_too_short() -> None:
    short = [point._replace(passes=point.passes / 4) for point in LINE]
    assert "saw only 50 % of all clips" in conclusions(short)[0]


def test_trainings_on_one_size_predict_nothing() -> None:
    assert conclusions([point._replace(minutes=0.1, passes=80) for point in NOISY]) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_sample_is_measured_on_four_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, told = sample_project.create(tmp_path), list[Fact]()
    monkeypatch.setattr(learning_curve, "SENTENCES", 1)
    monkeypatch.setattr(learning_curve, "MIN_UPDATES", 4)
    monkeypatch.setattr(learning_curve, "TRAININGS", learning_curve.TRAININGS[::2])  # each size once
    run = runs.start("prepare", DatasetConfig(inputs=str(project.dataset / sample_project.UPLOADS)), project).run
    assert follow(run) == 0
    config = settings(PRESET, project).model_copy(update={"batch_size": 1})  # its updates took most of the time
    points = measure_curve(read_clips(config, project.dataset), config, project.root, 1.0, told.append)
    assert [round(point.minutes / points[-1].minutes, 1) for point in points] == [0.1, 0.2, 0.5, 1.0]
    assert all(0 < point.loss < 10 for point in points)
    assert all(point.phone_error is not None for point in points)
    assert len(told) == len(points)
    assert not list(project.root.glob(".curve-*"))
    plot(points).savefig(tmp_path / "curve.png")


def test_results_that_scatter_are_less_sure() -> None:
    line = trend(NOISY, "loss", 80)
    assert line is not None
    assert line.predicted == pytest.approx(2.2)
    assert 0.2 < line.predicted_uncertainty < 1.0
