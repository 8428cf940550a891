"""GPUMonitor and read_once, with a small stand-in for the NVIDIA driver."""

import csv
import json
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
from utils.runs.monitor import GIB, Gpu, GPUMonitor, Range, advise, read, read_once

ROOT = Path(__file__).resolve().parent.parent.parent


class DriverRefusesError(Exception):
    """What the stand-in raises where NVML would raise NVMLError."""


@dataclass
class FakeNvml:
    """One 8 GiB card; the questions in ``refused`` are answered as a MIG slice or a missing permission would be."""

    refused: frozenset[str] = frozenset()
    name: str | bytes = "Test card"
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
        return SimpleNamespace(gpu=40, memory=10)

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


def test_the_summary_covers_every_reading_in_bounded_memory() -> None:
    watch = GPUMonitor(0.002, keep=3, nvml=FakeNvml())
    with watch:
        wait_for(watch, 10)
    report = watch.get_summary_report()
    assert len(watch.history) == 3
    assert report["samples"] >= 10
    assert report["gpu_name"] == "Test card"
    assert report["ranges"]["gpu_percent"] == Range(min=40.0, mean=40.0, max=40.0)
    assert report["seconds"] > 0
    assert report["advice"] == []


def test_the_summary_can_be_written_as_json() -> None:
    with GPUMonitor(0.01, nvml=FakeNvml()) as watch:
        wait_for(watch, 1)
    report = watch.get_summary_report()
    assert json.loads(json.dumps(report)) == report


def test_a_summary_before_the_first_reading_is_empty() -> None:
    assert GPUMonitor().get_summary_report() == {
        "seconds": 0.0,
        "samples": 0,
        "gpu_name": None,
        "ranges": {},
        "advice": [],
    }


def test_without_a_gpu_the_summary_leaves_its_readings_out() -> None:
    with GPUMonitor(0.01, nvml=FakeNvml(frozenset({"nvmlInit"}))) as watch:
        wait_for(watch, 2)
    ranges = watch.get_summary_report()["ranges"]
    assert not any(name.startswith("gpu") for name in ranges)
    assert {"ram_used_gib", "cpu_percent", "disk_free_gib"} <= ranges.keys()


def test_stopping_does_not_wait_for_the_interval_and_gives_the_driver_back() -> None:
    nvml = FakeNvml()
    watch = GPUMonitor(3600, nvml=nvml)
    watch.start_monitoring()
    wait_for(watch, 1)
    began = time.monotonic()
    watch.stop_monitoring()
    assert time.monotonic() - began < 0.5
    assert nvml.open_count == 0
    assert not monitor_threads()


def test_starting_and_stopping_twice_is_harmless_and_starting_again_begins_afresh() -> None:
    watch = GPUMonitor(0.01, nvml=FakeNvml())
    watch.stop_monitoring()
    watch.start_monitoring()
    watch.start_monitoring()
    assert len(monitor_threads()) == 1
    wait_for(watch, 3)
    watch.stop_monitoring()
    watch.stop_monitoring()
    watch.interval = 3600
    with watch:
        wait_for(watch, 1)
    assert watch.get_summary_report()["samples"] == 1


def test_the_thread_does_not_keep_the_program_alive() -> None:
    code = "from utils.runs.monitor import GPUMonitor; GPUMonitor(3600).start_monitoring()"
    assert subprocess.run([sys.executable, "-c", code], timeout=20, check=False, cwd=ROOT).returncode == 0


def test_readings_go_to_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "readings.csv"
    for _ in range(2):
        with GPUMonitor(0.01, csv_path=path, nvml=FakeNvml()) as watch:
            wait_for(watch, 2)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 4
    assert {row["gpu_percent"] for row in rows} == {"40.0"}


def test_a_csv_file_that_cannot_be_written_ends_the_csv_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with GPUMonitor(0.01, csv_path=tmp_path / "no" / "folder.csv", nvml=FakeNvml()) as watch:
        wait_for(watch, 3)
    assert "gets no more readings" in caplog.text
    assert len(caplog.records) == 1


GOOD = {
    "gpu_percent": Range(min=80, mean=90, max=100),
    "gpu_memory_used_gib": Range(min=4, mean=5, max=6),
    "gpu_memory_total_gib": Range(min=8, mean=8, max=8),
    "gpu_temperature_c": Range(min=50, mean=60, max=70),
    "ram_used_gib": Range(min=4, mean=5, max=6),
    "ram_total_gib": Range(min=16, mean=16, max=16),
    "disk_free_gib": Range(min=100, mean=100, max=100),
}


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"gpu_percent": Range(min=0, mean=12, max=30)}, "busy 12 %"),
        ({"gpu_memory_used_gib": Range(min=1, mean=4, max=7.8)}, "7.8 of 8.0 GiB"),
        ({"gpu_temperature_c": Range(min=50, mean=70, max=91)}, "91 °C"),
        ({"ram_used_gib": Range(min=1, mean=4, max=15.9)}, "RAM rose to 15.9"),
        ({"disk_free_gib": Range(min=2, mean=50, max=100)}, "2.0 GiB free"),
    ],
)
def test_advice_is_given_for_what_was_seen_and_for_nothing_else(changed: dict[str, Range], word: str) -> None:
    (sentence,) = advise(GOOD | changed, seconds=60)
    assert word in sentence


def test_there_is_no_advice_without_cause() -> None:
    assert advise(GOOD, seconds=60) == []
    assert advise({}, seconds=60) == []
    assert advise(GOOD | {"gpu_percent": Range(min=0, mean=0, max=0)}, seconds=20) == []


def test_every_measured_field_exists_in_a_reading() -> None:
    reading = read(Gpu(FakeNvml()), Path())
    assert all(isinstance(getattr(reading, name), float) for name in monitor.MEASURED)


def wait_for(watch: GPUMonitor, samples: int) -> None:
    deadline = time.monotonic() + 10
    while watch.get_summary_report()["samples"] < samples:
        assert time.monotonic() < deadline, "the monitor takes no readings"
        time.sleep(0.002)


def monitor_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "gpu-monitor"]
