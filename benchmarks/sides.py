"""The sides of a comparison, each a process of its own: one works while the others wait, and its memory is its own.

A process is started afresh (not forked), so that its peak is its own, and lives through all rounds, so that only its
first round pays for warming up. Our side waits between products as the program does, plain coqui-tts as torch does.
"""

import contextlib
import gc
import multiprocessing
import os
import pkgutil
import re
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Self
from unittest.mock import patch

import psutil

from utils.core.threads import prepare_libraries

MIB = 2**20


class Memory(NamedTuple):
    """MiB that a process uses, of the GPU where it computes there, else RAM with the mapped model file."""

    loaded: float  # when everything is loaded
    loading: float  # the peak until then
    working: float  # the peak since

    @property
    def peak(self) -> float:
        return max(self.loading, self.working)


class Side:
    """A process that works when it is asked.

    Args:
        worker: Its class, as "module:name".
        device: Where it computes.
        threads: How many it uses.
        values: What its class is given.
    """

    def __init__(self, worker: str, device: str, threads: int, *values: object) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, worker, device, threads, values))
        with patch.dict(os.environ):
            if not worker.endswith(":Coqui"):
                prepare_libraries()
            self.process.start()
        theirs.close()
        self.notes: list[str] = self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.close()
        self.process.join(30)
        if self.process.is_alive():
            self.process.kill()

    def ask(self, what: str, *values: object) -> Any:  # noqa: ANN401  # each question has an answer of its own
        """Call a method of the worker and return its answer."""
        self.pipe.send((what, *values))
        return self._answer()

    def memory(self) -> Memory:
        """Return what the process has needed so far."""
        found: Memory = self.ask("memory")
        return found

    def _answer(self) -> Any:  # noqa: ANN401
        try:
            return self.pipe.recv()
        except EOFError as error:
            self.process.join()
            raise SystemExit(f"A side ended with code {self.process.exitcode}; see above.") from error


def _serve(pipe: Connection, worker: str, device: str, threads: int, values: tuple[object, ...]) -> None:
    """Build the worker, send its notes, and answer until nobody asks any more."""
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch looks for it
    import torch

    torch.set_num_threads(threads)
    try:
        side = pkgutil.resolve_name(worker)(*values)
        gc.collect()
        before = _loaded(device)
        pipe.send(side.notes)
        while True:
            what, *given = pipe.recv()
            torch.set_num_threads(threads)  # coqui's dataset sets it to 1 when it is imported
            pipe.send(Memory(*before, _peak(device)) if what == "memory" else getattr(side, what)(*given))
    except EOFError:
        return


def _loaded(device: str) -> tuple[float, float]:
    """Return what is in use and the peak so far, and count the peak from now on where the kernel lets us."""
    import torch

    peak = _peak(device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated() / MIB, peak
    with contextlib.suppress(OSError):  # only Linux can, and not every container lets it
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _resident("VmRSS"), peak


def _peak(device: str) -> float:
    import torch

    return torch.cuda.max_memory_allocated() / MIB if device == "cuda" else _resident("VmHWM")


def _resident(name: str) -> float:
    """Read a line of the kernel's account of this process, in MiB; elsewhere what is in use now."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return psutil.Process().memory_info().rss / MIB
    found = re.search(rf"{name}:\s+(\d+) kB", status.read_text(encoding="utf-8"))
    return int(found[1]) / 1024 if found else 0.0
