"""Every switch in a whole run: it says what it changed, the run learns, and its checkpoint speaks in coqui's names."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

from testing import random_model
from tests.random_base import random_base
from tests.training.running import events, figures, trained, weights
from utils.speech.precision import Measurement, measurement
from utils.studio import paths
from utils.studio.paths import Project
from utils.studio.runs import Run
from utils.training import precision
from utils.training.data_loader import Update
from utils.training.errors import ClipsDoNotFitError, NotFiniteError
from utils.training.facts import BatchesHalved, RolledBack, TrackerFailed, UpdateSkipped
from utils.training.model_size import ModelSize
from utils.training.packing import PackedBatch, PackedGpt
from utils.training.step import TrainStep
from utils.xtts import checkpoints, device, model
from utils.xtts.adapters import add_lora, load_adapter, merged_state
from utils.xtts.tensors import read_tensors
from utils.xtts.tokenizer import Tokenizer

pytestmark = pytest.mark.slow
MUST_CHANGE = set(
    "enable_grad_checkpoint enable_sdpa enable_lora freeze_first_n_gpt_layers freeze_conditioning "
    "optimizer offload_optimizer".split()
)


def what_is_on(run: Run) -> dict[str, Any]:
    return dict(events(run, "what_is_on")[-1]["parts"])  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("changes", "first_batch"),
    [
        (
            {"enable_grad_checkpoint": True, "enable_ema": True, "label_smoothing": 0.1, "num_workers": 1},
            {"EMA": "decay 0.999, 114 weights", "label smoothing": "0.1", "attention calls of gpt": "4 x byte dropout"},
        ),
        (
            {"enable_sdpa": False, "enable_fused_gelu": False, "enable_byte_dropout": False, "use_amharic_g2p": False},
            {"attention calls of gpt": "4 x unfused", "activation": "NewGELUActivation"}
            | {"attention calls of conditioning_encoder": "6 x unfused", "dropout calls of gpt": "12 x random numbers"},
        ),
        (
            {"enable_lora": True, "use_dora": True, "lora_targets": "attention", "dropout": 0},
            {"attention calls of gpt": "4 x flash", "attention calls of conditioning_encoder": "6 x flash"},
        ),
        (
            {"freeze_first_n_gpt_layers": 2, "freeze_conditioning": True, "enable_fused_optimizer": False},
            {"optimizer": "AdamW", "dropout calls of gpt": "12 x random bytes"},
        ),
        ({"optimizer": "adafactor", "batch_tokens": 600}, {"optimizer": "Adafactor", "EMA": "off"}),
        ({"offload_optimizer": True, "embedding_warmup_steps": 2}, {"optimizer": "OffloadedAdamW (fused)"}),
    ],
    ids=" ".join,
)
def test_a_run_learns_with_its_switches(
    tmp_path: Path, dataset: Path, changes: dict[str, Any], first_batch: dict[str, str]
) -> None:
    run = trained(tmp_path, dataset, **changes)
    reported = {event["name"]: int(str(event["changed"])) for event in events(run, "optimization")}
    assert all(reported[name] > 0 for name in changes.keys() & MUST_CHANGE)
    assert bool(reported["use_amharic_g2p"]) == changes.get("use_amharic_g2p", True)
    assert what_is_on(run).items() >= first_batch.items()
    losses = figures(run, "loss", "evaluation")
    assert losses[-1] < losses[0]
    state = checkpoints.read_state(checkpoints.find(run.folder, "newest").folder)
    assert {"gpt.h.0.attn.c_attn.weight", "mel_head.weight"} <= state.keys()


@pytest.mark.parametrize(("seconds", "autocast"), [(0.2, "bfloat16"), (0.31, "off")])
def test_a_processor_with_bf16_uses_it_where_it_was_measured_to_be_faster(
    seconds: float, autocast: str, tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "precision.json"
    monkeypatch.setattr(paths, "PRECISIONS", path)
    monkeypatch.setattr(device, "processor_flags", lambda: frozenset({"avx512_bf16"}))
    size = ModelSize.from_folder(Path(random_base()))
    measured = Measurement({"fp32": 0.3, "bf16": seconds}, {}, "2026-11-29")
    assert measurement(path, precision.key(size), lambda: measured) == measured
    used = what_is_on(trained(tmp_path, dataset, enable_mixed_precision=True, max_steps=1))
    assert (used["autocast"], used["gradient scaler"]) == (autocast, "off")


def test_a_layer_is_timed_in_both_formats() -> None:
    assert set(precision.measure_layer(ModelSize(1, 64, 2, text_rows=100)).gpt) == {"fp32", "bf16"}


@pytest.mark.long
def test_compiled_layers_learn_the_same_with_few_graphs(tmp_path: Path, dataset: Path) -> None:
    options = {"dropout": 0, "batch_size": 6, "grad_acumm": 1, "max_steps": 4}
    plain = trained(tmp_path / "plain", dataset, **options)
    torch.compiler.reset()
    counters.clear()
    run = trained(tmp_path / "compiled", dataset, use_compile=True, **options)
    (change,) = [event for event in events(run, "optimization") if event["name"] == "use_compile"]
    assert int(str(change["changed"])) > 0
    for name in ("loss", "grad_norm"):
        assert figures(run, name) == pytest.approx(figures(plain, name), rel=1e-4)
    assert counters["stats"]["unique_graphs"] == 3  # the addition that looks for a compiler, and two lengths


def test_an_adapter_is_saved_by_itself_too(tmp_path: Path, dataset: Path) -> None:
    run = trained(tmp_path, dataset, enable_lora=True, lora_rank=4, max_steps=2)
    folder = checkpoints.find(run.folder, "newest").folder
    gpt = model.load_gpt(random_model.build(tmp_path / "tiny"), Tokenizer.load(folder))
    add_lora(gpt, 4, 32.0)
    load_adapter(gpt, read_tensors(folder / checkpoints.ADAPTER))
    whole = checkpoints.read_state(folder, torch.float32)
    for name, part in merged_state(gpt).items():
        torch.testing.assert_close(part, whole[name], rtol=2e-3, atol=1e-4)


def test_a_tracker_gets_the_metrics(tmp_path: Path, dataset: Path) -> None:
    run = trained(tmp_path, dataset, tracker="tensorboard", max_steps=2)
    assert list(run.folder.rglob("events.out.tfevents*"))


def test_a_run_goes_on_without_its_tracker(tmp_path: Path, dataset: Path) -> None:
    run = trained(tmp_path, dataset, tracker="wandb", max_steps=2)
    assert [event["tracker"] for event in events(run, TrackerFailed.kind)] == ["wandb"]
    assert len(events(run, "train")) == 2


def limit_clips(monkeypatch: pytest.MonkeyPatch, maximum: int) -> None:
    """Let a forward pass fail that has more clips than fit."""
    forward = PackedGpt.forward

    def limited(self: PackedGpt, batch: PackedBatch) -> Any:
        if self.training and batch.clips > maximum:
            raise torch.OutOfMemoryError("CUDA out of memory (made up)")
        return forward(self, batch)

    monkeypatch.setattr(PackedGpt, "forward", limited)


def test_memory_that_runs_out_halves_the_batches_until_one_clip_does_not_fit(
    tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = trained(tmp_path / "plain", dataset, dropout=0, batch_size=4, grad_acumm=1)
    limit_clips(monkeypatch, 1)
    short = trained(tmp_path / "short", dataset, dropout=0, batch_size=4, grad_acumm=1)
    assert figures(short, "loss") == pytest.approx(figures(plain, "loss"), rel=1e-5)
    assert [(event["clips"], event["half"]) for event in events(short, BatchesHalved.kind)] == [(4, 2), (2, 1)]
    assert what_is_on(short)["attention calls of conditioning_encoder"] == "6 x flash"  # of the attempt that succeeded
    limit_clips(monkeypatch, 0)
    with pytest.raises(ClipsDoNotFitError):
        trained(tmp_path / "none", dataset)


def make_losses_nan(monkeypatch: pytest.MonkeyPatch, updates: Iterable[int], attempts: int) -> None:
    """Let the loss of the first attempts at these updates be no number."""
    gradients, left = TrainStep._gradients, dict.fromkeys(updates, attempts)

    def poisoned(self: TrainStep, update: Update) -> Any:
        left[update.number] = left.get(update.number, 0) - 1
        return gradients(self, update) * (float("nan") if left[update.number] >= 0 else 1.0)

    monkeypatch.setattr(TrainStep, "_gradients", poisoned)


@pytest.mark.parametrize(("numbers", "skipped", "rolled_back"), [({3}, 1, 0), ({3, 4, 5}, 2, 1)])
def test_updates_that_are_not_finite_are_left_out(
    tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch, numbers: set[int], skipped: int, rolled_back: int
) -> None:
    make_losses_nan(monkeypatch, numbers, attempts=1)
    run = trained(tmp_path, dataset, max_steps=8)
    names = [str(event["clips"]) for event in events(run, UpdateSkipped.kind)]
    assert ["wavs/train" in name for name in names] == [True] * skipped
    assert len(events(run, RolledBack.kind)) == rolled_back
    assert all(bool(torch.isfinite(part).all()) for part in weights(run).values())
    assert events(run, "train")[-1]["step"] == 8


def test_a_run_that_is_never_finite_ends_with_its_cause(
    tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_losses_nan(monkeypatch, range(2, 100), attempts=100)
    with pytest.raises(NotFiniteError):
        trained(tmp_path, dataset, max_steps=50, save_step=1)


def test_a_run_that_gets_no_better_ends_early(tmp_path: Path, dataset: Path) -> None:
    run = trained(tmp_path, dataset, learning_rate=1e-2, max_steps=60, early_stopping_patience=2, eval_step=2)
    assert len(events(run, "train")) < 60


def test_a_second_run_goes_on_from_the_voice_of_the_first(tmp_path: Path, dataset: Path) -> None:
    first = trained(tmp_path, dataset, max_steps=4)
    ready = Project(tmp_path).ready
    assert (ready / "model.pth").is_file()
    second = trained(tmp_path, dataset, max_steps=1, custom_model=str(ready))
    before, after = figures(first, "loss", "evaluation")[-1], figures(second, "loss", "evaluation")[0]
    assert after == pytest.approx(before, rel=0.01)
