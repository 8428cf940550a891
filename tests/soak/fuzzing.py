"""Thousands of damaged files: each must be read, or refused with an error of ours, within bounds of time and memory.

They are read by another process, so that a crash or a hang is counted like any other failure.
"""

import contextlib
import multiprocessing
import os
import shutil
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, NamedTuple

import psutil

from tests.soak.mutations import MAX_MUTATIONS, mutant
from utils.core.errors import AmharicTtsError, RunError
from utils.core.storage import make_folder

SECONDS = 10.0  # of CPU time that reading one small file may take
BUSY = 12  # times as long on the clock, on a machine that does other things too
STARTING = 180.0  # seconds until every library is imported
MEMORY = 1 << 30  # bytes that reading one small file may take
INTACT, GARBAGE = -1, -2  # numbers of the undamaged file, and of one that holds nothing of it
LOG = "reading.log"


@dataclass(frozen=True)
class Format:
    """A kind of file, and the function by which the product reads it."""

    name: str
    file: str  # path of an intact one below the specimens
    read: Callable[[Path], object]
    needed: tuple[str, ...] = ()  # patterns of other files that the reader needs
    is_lazy: bool = False  # the reader imports a large library only when a file is damaged


class Order(NamedTuple):
    """What to read: a mutant of a format, or only one of its mutations."""

    format: int
    number: int
    only: int | None = None


class Outcome(NamedTuple):
    """What reading a file led to."""

    kind: Literal["read", "refused", "failed"]
    reason: str = ""
    has_hint: bool = True
    seconds: float = 0.0


@dataclass
class Tally:
    """What the damaged files of one format led to."""

    name: str
    inputs: int = 0
    read: int = 0
    refused: int = 0
    without_hint: int = 0
    failed: int = 0
    slowest: float = 0.0  # seconds

    def count(self, outcome: Outcome) -> None:
        self.inputs += 1
        setattr(self, outcome.kind, getattr(self, outcome.kind) + 1)
        self.without_hint += not outcome.has_hint
        self.slowest = max(self.slowest, round(outcome.seconds, 2))


@dataclass(frozen=True)
class Failure:
    """A damaged file that was neither read nor refused."""

    format: str
    seed: str
    mutations: tuple[str, ...]
    reason: str
    file: str


@dataclass(frozen=True)
class FuzzResult:
    """What all damaged files led to."""

    tallies: tuple[Tally, ...]
    failures: tuple[Failure, ...]
    seconds: float

    @property
    def inputs(self) -> int:
        return sum(tally.inputs for tally in self.tallies)


