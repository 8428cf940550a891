"""What a training leaves on disk, and its losses: undisturbed, and stopped and resumed."""

import json
from pathlib import Path
from typing import Any

import pytest

from utils.gpt_train import TrainResult, train_gpt

pytestmark = pytest.mark.slow

EPOCHS: dict[str, Any] = {
    "batch_size": 2,
    "grad_acumm": 1,
    "learning_rate": 1e-3,
    "enable_mixed_precision": False,
    "num_epochs": 100,
    "lr_scheduler": "constant",  # others depend on the number of steps
    "save_step": 3,
    "eval_step": 3,
    "sample_texts": "-",
    "score_sentences": 0,
    "progress": False,
}


def trained(output: Path, **settings: object) -> TrainResult:
    return train_gpt(output_path=str(output / "project"), custom_model=str(output / "base"), **EPOCHS | settings)


@pytest.fixture(scope="module")
def whole(output: Path) -> TrainResult:
    return trained(output, max_steps=6)


def events(result: TrainResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (result.run / "events.jsonl").read_text(encoding="utf-8").splitlines()]


def losses(result: TrainResult) -> list[tuple[str, int, float]]:
    return [(event["kind"], event["step"], event["loss"]) for event in events(result) if "loss" in event]


def test_the_result_has_the_last_losses(whole: TrainResult) -> None:
    assert whole.updates == 6
    assert whole.eval_losses["loss"] == losses(whole)[-1][2]


@pytest.mark.parametrize("kind", "started train evaluation checkpoint saved ended".split())
def test_a_run_writes_the_kinds_of_events_of_1_1(kind: str, whole: TrainResult) -> None:
    assert kind in {event["kind"] for event in events(whole)}


@pytest.mark.parametrize(
    "name",
    [
        "config.yaml",
        "state.json",
        "events.jsonl",
        "base.json",
        "clips.json",
        "checkpoints/step_6/model.safetensors",
        "checkpoints/step_6/vocab.json",
        "checkpoints/step_6/text.json",
        "checkpoints/step_6/checkpoint.json",
        "resume/state.json",
        "resume/weights.safetensors",
        "resume/optimizer.safetensors",
        "resume/optimizer.json",
        "resume/random.safetensors",
    ],
)
def test_a_run_has_the_files_of_1_1(name: str, whole: TrainResult) -> None:
    assert (whole.run / name).is_file()


def test_the_best_checkpoint_is_in_the_result(whole: TrainResult) -> None:
    assert whole.best == whole.run / "checkpoints" / "step_6"
