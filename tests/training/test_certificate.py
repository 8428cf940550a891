"""The certificate of a GPU, with the CPU as the device under test: what works passes, and planted faults are found."""

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from tests.fake_gpus import FakeGpu
from tests.random_base import random_base
from tests.training.certificates import write_certificate
from tests.training.running import events, settings, trained
from utils import gpt_train
from utils.cli import doctor
from utils.config import TrainConfig
from utils.core.facts import Fact, never_stop
from utils.core.paths import TINY_MODEL
from utils.speech import steps
from utils.speech.sampling import choose
from utils.speech.synthesizer import Caches, open_voice
from utils.studio import paths
from utils.studio.facts import UsageError
from utils.training import gpu_test, update_checks
from utils.training.ema import Ema
from utils.training.facts import SettingReplaced
from utils.training.gpu_test import WORKERS, full_name, run_name, safe_config
from utils.training.health import MicroBatches
from utils.training.packing import PackedBatch
from utils.training.speech_checks import LENGTHS
from utils.training.speedups import blocks
from utils.training.update_checks import difference
from utils.xtts import certificate as stored
from utils.xtts.certificate import DECODING, GPT, THREADS, VOCODING, Certificate, Check
from utils.xtts.device import GPUS
from utils.xtts.facts import KernelsUntested

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def path(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(gpu_test, "SIZES", gpu_test.SIZES[:1])  # without the wide layer
    return certificate


def failed(name: str, monkeypatch: pytest.MonkeyPatch, config: TrainConfig | None = None) -> str:
    """Run the check of this name on a small model, and return what it found if it failed."""
    check = gpu_test.checks(CPU, config)[name]
    monkeypatch.setattr(gpu_test, "checks", lambda *_: {name: check})
    (found,) = gpu_test.run(CPU, paths.GPU_CERTIFICATE).checks
    return "" if found.passed else found.detail


def test_everything_passes_on_a_cpu(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run(argparse.Namespace(gpu="cpu", file=None, json=True)) == 0
    names = {finding["name"] for finding in json.loads(capsys.readouterr().out)}
    assert {"fused attention", "mixed precision", "fused AdamW", DECODING, THREADS, WORKERS.name} <= names
    assert "checks passed" in path.with_suffix(".md").read_text(encoding="utf-8")
    found = stored.read(CPU, path)
    assert found is not None
    assert all(check.passed for check in found.checks)


def plant_noisy_attention(patch: pytest.MonkeyPatch) -> None:
    numbers = torch.Generator().manual_seed(0)

    def noise(query: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
        return torch.randn(query.shape, generator=numbers).to(query)

    patch.setattr(F, "scaled_dot_product_attention", noise)


def plant_stale_graph(patch: pytest.MonkeyPatch) -> None:
    """The graph reads the codes that it was captured with, forever."""

    def captured(compute: Callable[[], Any], state: Any, _pool: object) -> Callable[[], Any]:
        codes = state[0][:, 0]
        stale = codes.clone()

        def replay() -> Any:
            codes.copy_(stale)
            return compute()

        return replay

    patch.setattr(steps, "capture", captured)


def plant_lost_clips(patch: pytest.MonkeyPatch) -> None:
    halves = MicroBatches.split
    patch.setattr(MicroBatches, "split", lambda self, batches: halves(self, batches)[: -1 if self.splits else None])


def plant_an_average_that_changes_the_weights(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ema, "update", lambda self: [weight.data.mul_(0.9) for weight in self.weights.values()])


def plant_another_dropout_in_the_backward_pass(patch: pytest.MonkeyPatch) -> None:
    """Gradient checkpointing computes a layer again, with new random numbers."""
    patch.setattr(blocks, "checkpoint", partial(checkpoint, preserve_rng_state=False))


def plant_a_generator_that_is_not_restored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(update_checks, "restore_rng", lambda _states: None)


def plant_rows_of_many_callers_that_mix(patch: pytest.MonkeyPatch) -> None:
    """Each row gets the code of another one while several callers speak."""
    one_caller = len(LENGTHS)

    def mixed(scores: Any, *others: Any) -> Any:
        return choose(scores.roll(1, 0) if len(scores) > one_caller else scores, *others)

    patch.setattr(steps, "choose", mixed)


BUFFER = torch.empty(10**6, dtype=torch.float16)


def rebuilt_in_one_place(mel: Any, numbers: Any, rows: Any, length: int) -> PackedBatch:
    place = BUFFER[: mel.size].view(mel.shape).copy_(torch.from_numpy(mel))
    return PackedBatch(place, torch.from_numpy(numbers), rows, length)


def plant_batches_that_overwrite_each_other(patch: pytest.MonkeyPatch) -> None:
    """What arrives from a worker is written over the batch before, which may still be on its way to the device."""

    def reduced(batch: PackedBatch) -> Any:
        return rebuilt_in_one_place, (batch.mel.numpy(), batch.numbers.numpy(), batch.rows, batch.length)

    patch.setattr(PackedBatch, "__reduce__", reduced)


@pytest.mark.parametrize(
    ("plant", "name"),
    [
        (plant_rows_of_many_callers_that_mix, THREADS),
        (plant_batches_that_overwrite_each_other, WORKERS.name),
        (plant_a_generator_that_is_not_restored, "resuming"),
        (plant_noisy_attention, "fused attention"),
        (plant_noisy_attention, GPT),
        (plant_stale_graph, DECODING),
        (plant_lost_clips, "recovery from a full memory"),
        (plant_an_average_that_changes_the_weights, "averaged weights"),
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert " differ" in f" {failed(name, monkeypatch)}"  # not an error of something else


@pytest.mark.parametrize("plant", [plant_noisy_attention, plant_another_dropout_in_the_backward_pass])
def test_a_planted_fault_of_the_settings_of_a_run_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainConfig(enable_grad_checkpoint=True)
    assert not failed(run_name(config), monkeypatch, config)
    paths.GPU_CERTIFICATE.unlink()
    plant(monkeypatch)
    assert failed(run_name(config), monkeypatch, config).startswith("differs by ")


def test_a_fault_that_only_deep_models_have_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def attention(module: Any, *given: Any, **named: Any) -> Any:
        attended, nothing = sdpa_attention_forward(module, *given, **named)
        return torch.randn_like(attended) if module.layer_idx >= 2 else attended, nothing

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "sdpa", attention)
    config = TrainConfig(custom_model=random_base(), enable_mixed_precision=False)
    checks = gpu_test.checks(CPU, config)
    assert checks[run_name(config)](run_name(config)).passed
    found = checks[full_name(config)](full_name(config))
    assert (found.passed, found.detail.startswith("differs by ")) == (False, True)


def test_all_layers_are_not_tested_where_they_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_memory(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    config = TrainConfig(custom_model=random_base())
    monkeypatch.setattr(update_checks, "updates", fill_memory)
    found = gpu_test.checks(CPU, config)[full_name(config)]("")
    assert (found.passed, found.detail) == (True, "not tested: the memory is full")


@pytest.mark.parametrize("values", [{"freeze_first_n_gpt_layers": 5}, {"optimizer": "adamw_8bit"}])
def test_settings_that_the_small_model_or_a_cpu_cannot_have_do_not_fail(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainConfig(**values)
    assert not failed(run_name(config), monkeypatch, config)


def test_the_doctor_does_not_count_what_failed_with_other_settings(capsys: pytest.CaptureFixture[str]) -> None:
    config = TrainConfig.load(update_checks.REFERENCE)
    other = "run with other settings"
    write_certificate(paths.GPU_CERTIFICATE, (*gpu_test.checks(CPU, config), other), {other})
    assert doctor.run(argparse.Namespace(gpu="cpu", file=update_checks.REFERENCE, json=True)) == 0
    assert other not in capsys.readouterr().out


def test_the_doctor_refuses_settings_without_a_device_to_test() -> None:
    with pytest.raises(UsageError, match="--config"):
        doctor.run(argparse.Namespace(gpu=None, file=update_checks.REFERENCE, json=True))


def test_numbers_that_are_not_finite_never_pass() -> None:
    assert difference([1.0, float("nan")], [1.0, 2.0]) == float("inf")
    assert difference([1.0, 2.2], [1.0, 2.0]) == pytest.approx(0.1)


def test_a_stop_loses_nothing_that_was_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_name: str) -> Check:
        raise KeyboardInterrupt

    def assert_first_alone() -> None:
        with pytest.raises(KeyboardInterrupt):
            gpu_test.run(CPU, path)
        found = stored.read(CPU, path)
        assert found is not None
        assert (found.checks, found.is_complete) == ((first,), False)

    first = Check("first", passed=True, detail="differs by 0")
    monkeypatch.setattr(gpu_test, "checks", lambda *_: {"first": lambda _name: first, "second": stop})
    assert_first_alone()
    assert_first_alone()
    write("first", "second", "of another run")
    assert_first_alone()
    monkeypatch.setattr(gpu_test, "checks", lambda *_: {"first": stop, "second": lambda _name: first})
    assert gpu_test.run(CPU, path, missing_only=True).is_complete


def write(*failing: str) -> None:
    write_certificate(paths.GPU_CERTIFICATE, failing, failing)


def test_a_switch_that_failed_is_replaced() -> None:
    write("mixed precision", "offloaded AdamW")
    config, changes = safe_config(TrainConfig(enable_mixed_precision=True), CPU, paths.GPU_CERTIFICATE)
    assert not config.enable_mixed_precision
    assert [change.used for change in changes] == ["enable_mixed_precision=False"]  # the other one was not wanted
    assert changes[0].reason == "differs by 3.0e+00"


def test_a_run_that_would_not_repeat_itself_does_not_promise_to() -> None:
    write("resuming, deterministic")
    config, changes = safe_config(TrainConfig(deterministic=True), CPU, paths.GPU_CERTIFICATE)
    assert (config.deterministic, changes[0].switch) == (False, "resuming, deterministic")


def test_what_failed_with_all_layers_is_replaced_too() -> None:
    wanted = TrainConfig()
    write(full_name(wanted))
    config, (change,) = safe_config(wanted, CPU, paths.GPU_CERTIFICATE)
    assert (config.enable_sdpa, change.switch) == (False, run_name(wanted))
    assert not safe_config(TrainConfig(custom_model=random_base()), CPU, paths.GPU_CERTIFICATE)[1]  # of another size


@pytest.mark.parametrize(("workers", "changes"), [(-1, 1), (2, 1), (0, 0)])
def test_a_thread_reads_the_clips_where_the_batches_of_workers_failed(workers: int, changes: int) -> None:
    write(WORKERS.name)
    config, replaced = safe_config(TrainConfig(num_workers=workers), CPU, paths.GPU_CERTIFICATE)
    assert (config.num_workers, len(replaced)) == (0, changes)


def test_a_certificate_of_another_machine_or_a_damaged_one_does_not_count(path: Path) -> None:
    write("mixed precision")
    path.write_text(path.read_text().replace("torch 2", "torch 1"))
    assert safe_config(TrainConfig(), CPU, path)[1] == []
    path.write_text("{")
    assert stored.read(CPU, path) is None


def test_a_device_is_tested_again_when_a_check_was_added(path: Path) -> None:
    write(*gpu_test.checks(CPU))
    assert gpu_test.is_tested(CPU, path, TrainConfig())
    write(*list(gpu_test.checks(CPU))[1:])
    assert not gpu_test.is_tested(CPU, path, TrainConfig())


def kernels_reported(project: Path, dataset: Path) -> list[Any]:
    run = trained(project, dataset, max_steps=1)
    assert "flash in float32" in str(events(run, "what_is_on")[-1]["kernels"])
    return [event["kernels"] for event in events(run, KernelsUntested.kind)]


def test_a_run_names_the_kernels_that_no_test_has_passed_with(path: Path, tmp_path: Path, dataset: Path) -> None:
    assert kernels_reported(tmp_path / "first", dataset) == []  # this device was never tested
    seen = Check("fused attention", passed=True, detail="", kernels=("unfused in float32",))
    failed = Check("mixed precision", passed=False, detail="", kernels=("byte dropout in float32",))
    Certificate(stored.machine(CPU), "2026-11-24", (seen, failed)).write(path)
    assert kernels_reported(tmp_path / "second", dataset) == [["byte dropout in float32", "flash in float32"]]


def test_the_cure_of_untested_kernels_tests_them(path: Path, tmp_path: Path, dataset: Path) -> None:
    config = settings(tmp_path / "project", dataset)
    write_certificate(path, gpu_test.checks(CPU, config))
    file = tmp_path / "run.yaml"
    file.write_text(config.to_signed_yaml())
    doctor.run(argparse.Namespace(gpu="cpu", file=file, json=True))
    assert kernels_reported(tmp_path / "project", dataset) == []


def test_speech_names_the_kernels_that_no_test_has_passed_with(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def warnings(name: str) -> list[str]:
        caplog.clear()
        check = gpu_test.checks(CPU)[name](name)
        Certificate(stored.machine(CPU), "2026-11-24", (check,)).write(path)
        open_voice(TINY_MODEL, "cpu", "fp32", caches=Caches(certificate=path))
        return [record.getMessage() for record in caplog.records]

    (warning,) = warnings(VOCODING)
    assert "flash in float32" in warning
    assert warning.endswith("python -m utils doctor --gpu")
    assert warnings(DECODING) == []


def test_a_device_is_tested_for_the_settings_of_each_run(path: Path) -> None:
    write(*gpu_test.checks(CPU))
    assert gpu_test.is_tested(CPU, path, TrainConfig(num_epochs=3, batch_size=2))
    assert not gpu_test.is_tested(CPU, path, TrainConfig(enable_lora=True))


def test_settings_that_fail_only_together_are_replaced_except_what_saves_memory(path: Path) -> None:
    wanted = TrainConfig(enable_lora=True, enable_grad_checkpoint=True, enable_tf32=False)
    write(run_name(wanted))
    config, (change,) = safe_config(wanted, CPU, path)
    assert (config.enable_lora, config.enable_sdpa, config.enable_mixed_precision) == (True, False, False)
    assert config.enable_grad_checkpoint
    assert "enable_tf32" not in change.used  # it was off
    assert change.switch.startswith("run with ")
    assert safe_config(TrainConfig(), CPU, path)[1] == []


@pytest.mark.parametrize("kind", GPUS)
def test_runs_avoid_what_failed_in_the_test_of_the_first(
    kind: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def run_to_end(arguments: list[str], _check: object) -> None:
        started.append(arguments)
        write_certificate(path, gpu_test.checks(torch.device(kind)), {"fused attention"})

    FakeGpu(monkeypatch, kind)
    monkeypatch.setattr(stored, "machine", lambda _device: kind)  # that of NVIDIA's asks the driver
    monkeypatch.setattr(gpt_train, "run_to_end", run_to_end)
    for _ in range(2):
        facts: list[Fact] = []
        config = gpt_train.certified(TrainConfig(), path, facts.append, never_stop)
        assert (config.device, config.enable_sdpa) == ("auto", False)
        assert [fact.switch for fact in facts if isinstance(fact, SettingReplaced)] == ["fused attention"]
    assert started == [["-m", "utils", "doctor", "--gpu", kind, "--config", str(path)]]
