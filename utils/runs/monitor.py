"""What the machine is doing: GPU, memory, processor and disk, once or over time.

A reading that cannot be had is None and nothing fails: no NVIDIA GPU, no driver, a MIG slice that hides it, no rights.
"""

import csv
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar

import psutil

T = TypeVar("T")
GIB = 2**30
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reading:
    """One look at the machine."""

    time: float  # seconds since 1970
    gpu_name: str | None
    gpu_memory_used_gib: float | None
    gpu_memory_total_gib: float | None
    gpu_percent: float | None
    gpu_temperature_c: float | None
    gpu_power_w: float | None
    process_ram_gib: float | None  # this process and its children; memory they share is counted in each
    ram_used_gib: float
    ram_total_gib: float
    cpu_percent: float
    disk_free_gib: float | None


MEASURED = tuple(field.name for field in fields(Reading) if field.name not in {"time", "gpu_name"})


class Range(TypedDict):
    """The course of one reading in three numbers."""

    min: float
    mean: float
    max: float


class Summary(TypedDict):
    """What a monitor saw since its start; a reading that was never to be had is missing from ``ranges``."""

    seconds: float
    samples: int
    gpu_name: str | None
    ranges: dict[str, Range]
    advice: list[str]


def read_once(folder: Path = Path()) -> Reading:
    """Take one reading; it lasts a tenth of a second, because processor load is a difference between two moments.

    Args:
        folder: Whose disk is asked for its free space.
    """
    gpu = Gpu()
    try:
        return read(gpu, folder, cpu_seconds=0.1)
    finally:
        gpu.close()


class GPUMonitor:
    """Takes readings in a background thread, from ``start_monitoring`` or ``with`` on.

    Args:
        interval: Seconds between two readings.
        folder: Whose disk is asked for its free space.
        csv_path: A file that gets one line a reading; none by default.
        keep: How many of the latest readings ``history`` holds; the summary covers all of them all the same.
        nvml: The module that talks to the driver; nvidia-ml-py by default.
    """

    def __init__(
        self,
        interval: float = 1.0,
        *,
        folder: Path = Path(),
        csv_path: Path | None = None,
        keep: int = 3600,
        nvml: Any = None,  # noqa: ANN401 - nvidia-ml-py ships no types
    ) -> None:
        self.interval = interval
        self.folder = folder
        self.csv_path = csv_path
        self.history: deque[Reading] = deque(maxlen=keep)
        self._nvml = nvml
        self._tallies: dict[str, _Tally] = {}
        self._began = self._ended = 0.0
        self._samples = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start_monitoring(self) -> None:
        """Begin afresh; does nothing while it is running."""
        if self._thread is not None and self._thread.is_alive():
            return
        self.history.clear()
        self._tallies = {}
        self._samples = 0
        self._began = self._ended = time.monotonic()
        self._stop.clear()
        self._thread = threading.Thread(target=self._watch, name="gpu-monitor", daemon=True)
        self._thread.start()

    def stop_monitoring(self) -> None:
        """End the thread without waiting for the next interval; does nothing when it is not running."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def get_summary_report(self) -> Summary:
        """Sum up every reading since the start, with advice where a reading gives reason for it."""
        with self._lock:
            ranges = {name: tally.range() for name, tally in self._tallies.items()}
            gpu_name = self.history[-1].gpu_name if self.history else None
            seconds = self._ended - self._began
            advice = advise(ranges, seconds)
            return Summary(seconds=seconds, samples=self._samples, gpu_name=gpu_name, ranges=ranges, advice=advice)

    def __enter__(self) -> Self:
        self.start_monitoring()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop_monitoring()

    def _watch(self) -> None:
        gpu = Gpu(self._nvml)
        try:
            self._take(read(gpu, self.folder, cpu_seconds=min(0.1, self.interval)))
            while not self._stop.wait(self.interval):
                self._take(read(gpu, self.folder))
        finally:
            gpu.close()

    def _take(self, reading: Reading) -> None:
        with self._lock:
            self.history.append(reading)
            self._samples += 1
            self._ended = time.monotonic()
            for name in MEASURED:
                if (value := getattr(reading, name)) is not None:
                    self._tallies.setdefault(name, _Tally()).add(value)
        if self.csv_path is not None:
            self._write_line(self.csv_path, reading)

    def _write_line(self, path: Path, reading: Reading) -> None:
        try:
            is_new = not path.exists() or not path.stat().st_size
            with path.open("a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, [field.name for field in fields(Reading)])
                if is_new:
                    writer.writeheader()
                writer.writerow(asdict(reading))
        except OSError as error:  # a full disk must not end the readings that would show it
            logger.warning("%s gets no more readings: %s", path, error)
            self.csv_path = None


def read(gpu: "Gpu", folder: Path, cpu_seconds: float | None = None) -> Reading:
    """Take a reading; processor load is measured over the given seconds, or else since this thread's last reading."""
    cpu = psutil.cpu_percent(interval=cpu_seconds)
    ram = psutil.virtual_memory()
    return Reading(
        time=time.time(),
        gpu_name=gpu.name(),
        gpu_memory_used_gib=_gib(gpu.ask("nvmlDeviceGetMemoryInfo", lambda memory: memory.used)),
        gpu_memory_total_gib=_gib(gpu.ask("nvmlDeviceGetMemoryInfo", lambda memory: memory.total)),
        gpu_percent=gpu.ask("nvmlDeviceGetUtilizationRates", lambda rates: float(rates.gpu)),
        gpu_temperature_c=gpu.ask("nvmlDeviceGetTemperature", float, 0),  # 0 is NVML_TEMPERATURE_GPU, its only sensor
        gpu_power_w=gpu.ask("nvmlDeviceGetPowerUsage", lambda milliwatts: milliwatts / 1000),
        process_ram_gib=_gib(_process_ram()),
        ram_used_gib=(ram.total - ram.available) / GIB,
        ram_total_gib=ram.total / GIB,
        cpu_percent=cpu,
        disk_free_gib=_gib(_disk_free(folder)),
    )


