"""The memory estimate: what it counts on the real modules, and how it splits a batch."""

import mmap
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

from utils.config import TrainConfig
from utils.training import memory
from utils.training.errors import PlanDoesNotFitError
from utils.training.memory import GIB, Device
from utils.training.memory_trace import trace_update
from utils.training.model_size import ClipSize, ModelSize, random_batch, random_gpt
from utils.training.packing import PackedBatch, PackedGpt, SpecialTokens
from utils.training.probe import peak_memory, probe
from utils.training.speedups.dropout import set_dropout
from utils.training_optimizations import TrainingOptimizer


def gpu_for(**settings: Any) -> Device:
    """A GPU on which an update of the small model with these settings just fits."""
    return Device("cuda", memory.estimate(TrainConfig(**settings), GPU, SMALL).needed, "", half=True)


pytestmark = pytest.mark.slow

GPU = Device.gpu(16)
SMALL = ModelSize(layers=2, dim=64, heads=4, text_rows=100)
CLIP = ClipSize(32 + 21 + 64, frames=100, text=21, audio=64)


@pytest.mark.parametrize(
    ("settings", "frames"),
    [
        ({}, 516),
        ({"enable_grad_checkpoint": True, "enable_mixed_precision": True}, 516),
        pytest.param({"dropout": 0.1, "enable_sdpa": False}, 516, marks=pytest.mark.long),
        ({"dropout": 0.1, "enable_byte_dropout": True}, 516),
    ],
    ids=str,
)
def test_the_peak_of_a_step_is_what_torch_tracks(settings: dict[str, Any], frames: int) -> None:
    plain = {"enable_mixed_precision": False, "enable_ema": False, "dropout": 0, "enable_byte_dropout": False}
    config = TrainConfig.parse(plain | {"batch_size": 3, "grad_acumm": 1} | settings)
    size = ModelSize(layers=4, dim=256, heads=4, text_rows=300)
    clip = replace(ClipSize.from_config(config), frames=frames)
    parts = trace_update(config, size, clip, on_gpu=False, half=config.enable_mixed_precision)
    with torch.device("meta"):
        gpt = random_gpt(size)
        set_dropout(gpt, config.dropout)
        TrainingOptimizer(config, "cpu").apply(gpt)
    batch = random_batch(SpecialTokens.from_model(gpt), clip, 3)
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = PackedGpt(gpt.to_empty(device="cpu")).train()
        batch = replace(batch, mel=torch.empty_like(batch.mel), numbers=torch.empty_like(batch.numbers))
        tracker = MemTracker()
        tracker.track_external(model)
        with tracker:
            with torch.autocast("cpu", torch.bfloat16, enabled=config.enable_mixed_precision):
                sums = model(batch)
            (sums.text + sums.audio).backward()
    tracked = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]
    assert 0.95 < (parts["weights"] + parts["gradients"] + parts["activations"]) / tracked < 1.15


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"batch_size": 4, "enable_ema": True},
            {"weights": 1.643, "gradients": 1.643, "optimizer": 3.286, "ema": 1.643, "activations": 3.2},
        ),
        (
            {"batch_size": 4, "enable_grad_checkpoint": True, "optimizer": "adamw_8bit"},
            {"optimizer": 0.88, "activations": 1.1},
        ),
        (
            {"batch_size": 4, "enable_sdpa": False, "enable_ema": True, "ema_device": "cpu"},
            {"ema": 0.0, "activations": 6.8},
        ),
        ({"optimizer": "adafactor"}, {"optimizer": 0.1}),
        ({"offload_optimizer": True}, {"optimizer": 0.0}),
        ({"enable_lora": True}, {"optimizer": 0.16}),
    ],
    ids=str,
)
def test_each_setting_changes_its_part_at_full_size(settings: dict[str, Any], expected: dict[str, float]) -> None:
    parts = memory.estimate(TrainConfig.parse(settings), GPU).parts
    assert {part: parts[part] / GIB for part in expected} == pytest.approx(expected, rel=0.1, abs=0.03)


def test_where_nothing_fits_the_setting_that_helps_is_named() -> None:
    config = TrainConfig(enable_sdpa=False, batch_size=1, grad_acumm=1)
    needed = memory.estimate(config, GPU, SMALL).needed
    with pytest.raises(PlanDoesNotFitError) as caught:
        memory.fit_batch(config, Device("cuda", needed - 2**20, "", half=True), SMALL)
    (remedy,) = caught.value.remedies
    assert remedy.startswith("enable_sdpa")


def test_a_part_of_a_split_batch_is_measured_beside_the_gradients_of_the_others() -> None:
    seen: list[bool] = []
    with probe(TrainConfig(batch_size=1, grad_acumm=2), SMALL, torch.device("cpu")) as probed:
        gpt = probed.step.packed.gpt
        probed.step.model.register_forward_pre_hook(lambda *_: seen.append(gpt.mel_head.weight.grad is not None))
        probed.measure(CLIP, 1)
        assert seen == [False, True] * 2
        seen.clear()
        assert probed.largest_batch(CLIP, 2, 2**40) == 2  # all of it at once
        assert seen == [False] * 2


def test_a_batch_that_does_not_fit_is_a_tenth_smaller_the_next_time() -> None:
    tried: list[int] = []

    def refuse(_model: object, batches: tuple[PackedBatch]) -> None:
        tried.append(batches[0].clips)
        if batches[0].clips > 2:
            raise torch.OutOfMemoryError

    with probe(TrainConfig(batch_size=2, grad_acumm=1), SMALL, torch.device("cpu")) as probed:
        probed.step.model.register_forward_pre_hook(refuse)
        assert probed.largest_batch(CLIP, 4, 2**40) == 2
    assert tried == [4, 3, 2, 2]


def test_a_peak_between_two_samples_is_seen() -> None:
    with peak_memory(torch.device("cpu")) as before:
        pass
    with peak_memory(torch.device("cpu")) as peak:
        block = mmap.mmap(-1, 2**28)  # new to the process, unlike what malloc may take from freed memory
        np.frombuffer(block, np.uint8)[:] = 1
        block.close()
    assert peak[0] > before[0] + 2**27


@pytest.mark.parametrize(
    ("name", "size", "grad_acumm", "fitting", "split_size", "split_grad_acumm"),
    [
        pytest.param("batch_size", 3, 5, 15, 15, 1, marks=pytest.mark.long),
        ("batch_size", 3, 5, 7, 5, 3),
        pytest.param("batch_tokens", 4000, 2, 2500, 2000, 4, marks=pytest.mark.long),
    ],
)
def test_the_same_effective_batch_is_split(
    name: str, size: int, grad_acumm: int, fitting: int, split_size: int, split_grad_acumm: int
) -> None:
    config = TrainConfig.parse({name: size, "grad_acumm": grad_acumm})
    fitted, _ = memory.fit_batch(config, gpu_for(**{name: fitting, "grad_acumm": 2}), SMALL)
    assert fitted == memory.changed(config, {name: split_size, "grad_acumm": split_grad_acumm})
