"""Readings of the machine, with a small stand-in for the NVIDIA driver."""

import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from utils.runs import monitor
from utils.runs.monitor import GIB, Gpu, read, read_once


class DriverRefusesError(Exception):
    """What the stand-in raises where NVML would raise NVMLError."""


@dataclass
class FakeNvml:
    """One 8 GiB card; the questions in ``refused`` are answered as a MIG slice or a missing permission would be."""

    refused: frozenset[str] = frozenset()
    name: str | bytes = "Test card"
    load: int = 40
    open_count: int = 0
    asked_for: list[int | str] = field(default_factory=list)
    NVMLError = DriverRefusesError

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's own names, here and below
        self._refuse("nvmlInit")
        self.open_count += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open_count -= 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        self.asked_for.append(index)
        if index > 0:
            raise DriverRefusesError
        return "card"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        self.asked_for.append(uuid)
        return "card"

    def nvmlDeviceGetName(self, _: str) -> str | bytes:  # noqa: N802
        self._refuse("nvmlDeviceGetName")
        return self.name

    def nvmlDeviceGetMemoryInfo(self, _: str) -> Any:  # noqa: N802
        self._refuse("nvmlDeviceGetMemoryInfo")
        return SimpleNamespace(used=2 * GIB, total=8 * GIB)

    def nvmlDeviceGetUtilizationRates(self, _: str) -> Any:  # noqa: N802
        self._refuse("nvmlDeviceGetUtilizationRates")
        return SimpleNamespace(gpu=self.load, memory=10)

    def nvmlDeviceGetTemperature(self, _: str, sensor: int) -> int:  # noqa: N802
        self._refuse("nvmlDeviceGetTemperature")
        return 55 + sensor

    def nvmlDeviceGetPowerUsage(self, _: str) -> int:  # noqa: N802
        self._refuse("nvmlDeviceGetPowerUsage")
        return 123_000

    def _refuse(self, question: str) -> None:
        if question in self.refused:
            raise DriverRefusesError(question)


QUESTIONS = {
    "gpu_name": "nvmlDeviceGetName",
    "gpu_memory_used_gib": "nvmlDeviceGetMemoryInfo",
    "gpu_memory_total_gib": "nvmlDeviceGetMemoryInfo",
    "gpu_percent": "nvmlDeviceGetUtilizationRates",
    "gpu_temperature_c": "nvmlDeviceGetTemperature",
    "gpu_power_w": "nvmlDeviceGetPowerUsage",
}
GPU_VALUES = {
    "gpu_name": "Test card",
    "gpu_memory_used_gib": 2.0,
    "gpu_memory_total_gib": 8.0,
    "gpu_percent": 40.0,
    "gpu_temperature_c": 55.0,
    "gpu_power_w": 123.0,
}


@pytest.fixture(autouse=True)
def all_cards_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_the_gpu_is_read_through_the_driver() -> None:
    reading = read(Gpu(FakeNvml()), Path())
    assert {name: getattr(reading, name) for name in GPU_VALUES} == GPU_VALUES


def test_the_driver_module_knows_every_question_we_ask() -> None:
    ours = [*QUESTIONS.values(), "nvmlInit", "nvmlShutdown", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByUUID"]
    assert [name for name in ours if not callable(getattr(pynvml, name, None))] == []
    assert pynvml.NVML_TEMPERATURE_GPU == 0


@pytest.mark.parametrize("refused", sorted(set(QUESTIONS.values())))
def test_a_refused_question_leaves_only_its_own_fields_empty(refused: str) -> None:
    reading = read(Gpu(FakeNvml(frozenset({refused}))), Path())
    expected = {name: None if QUESTIONS[name] == refused else value for name, value in GPU_VALUES.items()}
    assert {name: getattr(reading, name) for name in GPU_VALUES} == expected


def test_an_old_driver_that_answers_in_bytes_is_understood() -> None:
    assert Gpu(FakeNvml(name=b"Old card")).name() == "Old card"


@pytest.mark.parametrize(
    ("visible", "asked"),
    [("0", [0]), ("1", [1]), ("", []), ("-1", []), ("GPU-1234,0", ["GPU-1234"]), ("MIG-77", ["MIG-77"])],
)
def test_the_card_that_cuda_would_use_is_asked(visible: str, asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    nvml = FakeNvml()
    gpu = Gpu(nvml)
    assert nvml.asked_for == asked
    assert (gpu.name() is None) == (not asked or asked == [1])


def test_without_a_driver_the_gpu_fields_are_none_and_the_rest_is_read(tmp_path: Path) -> None:
    reading = read(Gpu(FakeNvml(frozenset({"nvmlInit"}))), tmp_path)
    assert all(getattr(reading, name) is None for name in GPU_VALUES)
    assert 0 < reading.ram_used_gib < reading.ram_total_gib
    assert reading.process_ram_gib is not None
    assert reading.process_ram_gib > 0
    assert reading.disk_free_gib is not None
    assert reading.disk_free_gib > 0


def test_without_nvidia_ml_py_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # makes `import pynvml` raise ImportError
    assert read_once().gpu_name is None


def test_a_missing_folder_has_no_free_space_and_nothing_fails(tmp_path: Path) -> None:
    assert read_once(tmp_path / "nowhere").disk_free_gib is None


@pytest.mark.slow
def test_a_busy_processor_shows_in_a_single_reading() -> None:
    done = threading.Event()
    worker = threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(done.is_set, True)])
    worker.start()
    reading = read_once()
    done.set()
    worker.join()
    assert 0 < reading.cpu_percent <= 100


def test_the_memory_of_child_processes_is_counted() -> None:
    before = read_once().process_ram_gib
    waste = "import sys; kept = bytearray(100 * 2**20); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", waste], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        after = read_once().process_ram_gib
        child.communicate(b"")
    assert before is not None
    assert after is not None
    assert after - before > 0.09


def test_an_idle_gpu_is_reported_once() -> None:
    warnings: list[str] = []
    nvml = FakeNvml(load=12)
    with monitor.idle_gpu_warning(warnings.append, seconds=0.001, readings=3, nvml=nvml):
        while not warnings:
            time.sleep(0.001)
    assert ("12 %" in warnings[0], len(warnings), nvml.open_count) == (True, 1, 0)


@pytest.mark.parametrize("nvml", [FakeNvml(load=90), FakeNvml(frozenset({"nvmlInit"})), FakeNvml(load=1)])
def test_a_busy_gpu_no_gpu_and_a_short_run_are_not_reported(nvml: FakeNvml) -> None:
    warnings: list[str] = []
    long = nvml.load == 1
    with monitor.idle_gpu_warning(warnings.append, seconds=60 if long else 0.001, readings=2, nvml=nvml):
        time.sleep(0.05)
    assert warnings == []
