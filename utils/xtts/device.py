"""What a device can do: its name, the fastest precision of training, memory to free, and its thread and streams."""

import ctypes
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from utils.xtts.facts import GpuMissingError, PrecisionReason

logger = logging.getLogger(__name__)
T = TypeVar("T")

BF16_CAPABILITY = (8, 0)  # Ampere: the first GPUs that multiply bf16
FP16_CAPABILITY = (7, 0)  # Volta: the first with fp16 tensor cores
KERNELS = "100"  # more than the vocoder has layers
BF16_FLAGS = ("amx_bf16", "avx512_bf16")  # CPU flags of bf16 hardware on Linux

OUT_OF_MEMORY = (  # in the messages of libraries that allocate by themselves, and of devices other than CUDA
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate",
    "CUDNN_STATUS_ALLOC_FAILED",
    "cudaErrorMemoryAllocation",
    "can't allocate memory",
    "out of memory",
)

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "no": torch.float32}


def choose_device(name: str) -> str:
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise GpuMissingError(name)
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name


@dataclass(frozen=True)
class Precision:
    """A precision of matrix products and the reason for it. The weights are always float32."""

    dtype: Literal["bf16", "fp16", "no"]  # ``mixed_precision`` of accelerate
    reason: PrecisionReason

    @property
    def torch_dtype(self) -> torch.dtype:
        return DTYPES[self.dtype]


def choose_precision(
    device: torch.device | str,
    *,
    wanted: bool = True,
    capability: tuple[int, int] | None = None,
    processor: Collection[str] | None = None,
) -> Precision:
    """Choose the fastest precision that the hardware supports.

    torch's ``is_bf16_supported`` also accepts emulation, which is much slower than float32, so the hardware is checked.
    The capability of the GPU and the feature flags of the processor are by default those of this machine.
    """
    kind = torch.device(device)
    if not wanted:
        return Precision("no", PrecisionReason("off"))
    if kind.type == "cuda":
        return _choose_on_gpu(capability or torch.cuda.get_device_capability(kind))
    if kind.type != "cpu":
        return Precision("no", PrecisionReason("untested", kind.type))
    flags = processor_flags() if processor is None else processor
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
    source = Path("/proc/cpuinfo")
    if sys.platform != "linux" or not source.is_file():
        return frozenset()
    lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


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
        on_gpu_thread(torch.cuda.empty_cache)
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
    return torch.cuda.memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0


# --- the thread and the streams of a GPU ---

_here = threading.local()  # knows the GPU that its thread owns
_first = threading.Lock()  # or two threads that come first would make an owner each


def on_gpu_thread(work: Callable[[], T]) -> T:
    """Do work in the one thread that owns the GPU; the caller does it in a process that has not used a GPU.

    torch cannot free memory while another thread captures a CUDA graph: it fails, and so does every later attempt.
    What one thread does never overlaps.
    """
    is_used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return _as_owner(torch.cuda.current_device(), work) if is_used else work()


def _as_owner(index: int, work: Callable[[], T]) -> T:
    """Do work in the thread that owns a GPU, which may be this one."""
    if getattr(_here, "owned", None) == index:
        return work()
    with _first:
        owner = _owner(index)
    return owner.submit(work).result()


@cache
def _owner(index: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "gpu", _own, (index,))  # an error of the work is the caller's, and the thread goes on


def _own(index: int) -> None:
    _here.owned = index
    torch.cuda.set_device(index)  # or what names no device would use the first one


@cache
def _stream(index: int, priority: int) -> torch.cuda.Stream:
    # few, because each keeps a workspace of cuBLAS for ever
    return torch.cuda.Stream(index, priority=priority)  # type: ignore[no-untyped-call]


class Lane:
    """A stream of a GPU whose work is all started by the thread that owns the GPU; on a processor, by the caller.

    Urgent work overtakes other work on the GPU. What the caller has started there is done before.
    """

    def __init__(self, device: torch.device, *, is_urgent: bool = False) -> None:
        self.stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self.index = torch.cuda.current_device() if device.index is None else device.index
            self.stream = _stream(self.index, -1 if is_urgent else 0)

    def run(self, work: Callable[[], T]) -> T:
        """Do work and return what it returns; its kernels may still be running."""
        return work() if self.stream is None else _as_owner(self.index, partial(self._run, work))

    def _run(self, work: Callable[[], T]) -> T:
        stream: Any = self.stream
        stream.wait_stream(torch.cuda.default_stream(self.index))
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