class Gpu:
    """The GPU that this process may use first, asked through NVML; every refusal is a None."""

    def __init__(self, nvml: Any = None) -> None:  # noqa: ANN401 - nvidia-ml-py ships no types
        self._nvml = nvml or _nvml_module()
        self._handle: Any = None
        self._open = False
        if self._nvml is None:
            return
        try:
            self._nvml.nvmlInit()
            self._open = True
            self._handle = self._first_visible()
        except self._nvml.NVMLError as error:
            logger.debug("No GPU readings: %s", error)

    def name(self) -> str | None:
        """Return the product name."""
        return self.ask("nvmlDeviceGetName", lambda name: name.decode() if isinstance(name, bytes) else str(name))

    def ask(self, question: str, take: Callable[[Any], T], *arguments: int) -> T | None:
        """Put one question to the driver and take what is wanted from its answer."""
        if self._handle is None:
            return None
        try:
            return take(getattr(self._nvml, question)(self._handle, *arguments))
        except self._nvml.NVMLError:  # not supported here (MIG), not permitted, or the GPU is lost
            return None

    def close(self) -> None:
        """Give the driver back."""
        if self._open:
            self._open, self._handle = False, None
            try:
                self._nvml.nvmlShutdown()
            except self._nvml.NVMLError as error:
                logger.debug("NVML did not shut down: %s", error)

    def _first_visible(self) -> Any:  # noqa: ANN401 - a handle of nvidia-ml-py
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
        if visible.isdecimal():
            return self._nvml.nvmlDeviceGetHandleByIndex(int(visible))
        if visible.startswith(("GPU-", "MIG-")):
            return self._nvml.nvmlDeviceGetHandleByUUID(visible)
        return None  # empty or -1: this process is to use no GPU


class _Tally:
    """Smallest, largest and sum of a reading, in constant memory."""

    def __init__(self) -> None:
        self.least, self.most, self.sum, self.count = float("inf"), float("-inf"), 0.0, 0

    def add(self, value: float) -> None:
        self.least, self.most = min(self.least, value), max(self.most, value)
        self.sum += value
        self.count += 1

    def range(self) -> Range:
        return Range(min=self.least, mean=self.sum / self.count, max=self.most)


def advise(ranges: dict[str, Range], seconds: float) -> list[str]:
    """Say what the readings give reason to change; nothing in the first half minute, which is loading."""
    if seconds < 30:
        return []
    sentences = (_on_idle_gpu(ranges), _on_gpu_memory(ranges), _on_heat(ranges), _on_ram(ranges), _on_disk(ranges))
    return [sentence for sentence in sentences if sentence]


def _on_idle_gpu(ranges: dict[str, Range]) -> str:
    gpu = ranges.get("gpu_percent")
    if gpu is None or gpu["mean"] >= 30:
        return ""
    return f"The GPU was busy {gpu['mean']:.0f} % of the time: it waits for data, or for larger batches."


def _on_gpu_memory(ranges: dict[str, Range]) -> str:
    used, total = ranges.get("gpu_memory_used_gib"), ranges.get("gpu_memory_total_gib")
    if used is None or total is None or used["max"] < 0.95 * total["max"]:
        return ""
    return (
        f"GPU memory rose to {used['max']:.1f} of {total['max']:.1f} GiB: a smaller batch leaves room for a long clip."
    )


def _on_heat(ranges: dict[str, Range]) -> str:
    heat = ranges.get("gpu_temperature_c")
    if heat is None or heat["max"] < 88:
        return ""
    return f"The GPU reached {heat['max']:.0f} °C, where many cards slow down: see to its cooling."


def _on_ram(ranges: dict[str, Range]) -> str:
    used, total = ranges.get("ram_used_gib"), ranges.get("ram_total_gib")
    if used is None or total is None or used["max"] < 0.95 * total["max"]:
        return ""
    return f"RAM rose to {used['max']:.1f} of {total['max']:.1f} GiB: close other programs or use fewer loader workers."


def _on_disk(ranges: dict[str, Range]) -> str:
    free = ranges.get("disk_free_gib")
    if free is None or free["min"] >= 10:
        return ""
    return f"The disk fell to {free['min']:.1f} GiB free: one full checkpoint needs several."


def _nvml_module() -> Any:  # noqa: ANN401 - nvidia-ml-py ships no types
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def _gib(size: float | None) -> float | None:
    return None if size is None else size / GIB


def _process_ram() -> int | None:
    """Add up the RAM of this process and its children; a child that ends meanwhile counts nothing."""
    own = psutil.Process()
    total = 0
    for process in (own, *own.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total or None


def _disk_free(folder: Path) -> int | None:
    try:
        return psutil.disk_usage(str(folder)).free
    except OSError:
        return None
