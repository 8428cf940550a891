"""The two sides as processes of their own: one works while the other waits, and each has its own memory to measure.

A process is started afresh (not forked), so that its peak is its own, and lives through all rounds, so that only its
first round pays for warming up.
"""

import contextlib
import importlib
import multiprocessing
import os
import re
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from benchmarks.training_data import Material
from benchmarks.training_plan import Memory, Plan, Round

if TYPE_CHECKING:
    from torch import Tensor

SIDES = {
    "coqui": "benchmarks.training_coqui:CoquiSide",
    "ours": "benchmarks.training_ours:OurSide",
    "padded": "benchmarks.training_ours:PaddedSide",
}
MIB = 2**20


class Refused(Exception):  # noqa: N818  # a refusal is an answer, no error
    """The side cannot work under this plan, for a reason that a person can read."""


class Worker(Protocol):
    """What a process runs."""

    reads_with: str
    gpt: Any

    def weights(self) -> "dict[str, Tensor]":
        """Return the weights of the GPT."""

    def round(self, updates: int) -> Round:
        """Make some updates."""

    def loss(self) -> float:
        """Judge the model on all clips."""

    def loading_seconds(self) -> float:
        """Return how long it has waited for its loader."""

    def changes(self) -> list[str]:
        """Say what the switches changed."""


class Side:
    """A process that runs one side.

    Args:
        name: One of ``SIDES``.
        plan: The conditions.
        material: What it reads.
    """

    def __init__(self, name: str, plan: Plan, material: Material) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, name, plan, material.folder))
        self.process.start()
        theirs.close()
        self.changes: list[str] = self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def round(self, updates: int) -> Round:
        """Make some updates and tell what they took."""
        found: Round = self._ask("round", updates)
        return found

    def loss(self) -> float:
        """Return the mean loss over all clips, without dropout."""
        return float(self._ask("loss"))

    def save(self, name: str) -> None:
        """Save the weights as a file of the material, for the judge."""
        self._ask("save", name)

    def memory(self) -> Memory:
        """Return what the process has needed so far."""
        found: Memory = self._ask("memory")
        return found

    def loading_seconds(self) -> float:
        """Return how long the side has waited for its loader so far."""
        return float(self._ask("loading_seconds"))

    def reads_with(self) -> str:
        """Return what the side reads sound with."""
        return str(self._ask("reads_with"))

    def close(self) -> None:
        """End the process."""
        self.pipe.close()
        self.process.join(30)
        if self.process.is_alive():
            self.process.kill()

    def _ask(self, what: str, *values: object) -> Any:  # noqa: ANN401  # each question has an answer of its own
        self.pipe.send((what, *values))
        return self._answer()

    def _answer(self) -> Any:  # noqa: ANN401
        try:
            kind, value = self.pipe.recv()
        except EOFError as error:
            self.process.join()
            raise RuntimeError(f"The process ended with code {self.process.exitcode}; see above.") from error
        if kind == "refused":
            self.close()
            raise Refused(value)
        return value


def apart(function: str, *values: object) -> Any:  # noqa: ANN401
    """Call a function, given as "module:name", in a process of its own that ends with it."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_call, (function, *values))


def _call(function: str, *values: object) -> Any:  # noqa: ANN401
    return _found(function)(*values)


def _found(name: str) -> Any:  # noqa: ANN401
    where, _, attribute = name.partition(":")
    return getattr(importlib.import_module(where), attribute)


def _serve(pipe: Connection, name: str, plan: Plan, folder: Path) -> None:
    """Build a side and answer until nobody asks any more."""
    if plan.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch looks for it
    import torch

    from utils.core.errors import ConfigError, SpeedupError

    material, start = Material(folder), resident("VmRSS")
    try:
        side: Worker = _found(SIDES[name])(plan, material)
        before = start, forget_peak()
        pipe.send(("changes", side.changes()))
        while True:
            what, *values = pipe.recv()
            torch.set_num_threads(plan.threads)  # coqui's dataset sets it to 1 when it is imported
            if what == "save":
                torch.save(side.weights(), material.weights(*values))
            pipe.send((what, None if what == "save" else _reply(side, what, values, before)))
    except (SpeedupError, ConfigError, torch.OutOfMemoryError) as error:
        pipe.send(("refused", str(error)))
    except EOFError:
        return


def _reply(side: Worker, what: str, values: list[Any], before: tuple[float, float]) -> object:
    if what == "memory":
        return _memory(*before)
    found = getattr(side, what)
    return found(*values) if callable(found) else found


def _memory(start: float, building: float) -> Memory:
    """Return the peaks of this process."""
    import torch

    training = resident("VmHWM")
    device = torch.cuda.max_memory_allocated() / MIB if torch.cuda.is_available() else 0.0
    return Memory(start, max(building, training), training, device)


def resident(name: str) -> float:
    """Read a line of the kernel's account of this process, in MiB; elsewhere ask for the peak."""
    status = Path("/proc/self/status")
    if status.is_file():
        found = re.search(rf"{name}:\s+(\d+) kB", status.read_text(encoding="utf-8"))
        return int(found[1]) / 1024 if found else 0.0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB


def forget_peak() -> float:
    """Let the kernel count the peak from now on, where it can, and return the one so far."""
    peak = resident("VmHWM")
    with contextlib.suppress(OSError):  # only Linux can, and not every container lets it
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak
