"""Readings of the machine: GPU, memory, processor and disk.

A reading that is not available is None: without an NVIDIA GPU or driver, in a MIG slice, or without permission.
"""

import contextlib
import importlib
import logging
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

from utils.core.facts import Fact, Report, WarningFact

T = TypeVar("T")
GIB = 2**30
IDLE_PERCENT = 30  # mean load below which the GPU waits for something
WATCH_SECONDS, WATCH_READINGS = 5.0, 60  # five minutes, so that loading and a single evaluation do not count
APPLE_GPU = "Apple GPU"
IS_APPLE = (sys.platform, platform.machine()) == ("darwin", "arm64")
APPLE_SHARE = 2 / 3  # of the RAM; the GPU memory that Metal recommends using
SHORTEST = 0.2  # seconds of all cores; a share of less is noise
logger = logging.getLogger(__name__)


class GpuIdle(WarningFact):
    """The GPU waits for something most of the time."""

    percent: float


class GpuUse(Fact):
    """How busy the GPU was: the mean of its load, and the most memory in use."""

    percent: float
    memory_gib: float
    readings: int


@dataclass(frozen=True)
class MachineReading:
    """The state of the machine at one moment."""

    gpu_name: str | None
    gpu_memory_used_gib: float | None
    gpu_memory_total_gib: float | None
    gpu_percent: float | None
    process_ram_gib: float | None  # this process and its children; shared memory counts in each
    ram_used_gib: float
    ram_total_gib: float
    cpu_percent: float
    disk_free_gib: float | None


def read_once(folder: Path = Path()) -> MachineReading:
    """Take a reading, with the free space of a folder's disk; processor load is measured since the last reading."""
    with GpuMonitor() as gpu:
        return read(gpu, folder)


def read(gpu: "GpuMonitor", folder: Path) -> MachineReading:
    """Take a reading with an open GPU."""
    ram = psutil.virtual_memory()
    try:
        disk_free = psutil.disk_usage(str(folder)).free / GIB
    except OSError:
        disk_free = None
    return MachineReading(
        gpu_name=gpu.query("nvmlDeviceGetName", str) or (APPLE_GPU if IS_APPLE else None),
        gpu_memory_used_gib=gpu.query("nvmlDeviceGetMemoryInfo", lambda memory: memory.used / GIB),
        gpu_memory_total_gib=gpu.query("nvmlDeviceGetMemoryInfo", lambda memory: memory.total / GIB)
        or (APPLE_SHARE * ram.total / GIB if IS_APPLE else None),
        gpu_percent=gpu.percent(),
        process_ram_gib=_process_ram_gib(),
        ram_used_gib=(ram.total - ram.available) / GIB,
        ram_total_gib=ram.total / GIB,
        cpu_percent=processor.percent(),
        disk_free_gib=disk_free,
    )


class ProcessorLoad:
    """The load of the processor since the last reading, whichever thread took it: psutil's own differs by thread."""

    def __init__(self) -> None:
        self._percent = 0.0
        self._total, self._idle = self._times()

    def percent(self) -> float:
        """Return the share of all cores that was busy; soon after an earlier reading, that one again."""
        total, idle = self._times()
        if (passed := total - self._total) >= SHORTEST:
            self._percent = 100 * min(1.0, max(0.0, 1 - (idle - self._idle) / passed))
            self._total, self._idle = total, idle
        return self._percent

    @staticmethod
    def _times() -> tuple[float, float]:
        times = psutil.cpu_times()
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # counted as their host's too
        return sum(times) - guests, times.idle + getattr(times, "iowait", 0.0)


processor = ProcessorLoad()


def _process_ram_gib() -> float | None:
    own = psutil.Process()
    total = 0
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            total += process.memory_info().rss
    return total / GIB or None


class GpuMonitor:
    """The first GPU that this process may use, read through NVML; what the driver refuses is None."""

    def __init__(self, nvml: Any = None) -> None:  # noqa: ANN401 - nvidia-ml-py ships no types
        self._handle: Any = None
        self._open = False
        self._watch: threading.Thread | None = None
        self._ended = threading.Event()
        self._loads: list[float] = []
        self._memory = 0.0
        if nvml is None:
            with contextlib.suppress(ImportError):
                nvml = importlib.import_module("pynvml")
        self._nvml = nvml
        if nvml is None:
            return
        try:
            nvml.nvmlInit()
            self._open = True
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
            if visible.isdecimal():
                self._handle = nvml.nvmlDeviceGetHandleByIndex(int(visible))
            elif visible.startswith(("GPU-", "MIG-")):  # empty or -1: this process is to use no GPU
                self._handle = nvml.nvmlDeviceGetHandleByUUID(visible)
        except nvml.NVMLError as error:
            logger.debug("No GPU readings: %s", error)

    def __enter__(self) -> "GpuMonitor":
        return self

    def __exit__(self, *_: object) -> None:
        if self._open:
            self._open = False
            self._handle = None
            try:
                self._nvml.nvmlShutdown()
            except self._nvml.NVMLError as error:
                logger.debug("NVML did not shut down: %s", error)

    def start_monitoring(self, seconds: float, on_reading: Callable[["GpuMonitor"], object]) -> None:
        """Read the load and the memory every so many seconds, in another thread; without a GPU it ends at once."""

        def watch() -> None:
            while (load := self.percent()) is not None and not self._ended.wait(seconds):
                self._loads.append(load)
                used = self.query("nvmlDeviceGetMemoryInfo", lambda memory: float(memory.used / GIB))
                self._memory = max(self._memory, used or 0.0)
                on_reading(self)

        self._watch = threading.Thread(target=watch, name="gpu-monitor", daemon=True)
        self._watch.start()

    def stop_monitoring(self) -> None:
        self._ended.set()
        if self._watch:
            self._watch.join()

    def get_summary_report(self) -> GpuUse | None:
        """Return what was read so far; None if nothing was."""
        loads = self._loads
        return GpuUse(sum(loads) / len(loads), self._memory, len(loads)) if loads else None

    def percent(self) -> float | None:
        return self.query("nvmlDeviceGetUtilizationRates", lambda rates: float(rates.gpu))

    def query(self, function: str, convert: Callable[[Any], T]) -> T | None:
        if self._handle is None:
            return None
        try:
            return convert(getattr(self._nvml, function)(self._handle))
        except self._nvml.NVMLError:  # not supported (MIG), not permitted, or the GPU is lost
            return None


@contextlib.contextmanager
def watch_gpu(
    report: Report,
    *,
    seconds: float = WATCH_SECONDS,
    readings: int = WATCH_READINGS,
    nvml: Any = None,  # noqa: ANN401 - nvidia-ml-py ships no types
) -> Iterator[None]:
    """Report how busy the GPU was while the block ran; without a GPU nothing happens.

    If it is mostly idle by the mean of the first readings, so many seconds apart, a warning comes at once.
    """

    def warn(gpu: GpuMonitor) -> None:
        use = gpu.get_summary_report()
        if use and use.readings == readings and use.percent < IDLE_PERCENT:
            report(GpuIdle(use.percent))

    with GpuMonitor(nvml) as gpu:
        gpu.start_monitoring(seconds, warn)
        try:
            yield
        finally:
            gpu.stop_monitoring()
            if use := gpu.get_summary_report():
                report(use)