def fuzz(
    formats: Sequence[Format],
    specimens: Path,
    folder: Path,
    count: int,
    seed: int,
    report: Callable[[int], object] = lambda _: None,
) -> FuzzResult:
    """Read damaged files, the formats in turn; failures are saved in the folder."""
    make_folder(folder)
    began = time.monotonic()
    tallies = [Tally(form.name) for form in formats]
    failures: list[Failure] = []
    with contextlib.closing(Reader(formats, specimens, seed, folder)) as reader:
        for index, form in enumerate(formats):
            if (intact := reader.read(Order(index, INTACT))).kind != "read":
                raise RunError(f"An intact {form.name} is not read: {intact.reason}", hint="Correct the specimen.")
        for number in range(count):
            order = Order(number % len(formats), number // len(formats))
            outcome = reader.read(order)
            tallies[order.format].count(outcome)
            if outcome.kind == "failed":
                failures.append(_save_failure(reader, order, outcome))
            report(number + 1)
    return FuzzResult(tuple(tallies), tuple(failures), round(time.monotonic() - began, 1))


def _save_failure(reader: "Reader", order: Order, outcome: Outcome) -> Failure:
    """Save the file of a failure, with one mutation where one alone causes it."""
    for only in range(MAX_MUTATIONS):
        if (again := reader.read(order._replace(only=only))).kind == "failed":
            order, outcome = order._replace(only=only), again
            break
    form = reader.formats[order.format]
    seed = f"{reader.seed}/{form.name}/{order.number}"
    damaged = mutant((reader.specimens / form.file).read_bytes(), seed, order.only)
    path = reader.folder / f"{form.name.replace(' ', '-')}-{order.number}{Path(form.file).suffix}"
    path.write_bytes(damaged.content)
    return Failure(form.name, seed, damaged.mutations, outcome.reason, str(path))


class Reader:
    """A process that reads files; it is replaced after a crash or a hang."""

    def __init__(self, formats: Sequence[Format], specimens: Path, seed: int, folder: Path) -> None:
        self.formats, self.specimens, self.seed, self.folder = tuple(formats), specimens, seed, folder
        self._start()

    def read(self, order: Order) -> Outcome:
        try:
            self._pipe.send(order)
            if self._has_answer():
                outcome: Outcome = self._pipe.recv()
                return outcome
            self._process.kill()
            reason = f"it hung: not done after {SECONDS:g} s"
        except (EOFError, ConnectionError):
            self._process.join()
            reason = f"the process died with exit code {self._process.exitcode}"
        self.close()
        self._start()
        return Outcome("failed", reason)

    def _has_answer(self) -> bool:
        """Wait for an answer, as long as the process may compute for one."""
        process = psutil.Process(self._process.pid)
        before, deadline = sum(process.cpu_times()[:2]), time.monotonic() + BUSY * SECONDS
        while not (answered := self._pipe.poll(SECONDS / 10)) and time.monotonic() < deadline:
            with contextlib.suppress(psutil.NoSuchProcess):  # then the pipe says so
                if sum(process.cpu_times()[:2]) - before > SECONDS:
                    return False
        return answered

    def close(self) -> None:
        with contextlib.suppress(OSError):  # it has died
            self._pipe.send(None)
            self._process.join(STARTING)
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _start(self) -> None:
        """Start a process and wait until it has read an intact file of every format."""
        spawn = multiprocessing.get_context("spawn")  # a fork would inherit what the campaign has open
        self._pipe, theirs = spawn.Pipe()
        arguments = (theirs, self.formats, self.specimens, self.seed, self.folder)
        self._process = spawn.Process(target=serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        try:
            if self._pipe.poll(STARTING):
                self._pipe.recv()
                return
            problem = "does not start"
        except EOFError:
            problem = "died at its start"
        self._process.kill()
        self.close()
        raise RunError(f"The reading process {problem}.", hint=f"The reason is in {self.folder / LOG}.")


def serve(pipe: Connection, formats: Sequence[Format], specimens: Path, seed: int, folder: Path) -> None:
    """Read what is ordered until the orders end; runs in a process of its own."""
    with (folder / LOG).open("ab") as file:  # what libraries print about damaged files is no outcome
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    for form in formats:  # imports every library before memory is limited
        for number in (INTACT, GARBAGE) if form.is_lazy else (INTACT,):
            _read(folder / "copy", specimens, form, seed, Order(0, number))
    _limit_memory()
    pipe.send(None)
    while order := pipe.recv():
        pipe.send(_read(folder / "copy", specimens, formats[order.format], seed, order))


def _read(copy: Path, specimens: Path, form: Format, seed: int, order: Order) -> Outcome:
    shutil.rmtree(copy, ignore_errors=True)  # a process that died has left its own
    for pattern in (form.file, *form.needed):
        for source in filter(Path.is_file, specimens.glob(pattern)):
            target = copy / source.relative_to(specimens)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    path = copy / form.file
    if order.number == GARBAGE:
        path.write_bytes(b"damaged")
    elif order.number != INTACT:
        path.write_bytes(mutant(path.read_bytes(), f"{seed}/{form.name}/{order.number}", order.only).content)
    began = time.process_time()
    try:
        form.read(path)
        outcome = Outcome("read")
    except AmharicTtsError as error:
        outcome = Outcome("refused", type(error).__name__, bool(error.hint))
    except Exception as error:  # noqa: BLE001  # any other error is what this campaign looks for
        outcome = Outcome("failed", "".join(traceback.format_exception(error)[-4:]))
    seconds = time.process_time() - began
    shutil.rmtree(copy)
    return outcome._replace(seconds=seconds)


def _limit_memory() -> None:
    """Let an allocation of gigabytes fail; Windows has no such limit."""
    try:
        import resource
    except ImportError:
        return
    limit = psutil.Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
