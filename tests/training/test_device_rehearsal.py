"""The training step on a device that is not there: no mixed devices, no float64, and at most one wait per update."""

import sys
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch.optim import Adam

from tests.rehearsal import Recorder
from tests.training.small_gpt import small_gpt
from utils.config import TrainConfig
from utils.studio.paths import CONFIGS
from utils.training.data_loader import Update
from utils.training.distribution import Ranks
from utils.training.ema import Ema
from utils.training.model_size import ClipSize, random_batch
from utils.training.optimizers import make_optimizer, make_schedule
from utils.training.packing import PackedGpt, SpecialTokens
from utils.training.speedups.dropout import set_dropout
from utils.training.step import Evaluator, TrainStep
from utils.training_optimizations import TrainingOptimizer

pytestmark = pytest.mark.slow

META = torch.device("meta")
CLIP = ClipSize(32 + 21 + 64, frames=100, text=21, audio=64)
IN_CI = {"standard", "lora_6gb", "extreme_memory_optimized"}  # make check takes all
WAIT = {"step.TrainStep.run: copy to the host": 1}  # of an update: its losses and the norm of its gradient
NOT_HERE = {"enable_mixed_precision": False, "use_compile": False, "enable_byte_dropout": False}


class Event:
    """Stands in for a CUDA event; the offloaded optimizer waits for one per weight, on purpose."""

    record = synchronize = lambda _self: None


STREAMS = types.SimpleNamespace(
    Event=Event,
    Stream=mock.MagicMock,
    current_stream=mock.MagicMock,
    stream=lambda _stream: nullcontext(),
)


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let accelerate and the optimizers take ``meta`` for a GPU."""
    from accelerate import PartialState
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    PartialState(cpu=True).device = META
    monkeypatch.setattr(sys.modules[Adam.__module__], "_device_dtype_check_for_fused", lambda *_, **__: None)
    monkeypatch.setattr(torch, "get_device_module", lambda _device: STREAMS)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


class Rehearsal:
    """A training step of a small model on the device."""

    def __init__(self, settings: dict[str, Any]) -> None:
        from accelerate import Accelerator

        few = min(settings.get("grad_acumm", 2), 3)
        config = TrainConfig.parse({**settings, **NOT_HERE, "batch_size": 2, "batch_tokens": 0, "grad_acumm": few})
        with META:
            gpt = small_gpt()
            set_dropout(gpt, config.dropout)
            TrainingOptimizer(config, META).apply(gpt)
        ranks, model = Ranks(Accelerator(cpu=True)), PackedGpt(gpt, config.label_smoothing)
        optimizer, _ = make_optimizer(model, config, META)
        schedule = make_schedule(optimizer, config.lr_scheduler, 10, 2, 0.5)
        self.recorder = Recorder("meta")
        with self.recorder:
            self.ema = Ema(gpt, config.ema_decay, config.ema_device) if config.enable_ema else None
        wrapped, self.optimizer = ranks.accelerator.prepare(model, optimizer)
        self.step = TrainStep(config, ranks, wrapped, self.optimizer, schedule, self.ema, lambda _message: None)
        self.batches = [random_batch(SpecialTokens.from_model(gpt), CLIP, 2)] * config.grad_acumm
        self.evaluator = Evaluator(wrapped, lambda: self.batches, ranks, config.text_loss_weight, self.ema)

    def waits(self) -> Counter[str]:
        """Return where the second update waits; the first creates the optimizer's state."""
        texts, codes = (sum(getattr(batch, name) for batch in self.batches) for name in ("text_count", "audio_count"))
        with self.recorder:
            for number in range(2):
                self.recorder.clear()
                self.step.run(Update(self.batches, texts, codes, 2 * len(self.batches), number))
        return self.recorder.waits


def preset(path: Path) -> dict[str, Any]:
    settings = TrainConfig.load(path).model_dump()
    frozen = min(settings["freeze_first_n_gpt_layers"], 1)  # of two layers
    optimizer = settings["optimizer"].replace("_8bit", "")  # AdamW stands in for 8-bit AdamW
    return {**settings, "freeze_first_n_gpt_layers": frozen, "optimizer": optimizer}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in IN_CI else pytest.mark.long)
        for path in sorted(CONFIGS.glob("*.yaml"))
    ],
)
def test_an_update_of_each_preset_waits_once(path: Path) -> None:
    rehearsal = Rehearsal(preset(path))
    offloaded = rehearsal.step.config.enable_ema and rehearsal.step.config.ema_device == "cpu"
    waits = rehearsal.waits()
    if offloaded:  # the average in RAM is updated weight by weight
        waits = Counter(
            {where: count for where, count in waits.items() if not where.startswith(("ema.", "device.to_host"))}
        )
    assert waits == WAIT


@pytest.mark.parametrize(
    "settings",
    [
        {"enable_sdpa": False},
        {"enable_lora": True, "use_dora": True},
        {"enable_grad_checkpoint": True, "checkpoint_every": 2, "grad_acumm": 3},
        {"enable_ema": True, "gradient_clip": 0.5},
        {"embedding_warmup_steps": 5},
        {"freeze_first_n_gpt_layers": 1, "label_smoothing": 0.1},
        {"offload_optimizer": True},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_an_update_with_each_switch_waits_once(settings: dict[str, Any]) -> None:
    assert Rehearsal(settings).waits() == WAIT


def test_an_evaluation_waits_once_for_the_result() -> None:
    rehearsal = Rehearsal({"enable_ema": True, "grad_acumm": 3})
    with rehearsal.recorder:
        rehearsal.evaluator.evaluate()
    copies = rehearsal.recorder.waits.pop("packing.PackedBatch.to.<locals>.<genexpr>: copy to the device")
    assert copies == 2 * 2 * 3  # two tensors of each batch, for the weights and their average
    assert rehearsal.recorder.waits == {"step.Evaluator.losses: copy to the host": 2}


def test_a_restored_state_is_on_the_device_again() -> None:
    rehearsal = Rehearsal({"enable_ema": True})
    rehearsal.waits()
    state = rehearsal.optimizer.state_dict()
    host = {
        number: {name: torch.zeros(part.shape) for name, part in parts.items()}
        for number, parts in state["state"].items()
    }
    assert rehearsal.ema is not None
    average = {name: torch.zeros(part.shape) for name, part in rehearsal.ema.state_dict().items()}
    rehearsal.optimizer.load_state_dict({**state, "state": host})
    with rehearsal.recorder:
        rehearsal.ema.load_state_dict(average)
    assert rehearsal.waits() == WAIT
