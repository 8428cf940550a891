"""Saves by time: what a crash at any moment loses, counted with a simulated clock; and a restart without a save."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.training.made_clips import made_lengths
from tests.training.running import events, figures, resume, same, settings, trained, weights
from utils.config import TrainConfig
from utils.core.facts import Progress, Stop, StopRequested, ignore
from utils.gpt_train import train
from utils.studio.job import Job
from utils.studio.paths import Project
from utils.studio.runs import create
from utils.training.batches import UpdatePlan
from utils.training.facts import CheckpointContinued, RunStartsAnew, Saved
from utils.training.health import EarlyStopping, OverfittingGuard
from utils.training.loop import TrainingLoop
from utils.training.step import EvalLosses, Evaluated, StepResult
from utils.xtts import checkpoints


class SimulatedRun:
    """The real loop around parts that only take time, as those of a slow computer do."""

    def __init__(self, config: TrainConfig, clips: int, seconds: dict[str, float]) -> None:
        self.now, self.seconds, self.config = 1000.0, seconds, config
        self.saves: list[tuple[float, float]] = [(self.now, self.now)]  # start, when its state was taken, and end
        self.can_resume, self.total = False, 0
        lengths = made_lengths(clips, seconds=(6.0, 6.0))
        self.per_epoch = len(UpdatePlan.from_config(config, lengths))
        guard = SimpleNamespace(rolled_back=0)
        ranks = SimpleNamespace(agree=str, is_first=True)
        self.step = SimpleNamespace(run=self.update, guard=guard, ranks=ranks)
        self.report = ignore
        self.throughput = SimpleNamespace(
            data_ready=lambda: None,
            metrics=lambda _: {},
            pause=lambda *_: None,
            full_memory=lambda: None,
            updates=0,
        )
        self.stopping, self.overfitting = EarlyStopping(), OverfittingGuard()
        self.samples = SimpleNamespace(is_speaking=True)

    def take(self, part: str) -> None:
        self.now += self.seconds[part]

    def update(self, _: Any) -> StepResult:
        self.take("update")
        return StepResult(1.0, 1.0, 1.0, 1.0, 1e-5, "applied")

    def evaluate(self) -> Evaluated:
        self.take("evaluation")
        return Evaluated(EvalLosses(1.0, 1.0, 1.0))

    def save(self, _: Any) -> None:
        start = self.now
        self.take("save")
        self.saves.append((start, self.now))
        self.can_resume = True

    def write_checkpoint(self, *_: Any, **__: Any) -> None: ...

    def speak_samples(self, _: Any) -> None:
        self.take("samples")

    def losses(self) -> np.ndarray[Any, Any]:
        """Train, and return the minutes of work that a crash at each second would lose."""
        loader = SimpleNamespace(
            run=lambda first, last: (SimpleNamespace(number=number, clips=16) for number in range(first, last))
        )
        total = self.per_epoch * self.config.num_epochs
        evaluator: Any = SimpleNamespace(evaluate=self.evaluate)
        saver: Any = self
        plan: Any = loader
        TrainingLoop(saver, plan, evaluator, total, lambda *_: None, clock=lambda: self.now).run()
        moments = np.arange(1000.0, self.now)
        ends = np.array([end for _, end in self.saves])
        starts = np.array([start for start, _ in self.saves])
        lost: np.ndarray[Any, Any] = moments - starts[np.searchsorted(ends, moments, side="right") - 1]
        return lost / 60


@pytest.mark.parametrize("update", [1.5, 40.0])  # seconds: with a GPU, and on two cores
@pytest.mark.parametrize("changes", [{}, {"eval_step": 20}, {"num_epochs": 2, "save_step": 7}])
def test_a_crash_loses_ten_minutes_at_most(update: float, changes: dict[str, Any]) -> None:
    """Two hours of clips of 6 s with the default settings."""
    seconds = {"update": update, "evaluation": 45.0, "samples": 20.0, "save": 12.0}
    run = SimulatedRun(TrainConfig(**changes), 1200, seconds)
    lost = run.losses()
    assert lost.max() <= 10
    share = sum(end - start for start, end in run.saves) / (run.now - 1000)
    assert share < 0.1 or changes.get("save_step")  # as the user wishes


@pytest.mark.slow
def test_without_a_resume_state_a_run_continues_from_its_checkpoint(tmp_path: Path, dataset: Path) -> None:
    run = trained(tmp_path, dataset, max_steps=5, save_step=3, save_n_checkpoints=3)
    shutil.rmtree(run.folder / checkpoints.RESUME_FOLDER)
    checkpoints.delete(checkpoints.find(run.folder, 5))
    resume(run, TrainConfig.load(run.config))
    (continued,) = events(run, CheckpointContinued.kind)
    assert (continued["step"], continued["cause"], continued["lost"]) == (3, "missing", 2)
    assert figures(run, "step") == [1, 2, 3, 4, 5, 4, 5]


@pytest.mark.slow
def test_a_step_is_reported_once_as_saved(tmp_path: Path, dataset: Path) -> None:
    run = trained(tmp_path, dataset, max_steps=4, eval_step=3, save_step=3)  # saves before and after the evaluation
    assert figures(run, "step", Saved.kind) == [3, 4]


@pytest.mark.slow
def test_a_run_of_which_nothing_is_left_starts_anew(tmp_path: Path, dataset: Path) -> None:
    run = trained(tmp_path, dataset, max_steps=4, save_step=4)
    before = weights(run)
    for folder in (checkpoints.RESUME_FOLDER, checkpoints.FOLDER):
        shutil.rmtree(run.folder / folder)
    resume(run, TrainConfig.load(run.config))
    assert figures(run, "lost", RunStartsAnew.kind) == [4]
    assert same(weights(run), before)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["save", "now"])
def test_the_last_update_before_a_stop_is_the_one_that_is_shown(tmp_path: Path, dataset: Path, how: str) -> None:
    """The page reads it from the newest progress, which otherwise is reported every few seconds."""
    config = settings(tmp_path, dataset)
    run = create("train", config, Project(tmp_path))
    with Job(run) as job, pytest.raises(StopRequested):
        train(config, run, job.report, lambda: Stop(how) if 3.0 in figures(run, "step") else Stop.NO)
    assert [event["step"] for event in events(run, Progress.kind) if not event.get("part")][-1] == 3


@pytest.mark.slow
def test_a_stopped_run_offers_its_best_checkpoint(tmp_path: Path, dataset: Path) -> None:
    config = settings(tmp_path, dataset)
    run = create("train", config, Project(tmp_path))
    run.stop_file.write_text("save")
    with pytest.raises(StopRequested):
        resume(run, config)
    assert events(run, "offer") == []  # no evaluation was better than the base model yet
    for _ in range(3):  # one update each, until the first evaluation is over
        with pytest.raises(StopRequested):
            resume(run, config)
    assert figures(run, "step", "evaluation") == [0, 3]
    assert events(run, "offer")[-1]["step"] == 3
