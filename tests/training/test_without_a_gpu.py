"""What matters on a GPU, shown on a processor: full memory, the state of the optimizer, loss scaling, generators."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from accelerate.optimizer import AcceleratedOptimizer
from torch import nn
from torch.amp.grad_scaler import GradScaler
from torch.optim import AdamW, Optimizer

from tests.fake_gpus import FakeGpu
from utils.config import TrainConfig
from utils.training import step
from utils.training.errors import ClipsDoNotFitError, StateDoesNotFitError
from utils.training.gpu_test import SIZES
from utils.training.model_size import ClipSize, random_batch
from utils.training.optimizers import ADAMW, allocate_state
from utils.training.probe import Probe, probe
from utils.training.resume_state import capture_rng, restore_rng
from utils.training.speedups.adamw import OffloadedAdamW
from utils.training.step import TrainStep, unwrap_optimizer
from utils.training.update_checks import REFERENCE, updates
from utils.xtts.device import GPUS

CPU = torch.device("cpu")
CLIP = ClipSize(32 + 21 + 64, frames=100, text=21, audio=64)
CUBLAS = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"


@pytest.fixture
def probed() -> Iterator[Probe]:
    with probe(TrainConfig.load(REFERENCE), SIZES[0], CPU) as opened:
        yield opened


@pytest.mark.parametrize(
    ("message", "halves"),
    [(CUBLAS, True), ("MPS backend out of memory (MPS allocated: 9 GiB)", True), ("device-side assert", False)],
)
def test_memory_that_runs_out_in_a_library_halves_the_batch(probed: Probe, message: str, halves: bool) -> None:
    failures = [message]

    def fail(*_: object) -> None:
        if failures:
            raise RuntimeError(failures.pop())

    probed.step.model.register_forward_pre_hook(fail)
    batch = random_batch(probed.tokens, CLIP, 4)
    if halves:
        probed.run([batch], 2)
        assert probed.step.micro.splits == 1
    else:
        with pytest.raises(RuntimeError, match=message):
            probed.run([batch], 1)


def test_memory_that_runs_out_in_the_optimizer_ends_the_run_with_advice(
    probed: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(CUBLAS)

    monkeypatch.setattr(probed.step.optimizer, "step", fail)
    with pytest.raises(StateDoesNotFitError):
        probed.run([random_batch(probed.tokens, CLIP, 2)], 1)
    with pytest.raises(ClipsDoNotFitError):  # a search for a batch size goes on with fewer clips
        probed.measure(CLIP, 2)


def test_moments_that_do_not_fit_leave_the_optimizer_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(CUBLAS)

    model = nn.Linear(3, 2)
    optimizer = AdamW(model.parameters(), lr=0.1)
    monkeypatch.setattr(optimizer, "step", fail)
    with pytest.raises(RuntimeError, match="CUBLAS"):
        allocate_state(optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert {weight.grad for weight in model.parameters()} == {None}


@pytest.mark.parametrize("kind", [AdamW, OffloadedAdamW])
def test_early_moments_change_no_number(kind: Any) -> None:
    torch.manual_seed(0)
    models = [nn.Linear(3, 2)]
    models.append(copy.deepcopy(models[0]))
    optimizers: list[Optimizer] = [
        kind(model.parameters(), fused=False, lr=0.1, weight_decay=0.1, **ADAMW) for model in models
    ]
    allocate_state(optimizers[1])
    assert {len(state) for state in optimizers[1].state.values()} == {3}
    assert torch.equal(models[0].weight, models[1].weight)
    for _ in range(3):
        for model, optimizer in zip(models, optimizers, strict=True):
            model(torch.ones(4, 3)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert torch.equal(models[0].weight, models[1].weight)
    assert torch.equal(models[0].bias, models[1].bias)


@pytest.fixture
def scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scale losses as fp16 does, on the processor."""
    create = TrainStep.__post_init__

    def with_scaler(step: TrainStep) -> None:
        create(step)
        accelerator = step.ranks.accelerator
        accelerator.scaler, accelerator.native_amp = GradScaler("cpu", init_scale=2.0**10), True
        accelerator.state._mixed_precision = "fp16"
        step.optimizer = AcceleratedOptimizer(unwrap_optimizer(step.optimizer), scaler=accelerator.scaler)
        accelerator._optimizers = [step.optimizer]

    monkeypatch.setattr(TrainStep, "__post_init__", with_scaler)


@pytest.mark.usefixtures("scaled")
def test_scaled_losses_change_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    found = updates(SIZES[0], CPU, {}).numbers
    monkeypatch.undo()
    assert found == pytest.approx(updates(SIZES[0], CPU, {}).numbers, rel=1e-4)


@pytest.mark.usefixtures("scaled")
def test_the_scaler_goes_on_after_an_update_that_did_not_fit(probed: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_memory(_gradients: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(step, "get_total_norm", fill_memory)  # the gradients are unscaled by then
        with pytest.raises(ClipsDoNotFitError):
            probed.measure(CLIP, 2)
    assert probed.measure(CLIP, 1).peak


@pytest.mark.parametrize("kind", GPUS)
def test_the_generator_of_a_gpu_is_restored(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = FakeGpu(monkeypatch, kind).generator
    state = capture_rng()
    drawn = torch.rand(3, generator=generator)
    restore_rng(state)
    assert torch.equal(torch.rand(3, generator=generator), drawn)


@pytest.mark.usefixtures("scaled")
def test_a_step_that_leaves_the_scaler_out_is_found(probed: Probe) -> None:
    probed.step.optimizer = unwrap_optimizer(probed.step.optimizer)
    with pytest.raises(RuntimeError, match="unscale_"):
        probed.run([random_batch(probed.tokens, CLIP, 2)], 2)
