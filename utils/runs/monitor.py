"""Readings of the machine: GPU, memory, processor and disk.

A reading that is not available is None: without an NVIDIA GPU or driver, in a MIG slice, or without permission.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

T = TypeVar("T")
GIB = 2**30
IDLE_PERCENT = 30  # mean load below which the GPU waits for something
WATCH_SECONDS, WATCH_READINGS = 5.0, 60  # five minutes, so that loading and a single evaluation do not count
IDLE_GPU = (
    "The GPU is busy only {percent:.0f} % of the time. Raise batch_size or num_workers, or check that the disk is fast."
)
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reading:
    """The state of the machine at one moment."""

    time: float  # seconds since 1970
    gpu_name: str | None
    gpu_memory_used_gib: float | None
    gpu_memory_total_gib: float | None
    gpu_percent: float | None
    gpu_temperature_c: float | None
    gpu_power_w: float | None
    process_ram_gib: float | None  # this process and its children; shared memory counts in each
    ram_used_gib: float
    ram_total_gib: float
    cpu_percent: float
    disk_free_gib: float | None


def read_once(folder: Path = Path()) -> Reading:
    """Take a reading; it takes a tenth of a second, because CPU load is measured between two moments.

    Args:
        folder: A folder on the disk whose free space is read.
    """
    gpu = Gpu()
    try:
        return read(gpu, folder)
    finally:
        gpu.close()


def read(gpu: "Gpu", folder: Path) -> Reading:
    """Take a reading with an open GPU."""
    cpu = psutil.cpu_percent(interval=0.1)
    ram = psutil.virtual_memory()
    return Reading(
        time=time.time(),
        gpu_name=gpu.name(),
        gpu_memory_used_gib=_gib(gpu.ask("nvmlDeviceGetMemoryInfo", lambda memory: memory.used)),
        gpu_memory_total_gib=_gib(gpu.ask("nvmlDeviceGetMemoryInfo", lambda memory: memory.total)),
        gpu_percent=gpu.percent(),
        gpu_temperature_c=gpu.ask("nvmlDeviceGetTemperature", float, 0),  # NVML_TEMPERATURE_GPU
        gpu_power_w=gpu.ask("nvmlDeviceGetPowerUsage", lambda milliwatts: milliwatts / 1000),
        process_ram_gib=_gib(_process_ram()),
        ram_used_gib=(ram.total - ram.available) / GIB,
        ram_total_gib=ram.total / GIB,
        cpu_percent=cpu,
        disk_free_gib=_gib(_disk_free(folder)),
    )


class Gpu:
    """The first GPU that this process may use, read through NVML; what the driver refuses is None."""

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

    def percent(self) -> float | None:
        """Return the load."""
        return self.ask("nvmlDeviceGetUtilizationRates", lambda rates: float(rates.gpu))

    def ask(self, function: str, convert: Callable[[Any], T], *arguments: int) -> T | None:
        """Call a function of NVML and convert its result."""
        if self._handle is None:
            return None
        try:
            return convert(getattr(self._nvml, function)(self._handle, *arguments))
        except self._nvml.NVMLError:  # not supported (MIG), not permitted, or the GPU is lost
            return None

    def close(self) -> None:
        """Release the driver."""
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


@contextlib.contextmanager
def idle_gpu_warning(
    warn: Callable[[str], object],
    *,
    seconds: float = WATCH_SECONDS,
    readings: int = WATCH_READINGS,
    nvml: Any = None,  # noqa: ANN401 - nvidia-ml-py ships no types
) -> Iterator[None]:
    """Warn once if the GPU is mostly idle while the block runs; without readings nothing happens.

    Args:
        warn: Receives the sentence, in another thread.
        seconds: Between two readings.
        readings: How many to average.
        nvml: The module that talks to the driver; nvidia-ml-py by default.
    """
    ended = threading.Event()

    def watch() -> None:
        gpu = Gpu(nvml)
        loads: list[float] = []
        while (load := gpu.percent()) is not None and len(loads) < readings and not ended.wait(seconds):
            loads.append(load)
        gpu.close()
        if len(loads) == readings and (mean := sum(loads) / readings) < IDLE_PERCENT:
            warn(IDLE_GPU.format(percent=mean))

    thread = threading.Thread(target=watch, name="idle-gpu", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _nvml_module() -> Any:  # noqa: ANN401 - nvidia-ml-py ships no types
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def _gib(size: float | None) -> float | None:
    return None if size is None else size / GIB


def _process_ram() -> int | None:
    """Add up the RAM of this process and its children."""
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
