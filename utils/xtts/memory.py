"""Free the memory of models that are no longer used."""

import ctypes
import gc
import sys

import torch


def free_memory() -> None:
    """Free models that are no longer referenced, reference cycles included."""
    gc.collect()
    trim_memory()


def trim_memory() -> None:
    """Return free memory to the system: the GPU cache and gaps in the heap.

    Most Linux C libraries keep memory freed between objects that stay, until they are told to release it.
    """
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if sys.platform == "linux" and (malloc_trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):  # not in musl
        malloc_trim(0)


def gpu_memory_gib() -> float:
    """Return the GPU memory that this process uses."""
    return torch.cuda.memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
