"""What a device can do: its name, the fastest precision of training, memory to free, and its thread and streams."""

import contextlib
import ctypes
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import psutil
import torch
from torch import Tensor

from utils.core.monitor import APPLE_GPU, APPLE_SHARE
from utils.xtts.facts import GpuMissingError, PrecisionReason

logger = logging.getLogger(__name__)
T = TypeVar("T")

BF16_CAPABILITY = (8, 0)  # Ampere: the first GPUs that multiply bf16
FP16_CAPABILITY = (7, 0)  # Volta: the first with fp16 tensor cores
KERNELS = "100"  # more than the vocoder has layers
BF16_FLAGS = ("amx_bf16", "avx512_bf16")  # CPU flags of bf16 hardware on Linux

GPUS = ("cuda", "mps", "xpu")  # as torch names them: NVIDIA's and AMD's, Apple's, Intel's
UNTESTED = GPUS[1:]  # never used by the authors; each machine tests its own before it trains
COUNTED = ("cuda", "xpu")  # of which torch knows the number, the names and the peak memory

OUT_OF_MEMORY = (  # in the messages of libraries that allocate by themselves, and of devices other than CUDA
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate",
    "CUDNN_STATUS_ALLOC_FAILED",
    "cudaErrorMemoryAllocation",
    "UR_RESULT_ERROR_OUT_OF",
    "Invalid buffer size",
    "can't allocate memory",
    "out of memory",
)

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "no": torch.float32}


def choose_device(name: str = "auto") -> str:
    """Return the device of a setting; "auto" is the GPU that torch finds, or else the CPU."""
    found = found_gpus()
    if name == "auto":
        return next(iter(found), "cpu")
    kind = name.partition(":")[0]
    if kind not in ("cpu", *found):
        raise GpuMissingError(name)
    return name


def found_gpus() -> dict[str, Any]:
    """Return the kinds of GPU that are here, with what torch offers for each."""
    modules = {kind: torch.get_device_module(kind) for kind in GPUS}
    return {kind: module for kind, module in modules.items() if module.is_available()}


def own_device(name: str = "auto") -> torch.device:
    """Return the device of this process: of several GPUs, the one of its rank."""
    kind = choose_device(name)
    return torch.device(kind, int(os.environ.get("LOCAL_RANK", "0"))) if kind in COUNTED else torch.device(kind)


def exact_device(name: str = "auto") -> str:
    """Return the device that encodes clips: its codes must be those of a CPU, and only CUDA was compared with one."""
    kind = choose_device(name)
    return "cpu" if kind in UNTESTED else kind


def gpu_name(device: torch.device | str) -> str:
    gpu = torch.device(device)
    return str(torch.get_device_module(gpu).get_device_name(gpu)) if gpu.type in COUNTED else APPLE_GPU


@dataclass(frozen=True)
class Precision:
    """A precision of matrix products and the reason for it. The weights are always float32."""

    dtype: Literal["bf16", "fp16", "no"]  # ``mixed_precision`` of accelerate
    reason: PrecisionReason

    @property
    def torch_dtype(self) -> torch.dtype:
        return DTYPES[self.dtype]


def choose_precision(device: torch.device | str, *, wanted: bool = True) -> Precision:
    """Choose the fastest precision that the hardware supports.

    torch's ``is_bf16_supported`` also accepts emulation, which is much slower than float32, so the hardware is checked.
    """
    kind = torch.device(device)
    if not wanted:
        return Precision("no", PrecisionReason("off"))
    if kind.type == "cuda":
        return _choose_on_gpu(torch.cuda.get_device_capability(kind))
    if kind.type != "cpu":
        return Precision("no", PrecisionReason("untested", kind.type))
    flags = processor_flags()
    if supported := [flag for flag in BF16_FLAGS if flag in flags]:
        return Precision("bf16", PrecisionReason("cpu_bf16", supported[0]))
    return Precision("no", PrecisionReason("cpu_lacks_bf16", " / ".join(BF16_FLAGS)))


def _choose_on_gpu(capability: tuple[int, int]) -> Precision:
    version = f"{capability[0]}.{capability[1]}"
    if capability >= BF16_CAPABILITY:
        return Precision("bf16", PrecisionReason("gpu_bf16", version))
    if capability >= FP16_CAPABILITY:
        return Precision("fp16", PrecisionReason("gpu_fp16", version))
    return Precision("no", PrecisionReason("gpu_lacks_half", version))


def processor_flags() -> frozenset[str]:
    """Return the feature flags of this CPU on Linux; empty on other systems."""
    return frozenset(processor_fact("flags").split())


def processor_fact(name: str) -> str:
    """Return what Linux says about the first core, such as its "model name"; empty on other systems."""
    source = Path("/proc/cpuinfo")
    lines = source.read_text(encoding="utf-8", errors="replace").splitlines() if source.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether memory ran out, in torch or in a library of the GPU."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(sign in str(error) for sign in OUT_OF_MEMORY)
    )


def free_memory() -> None:
    """Free models that are no longer referenced, reference cycles included."""
    gc.collect()
    trim_memory()


def trim_memory() -> None:
    """Return free memory to the system: the GPU cache and gaps in the heap."""
    try:
        for gpu in found_gpus().values():
            on_gpu_thread(gpu.empty_cache)
    except RuntimeError:  # for ever after a graph whose capture failed; the memory is used again all the same
        logger.exception("The cache of the GPU could not be freed.")
    trim_heap()


def trim_heap() -> None:
    """Return gaps in the heap to the system; most Linux C libraries keep them until they are told to release them."""
    if sys.platform == "linux" and (malloc_trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):  # not in musl
        malloc_trim(0)


def limit_kernel_cache() -> None:
    """Limit the number of kernels that oneDNN keeps, one for each layer and length; call it before the first one.

    By default it keeps 1024, which took 2.4 GB after 120 sentences of different lengths. No speed is lost.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", KERNELS)


def gpu_memory_gib() -> float:
    return sum(used_bytes(torch.device(kind)) for kind in found_gpus()) / 2**30


def used_bytes(device: torch.device) -> int:
    """Return the memory in use: what torch has allocated on a GPU, or all of this process."""
    if device.type == "cpu":
        return int(psutil.Process().memory_info().rss)
    gpu = torch.get_device_module(device)
    return int(gpu.driver_allocated_memory() if gpu is torch.mps else gpu.memory_allocated(device))


def free_and_total(device: torch.device) -> tuple[int, int]:
    """Return the free memory of a device and all of it; Apple's GPU shares the RAM, as Intel's mostly do."""
    if device.type in COUNTED:
        with contextlib.suppress(RuntimeError):  # a driver of Intel may not tell
            free, total = torch.get_device_module(device).mem_get_info(device)
            return free, total
    ram = psutil.virtual_memory()
    total = round(APPLE_SHARE * ram.total) if device.type == "mps" else ram.total
    return min(ram.available, total), total


# --- the thread and the streams of a GPU ---

_here = threading.local()  # knows the GPU that its thread owns
_owners: dict[torch.device, ThreadPoolExecutor] = {}
_first = threading.Lock()  # or two threads that come first would make an owner each


def on_gpu_thread(work: Callable[[], T]) -> T:
    """Do work in the one thread that owns the GPU; the caller does it where none does.

    torch cannot free memory while another thread captures a CUDA graph: it fails, and so does every later attempt. On
    Apple's GPU, two threads at once end the process. What one thread does never overlaps.
    """
    gpu = next(iter(_owners), None)
    return _as_owner(gpu, work) if gpu else work()


def _numbered(gpu: torch.device) -> torch.device:
    """Return a GPU with its number, which is that of the current one unless it has one."""
    if gpu.index is not None:
        return gpu
    return torch.device(gpu.type, torch.get_device_module(gpu).current_device() if gpu.type in COUNTED else 0)


def _as_owner(gpu: torch.device, work: Callable[[], T]) -> T:
    """Do work in the thread that owns a GPU, which may be this one."""
    if getattr(_here, "owned", None) == gpu:
        return work()
    return _owner(gpu).submit(work).result()  # an error of the work is the caller's, and the thread goes on


def _owner(gpu: torch.device) -> ThreadPoolExecutor:
    with _first:
        return _owners.setdefault(gpu, ThreadPoolExecutor(1, "gpu", _own, (gpu,)))  # a spare one starts no thread


def _own(gpu: torch.device) -> None:
    _here.owned = gpu
    if gpu.type in COUNTED:
        torch.get_device_module(gpu).set_device(gpu)  # or what names no device would use the first one


@cache
def _stream(index: int, priority: int) -> torch.cuda.Stream:
    # few, because each keeps a workspace of cuBLAS for ever
    return torch.cuda.Stream(index, priority=priority)  # type: ignore[no-untyped-call]


class Lane:
    """Work of a GPU, all started by the thread that owns it; on a processor, by the caller.

    With CUDA it has a stream of its own: urgent work overtakes other work, and what the caller has started is done
    before.
    """

    def __init__(self, device: torch.device, *, is_urgent: bool = False) -> None:
        self.gpu = _numbered(device) if device.type in GPUS else None
        self.stream = _stream(self.gpu.index, -1 if is_urgent else 0) if self.gpu and device.type == "cuda" else None

    def run(self, work: Callable[[], T]) -> T:
        """Do work and return what it returns; its kernels may still be running."""
        return work() if self.gpu is None else _as_owner(self.gpu, partial(self._run, work))

    def _run(self, work: Callable[[], T]) -> T:
        stream: Any = self.stream
        if stream is None:
            return work()
        stream.wait_stream(torch.cuda.default_stream(self.gpu))
        with torch.cuda.stream(stream):
            return work()


class Arrival(NamedTuple):
    """A copy in RAM that may still be on its way."""

    part: Tensor
    event: Any = None

    def wait(self) -> Tensor:
        """Wait for what the stream has done up to the copy, and return it."""
        if self.event is not None:
            self.event.synchronize()
        return self.part


def to_host(part: Tensor) -> Arrival:
    """Copy to RAM; CUDA only starts it, to pinned memory that torch chooses, and an event tells when it has arrived."""
    if part.device.type != "cuda":
        return Arrival(part.to("cpu", copy=True))
    copy = part.to("cpu", non_blocking=True, copy=True)
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record()
    return Arrival(copy, event)


def to_device(part: Tensor, device: torch.device) -> Tensor:
    """Copy to a device; CUDA reads pinned memory later, which torch frees only then.

    Other devices would read memory that may be freed or written by then, so their copies are waited for.
    """
    if device.type == "cuda" and part.device.type == "cpu":
        return part.pin_memory().to(device, non_blocking=True)
    return part.to(device)
