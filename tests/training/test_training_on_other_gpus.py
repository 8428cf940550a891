"""Training on the GPUs of Apple and Intel: rehearsed with tensors on the processor, NOT RUN THERE."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.fake_gpus import MEMORY, FakeGpu, Redirected
from tests.training.certificates import write_certificate
from tests.training.running import figures, same, trained, weights
from utils import gpt_train
from utils.config import TrainConfig
from utils.core.facts import Fact, Optimization, never_stop
from utils.training import gpu_test, launcher, memory
from utils.training.distribution import make_accelerator
from utils.training.errors import TrainingError
from utils.training.facts import SettingReplaced
from utils.training.gpu_test import PLAIN, SIZES, safe_config
from utils.training.metrics import Throughput
from utils.training.optimizations import TrainingOptimizer, optimized_gpt
from utils.training.optimizers import make_optimizer
from utils.training.probe import peak_memory
from utils.training.speedups.adamw import OffloadedAdamW
from utils.training.speedups.blocks import repeated_numbers
from utils.xtts.device import UNTESTED, exact_device, own_device


@pytest.fixture(params=UNTESTED)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    FakeGpu(monkeypatch, request.param).in_every_thread(monkeypatch)
    return str(request.param)


def tested(certificate: Path, kind: str, *failed: str) -> None:
    write_certificate(certificate, gpu_test.checks(torch.device(kind)), failed, kind)


@pytest.mark.slow
def test_auto_trains_there_as_on_a_processor(
    kind: str, certificate: Path, tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def run_to_end(arguments: list[str], _check: object) -> None:
        started.append(arguments)
        tested(certificate, kind)

    monkeypatch.setattr(gpt_train, "run_to_end", run_to_end)
    settings = {"enable_byte_dropout": False, "max_steps": 3, "save_step": 3}  # which is a processor's
    with Redirected(kind) as there:
        run = trained(tmp_path / "there", dataset, **settings)
    assert there.placed
    assert started == [["-m", "utils", "doctor", "--gpu", kind, "--config", str(run.config)]]
    here = trained(tmp_path / "here", dataset, device="cpu", **settings)
    assert figures(run, "loss") == figures(here, "loss")
    assert same(weights(run), weights(here))


@pytest.mark.slow
def test_no_gpu_is_called_idle_while_a_processor_trains(
    tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpt_train, "watch_gpu", lambda _report: pytest.fail("the GPU is watched"))
    trained(tmp_path / "project", dataset, max_steps=1, save_step=1)


def test_accelerate_uses_the_same_gpu(kind: str, tmp_path: Path) -> None:
    for config in (TrainConfig(), TrainConfig(device="cpu"), TrainConfig()):
        accelerator = make_accelerator(config, "no", tmp_path)
        assert accelerator.device.type == own_device(config.device).type
    assert own_device().type == kind


def test_codes_are_computed_where_they_are_exact(kind: str) -> None:
    assert exact_device() == exact_device(kind) == "cpu"


@pytest.mark.parametrize("is_tested", [False, True])
def test_a_gpu_on_which_plain_training_is_not_shown_to_work_is_not_used(
    kind: str, is_tested: bool, certificate: Path
) -> None:
    if is_tested:
        tested(certificate, kind, PLAIN)
    config, changes = safe_config(TrainConfig(), kind, certificate)
    assert config.device == "cpu"
    assert changes == [
        SettingReplaced(PLAIN, "device=cpu", "differs by 3.0e+00" if is_tested else "the test did not end")
    ]


@pytest.mark.usefixtures("kind")
def test_a_run_on_the_processor_needs_no_test(certificate: Path) -> None:
    facts: list[Fact] = []
    config = TrainConfig(device="cpu")
    assert gpt_train.certified(config, certificate, facts.append, never_stop) == config
    assert facts == []


def test_every_switch_says_what_it_does_there(kind: str) -> None:
    config = TrainConfig(deterministic=True, max_memory_fraction=0.5, enable_grad_checkpoint=True)
    changes = {change.name: change for change in optimized_gpt(SIZES[0], config, kind)[1]}
    idle = {name: str(change.detail) for name, change in changes.items() if not change.changed}
    lacking = ("max_memory_fraction", "enable_tf32", "deterministic")
    assert idle.keys() - {"enable_sdpa", "dropout"} == {*lacking, "enable_mixed_precision", "enable_byte_dropout"}
    assert f"half precision on {kind} is not tested here" in idle["enable_mixed_precision"]
    assert all(kind in idle[name] for name in lacking)
    assert changes["enable_grad_checkpoint"].changed
    assert TrainingOptimizer(config).device == own_device()


def test_a_state_in_ram_is_offered_where_the_gpu_has_memory_of_its_own(kind: str) -> None:
    model = nn.Linear(3, 2)
    optimizer, change = make_optimizer(model, TrainConfig(offload_optimizer=True), torch.device(kind))
    assert isinstance(optimizer, OffloadedAdamW) == (kind == "xpu")
    assert isinstance(change, Optimization)
    assert ("AdamW on the CPU" in str(change.detail)) == (kind == "xpu")


@pytest.mark.parametrize("kind", UNTESTED)
def test_moving_to_ram_saves_nothing_where_it_is_the_memory_of_the_gpu(kind: str) -> None:
    device = memory.Device(kind, MEMORY, "", half=False)
    plain = TrainConfig(enable_ema=True)
    moved = memory.changed(plain, {"ema_device": "cpu", "offload_optimizer": True})
    needed = [memory.estimate(config, device, SIZES[0]).needed for config in (plain, moved)]
    assert (needed[0] == needed[1]) == (kind == "mps")


def test_the_memory_is_that_of_the_gpu(kind: str) -> None:
    found = memory.Device.detect(TrainConfig(max_memory_fraction=0.5))
    assert found.kind == kind
    ram = psutil.virtual_memory().total  # which Apple's GPU shares
    assert found.memory <= (ram // 2 if kind == "mps" else MEMORY // 2)
    assert not found.half
    with peak_memory(torch.device(kind)) as peak:
        pass
    assert peak == [(1 if kind == "mps" else 2) << 30]
    assert Throughput(1, device=kind)._peak_memory() == (1 if kind == "mps" else 2)


def test_more_processes_than_gpus_are_refused(kind: str) -> None:
    with pytest.raises(TrainingError, match="1"):
        launcher.launch([], 2, never_stop, kind)


class Dropout(nn.Module):
    """Draws from the generator of the GPU."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator
        self.drawn: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.drawn.append(torch.rand(4, generator=self.generator))
        return x * self.drawn[-1]


@pytest.mark.parametrize("is_repaired", [False, True])
def test_a_layer_that_is_computed_again_has_the_same_dropout(
    is_repaired: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = FakeGpu(monkeypatch, "mps")
    layer, state = Dropout(gpu.generator), torch.mps.get_rng_state()
    repair: dict[str, Any] = {"context_fn": lambda: (nullcontext(), repeated_numbers(state))}
    x = torch.ones(4, requires_grad=True)
    checkpoint(layer, x, use_reentrant=False, **(repair if is_repaired else {})).sum().backward()
    first, second = layer.drawn
    assert torch.equal(first, second) == is_repaired
