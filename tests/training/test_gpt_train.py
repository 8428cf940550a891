"""Whole runs with the tiny model: they learn, say what they do, and survive whatever happens to them."""

import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from testing import random_model
from tests.training.running import events, figures, resume, settings, trained
from tests.training.trainable import write_dataset
from utils.core.errors import AmharicTtsError
from utils.studio.paths import Project
from utils.studio.runs import Run
from utils.training.errors import TrainingError
from utils.xtts import checkpoints

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, dataset: Path) -> Run:
    return trained(tmp_path_factory.mktemp("whole"), dataset)


def test_a_run_learns_from_every_update(whole: Run) -> None:
    updates, losses = events(whole, "train"), figures(whole, "loss", "evaluation")
    assert [event["step"] for event in updates] == [1, 2, 3, 4, 5, 6]
    expected = {"loss", "loss_text", "loss_audio", "learning_rate", "grad_norm", "samples_per_second", "seconds_left"}
    assert all(expected <= event.keys() for event in updates)
    assert losses[-1] < 0.75 * losses[0]
    best = checkpoints.find(whole.folder, "best")
    assert best.info is not None
    assert best.info.eval_loss == min(losses)
    assert {part.dtype for part in checkpoints.read_state(best.folder).values()} == {torch.float16}


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc holds on to freed memory")
def test_a_save_returns_free_memory(whole: Run, tmp_path: Path, dataset: Path) -> None:
    assert whole  # what a first run loads is there
    parts = [np.ones(10_000) for _ in range(8_000)]  # 640 MB, in pieces that the C library keeps
    last = parts[-1]  # what lies highest holds all below
    parts.clear()
    before = psutil.Process().memory_info().rss
    trained(tmp_path, dataset, max_steps=2, save_step=1)
    assert psutil.Process().memory_info().rss < before - 300e6
    assert last.all()


def test_batch_size_times_accumulation_is_what_counts(tmp_path: Path, dataset: Path) -> None:
    """Without dropout, which would fall elsewhere in batches of another size."""
    runs = [
        trained(tmp_path / str(size), dataset, dropout=0, batch_size=size, grad_acumm=4 // size, max_steps=4)
        for size in (4, 1)
    ]
    for name, kind in (("loss", "train"), ("grad_norm", "train"), ("loss", "evaluation")):
        first, second = (figures(run, name, kind) for run in runs)
        assert first == pytest.approx(second, rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train_csv": "/nowhere.csv"}, "prepare"),
        ({"max_audio_length": 1.0}, "max_audio_length"),
        ({"freeze_first_n_gpt_layers": 30}, "4"),
        ({"custom_model": "/nowhere"}, "/nowhere"),
    ],
)
def test_an_error_says_how_to_fix_it(tmp_path: Path, dataset: Path, changes: dict[str, object], words: str) -> None:
    with pytest.raises(AmharicTtsError, match=words):
        trained(tmp_path, dataset, **changes)


def test_only_the_length_of_a_resumed_run_may_change(tmp_path: Path) -> None:
    own = write_dataset(tmp_path / "dataset")
    run = trained(tmp_path, own, max_steps=2, save_step=2)
    longer = settings(tmp_path, own, max_steps=4)
    resume(run, longer)
    assert figures(run, "step") == [1, 2, 3, 4]
    with pytest.raises(TrainingError, match="settings"):
        resume(run, settings(tmp_path, own, max_steps=6, learning_rate=1e-4))
    lists = own / "metadata_train.csv"
    lists.write_text("\n".join(lists.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(TrainingError, match="clips have changed"):
        resume(run, longer)


@pytest.mark.timeout(600)
def test_a_model_of_the_full_size_goes_from_the_layout_of_the_hub_to_a_voice(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dataset", train=2, held_back=1)
    model = random_model.build(tmp_path / "model", sizes=random_model.PUBLISHED)
    options = {"version": "v2.0.2", "custom_model": str(model), "enable_lora": True}
    run = trained(tmp_path / "project", dataset, **options, batch_size=1, grad_acumm=1, max_steps=1)
    changed = {event["name"]: event["changed"] for event in events(run, "optimization")}
    assert (changed["enable_lora"], changed["enable_fused_gelu"]) == (120, 30)
    assert figures(run, "step") == [1]
    assert (Project(tmp_path / "project").ready / "model.pth").stat().st_size > 1.7e9
