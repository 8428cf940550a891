"""Readings of the machine, with a small stand-in for the NVIDIA driver."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from utils.core import monitor
from utils.core.monitor import GIB, GpuMonitor, read, read_once


class RefusedError(Exception):
    """What the stand-in raises where NVML would raise NVMLError."""


ANSWERS: dict[str, Any] = {
    "nvmlInit": None, "nvmlShutdown": None, "nvmlDeviceGetHandleByIndex": "card", "nvmlDeviceGetHandleByUUID": "card",
    "nvmlDeviceGetName": "Test card", "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=2 * GIB, total=8 * GIB),
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=40, memory=10),
}  # fmt: skip
FIELDS = {
    "gpu_name": ("nvmlDeviceGetName", "Test card"),
    "gpu_memory_used_gib": ("nvmlDeviceGetMemoryInfo", 2.0),
    "gpu_memory_total_gib": ("nvmlDeviceGetMemoryInfo", 8.0),
    "gpu_percent": ("nvmlDeviceGetUtilizationRates", 40.0),
}


class FakeNvml:
    """One 8 GiB card, which refuses some functions as a MIG slice or a missing permission does."""

    NVMLError = RefusedError

    def __init__(self, *refused: str, **answers: object) -> None:
        self.refused, self.answers = refused, ANSWERS | answers
        self.calls: list[tuple[object, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: object) -> Any:
            self.calls.append((name, *arguments))
            if name in self.refused:
                raise RefusedError(name)
            return self.answers[name]

        return call


@pytest.fixture(autouse=True)
def all_cards_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize("refused", ["", "nvmlInit", *sorted({function for function, _ in FIELDS.values()})])
def test_only_what_the_driver_refuses_is_missing(refused: str, tmp_path: Path) -> None:
    assert not refused or callable(getattr(pynvml, refused))
    reading = read(GpuMonitor(FakeNvml(refused)), tmp_path)
    expected = {
        name: None if refused in (function, "nvmlInit") else value for name, (function, value) in FIELDS.items()
    }
    assert {name: getattr(reading, name) for name in FIELDS} == expected
    assert 0 < reading.ram_used_gib < reading.ram_total_gib
    assert (reading.disk_free_gib or 0) > 0


@pytest.mark.parametrize(
    ("visible", "handle"),
    [
        ("1", ("nvmlDeviceGetHandleByIndex", 1)), ("", None), ("GPU-1234,0", ("nvmlDeviceGetHandleByUUID", "GPU-1234")),
    ],
)  # fmt: skip
def test_the_card_that_cuda_would_use_is_read(
    visible: str, handle: tuple[str, object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    nvml = FakeNvml()
    assert (GpuMonitor(nvml).percent() is None) == (handle is None)
    assert nvml.calls[1:2] == ([handle] if handle else [])


def test_without_nvidia_ml_py_or_the_folder_nothing_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # makes `import pynvml` raise ImportError
    reading = read_once(tmp_path / "nowhere")
    assert (reading.gpu_name, reading.disk_free_gib) == (None, None)


def test_the_memory_of_child_processes_is_counted() -> None:
    before = read_once().process_ram_gib
    waste = "import sys; held = bytearray(100 * 2**20); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", waste], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        after = read_once().process_ram_gib
        child.communicate(b"")
    assert before is not None
    assert after is not None
    assert after - before > 0.09


def test_an_idle_gpu_is_reported_once() -> None:
    warnings: list[object] = []
    nvml = FakeNvml(nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=12))
    with monitor.watch_gpu(warnings.append, seconds=0.001, readings=3, nvml=nvml):
        while not warnings:
            time.sleep(0.001)
    (use,) = warnings[1:]
    assert warnings[0] == monitor.GpuIdle(12.0)
    assert isinstance(use, monitor.GpuUse)
    assert (use.percent, use.readings >= 3) == (12.0, True)
    assert nvml.calls[-1] == ("nvmlShutdown",)


@pytest.mark.parametrize(("load", "seconds", "refused"), [(90, 0.001, ""), (1, 60, ""), (1, 0.001, "nvmlInit")])
def test_a_busy_gpu_no_gpu_and_a_short_run_are_not_reported(load: int, seconds: float, refused: str) -> None:
    warnings: list[object] = []
    nvml = FakeNvml(refused, nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=load))
    with monitor.watch_gpu(warnings.append, seconds=seconds, readings=2, nvml=nvml):
        time.sleep(0.05)
    assert not [fact for fact in warnings if isinstance(fact, monitor.GpuIdle)]
