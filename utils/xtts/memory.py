"""Memory that models use, and that none uses any longer."""

import ctypes
import gc
import sys

import torch


def free_memory() -> None:
    """Give back what a model held that is no longer used, also where its objects hold each other."""
    gc.collect()
    trim_memory()


def trim_memory() -> None:
    """Give back what is free already: the GPU's cache, and holes in the heap.

    A model is taken over layer by layer; what was freed between layers that stay is held by the C library of most Linux
    systems until it is told to let go.
    """
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if sys.platform == "linux" and (malloc_trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):  # musl has none
        malloc_trim(0)


def gpu_memory_gib() -> float:
    """Return how much memory of the graphics card this process uses."""
    return torch.cuda.memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
