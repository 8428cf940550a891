"""A run whose saved state is damaged continues from its newest intact checkpoint, says so, and saves anew."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.training.running import events, figures, resume, trained, weights
from utils.config import TrainConfig
from utils.core.errors import FileDamagedError
from utils.core.storage import read_document, write_atomically
from utils.studio import paths
from utils.studio.runs import Run
from utils.training import resume_state
from utils.training.errors import NoCheckpointError, TrainingError
from utils.training.facts import CheckpointContinued
from utils.training.preparation import BASE_FILE
from utils.xtts import checkpoints

pytestmark = pytest.mark.slow
Damage = Callable[[Path], object]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def resumed(run: Run) -> Run:
    """Resume with the settings of the run, for two more updates."""
    resume(run, TrainConfig.load(run.config).model_copy(update={"max_steps": 8}))
    return run


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, dataset: Path) -> Run:
    """Train to update 6, with checkpoints of 3 and 6."""
    return trained(tmp_path_factory.mktemp("ended"), dataset, eval_step=3, save_n_checkpoints=3)


@pytest.fixture
def run(ended: Run, tmp_path: Path) -> Run:
    return Run(shutil.copytree(ended.folder, tmp_path / "runs" / ended.name))


@pytest.fixture
def damaged(run: Run) -> Run:
    """The state that it would resume from has a wrong bit."""
    flip(run.folder / checkpoints.RESUME_FOLDER / resume_state.WEIGHTS)
    return run


@pytest.mark.parametrize(
    ("file", "damage"),
    [(resume_state.WEIGHTS, flip), (resume_state.RANDOM, Path.unlink), (checkpoints.RESUME_STATE, halve)],
)
def test_it_continues_from_its_checkpoint(run: Run, file: str, damage: Damage) -> None:
    damage(run.folder / checkpoints.RESUME_FOLDER / file)
    resumed(run)
    (continued,) = events(run, CheckpointContinued.kind)
    assert (continued["step"], continued["cause"]) == (6, "damaged")
    assert figures(run, "step") == [1, 2, 3, 4, 5, 6, 7, 8]
    assert resume_state.load(run.folder / checkpoints.RESUME_FOLDER).update == 8


def test_the_learning_rate_continues_where_it_was(damaged: Run, dataset: Path, tmp_path: Path) -> None:
    plain = trained(tmp_path / "plain", dataset, eval_step=3, max_steps=8)
    assert figures(resumed(damaged), "learning_rate")[6:] == figures(plain, "learning_rate")[6:]


def test_a_damaged_checkpoint_is_skipped_for_the_one_before(damaged: Run) -> None:
    flip(checkpoints.find(damaged.folder, 6).folder / checkpoints.MODEL)
    resumed(damaged)
    assert figures(damaged, "step")[6:] == [4, 5, 6, 7, 8]
    assert all(checkpoints.read_state(checkpoint.folder) for checkpoint in checkpoints.list_checkpoints(damaged.folder))
    assert checkpoints.list_checkpoints(damaged.folder)[0].step == 8


def test_without_an_intact_checkpoint_it_is_refused(damaged: Run) -> None:
    for checkpoint in checkpoints.list_checkpoints(damaged.folder):
        flip(checkpoint.folder / checkpoints.MODEL)
    with pytest.raises(NoCheckpointError):
        resumed(damaged)
    assert len(events(damaged, "train")) == 6


@pytest.mark.parametrize("switches", [{"enable_ema": True}, {"enable_lora": True}])
def test_averages_and_adapters_are_recovered(tmp_path: Path, dataset: Path, switches: dict[str, bool]) -> None:
    run = trained(tmp_path, dataset, eval_step=3, **switches)
    before = weights(run)
    flip(run.folder / checkpoints.RESUME_FOLDER / resume_state.OPTIMIZER)
    resumed(run)
    gap = {name: (weights(run)[name] - part).abs().max() for name, part in before.items() if part.is_floating_point()}
    assert max(gap.values()) < 0.1  # two updates and half precision away, not a model begun anew
    assert any(bool(part > 0) for part in gap.values())
    assert torch.isfinite(torch.stack(list(gap.values()))).all()


@pytest.mark.parametrize("content", [b"\xff", b'{"folder": 5, "fingerprint": "a"}', b"[" * 100_000], ids=len)
def test_a_damaged_record_of_the_base_model_is_named(run: Run, content: bytes) -> None:
    (run.folder / BASE_FILE).write_bytes(content)
    with pytest.raises(FileDamagedError, match=r"base\.json"):
        resumed(run)


def test_a_base_model_whose_damaged_name_is_too_long_is_missing(run: Run) -> None:
    write_atomically(run.folder / BASE_FILE, json.dumps({"folder": "/" + "a" * 300, "fingerprint": ""}))
    with pytest.raises(TrainingError, match="is missing or has changed"):
        resumed(run)


def test_a_base_model_that_was_replaced_is_found_among_the_models(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = run.folder / BASE_FILE
    known = read_document(note)
    base, kept = Path(known["folder"]), tmp_path / "models"
    monkeypatch.setattr(paths, "MODELS", kept)
    write_atomically(note, json.dumps({**known, "folder": str(tmp_path / "gone" / base.name)}))
    with pytest.raises(TrainingError, match="is missing or has changed"):
        resumed(run)
    shutil.copytree(base, kept / base.name)
    assert events(resumed(run), "train")[-1]["step"] == 8
