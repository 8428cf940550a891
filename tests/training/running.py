"""Runs of the tiny model in this process, for tests."""

from pathlib import Path
from typing import Any

import torch

from tests.random_base import random_base
from utils.config import TrainConfig
from utils.core.events import Event, read_events
from utils.studio.job import Job
from utils.studio.paths import Project
from utils.studio.runs import Run, create
from utils.training import resume_state
from utils.xtts import checkpoints
from utils.xtts.tensors import read_tensors

QUICK: dict[str, Any] = {
    "batch_size": 2,
    "grad_acumm": 2,
    "learning_rate": 1e-3,
    "enable_mixed_precision": False,
    "sample_texts": "-",
    "score_sentences": 0,
    "num_epochs": 100,
    "max_steps": 6,
    "save_step": 3,
}


def settings(project: Path, dataset: Path, **changes: object) -> TrainConfig:
    lists = {"train_csv": str(dataset / "metadata_train.csv"), "eval_csv": str(dataset / "metadata_eval.csv")}
    return TrainConfig.parse({**QUICK, **lists, "custom_model": random_base(), "output_path": str(project), **changes})


def trained(project: Path, dataset: Path, **changes: object) -> Run:
    """Train in this process."""
    config = settings(project, dataset, **changes)
    run = create("train", config, Project(project))
    resume(run, config)
    return run


def resume(run: Run, config: TrainConfig) -> None:
    from utils.gpt_train import train

    with Job(run) as job:
        train(config, run, job.report, job.should_stop)


def events(run: Run, kind: str) -> list[Event]:
    return [event for event in read_events(run.events).events if event["kind"] == kind]


def figures(run: Run, name: str, kind: str = "train") -> list[float]:
    return [float(str(event[name])) for event in events(run, kind)]


def weights(run: Run) -> dict[str, torch.Tensor]:
    return read_tensors(run.folder / checkpoints.RESUME_FOLDER / resume_state.WEIGHTS)


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
