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
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, NamedTuple

import psutil

from tests.soak.mutations import mutant
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

    def damage(self, content: bytes, seed: int, number: int) -> bytes:
        return mutant(content, f"{seed}/{self.name}/{number}")


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
    failures: list[str] = field(default_factory=list)  # the saved files with their reasons

    def count(self, outcome: Outcome) -> None:
        self.inputs += 1
        setattr(self, outcome.kind, getattr(self, outcome.kind) + 1)
        self.without_hint += not outcome.has_hint
        self.slowest = max(self.slowest, round(outcome.seconds, 2))


def fuzz(
    formats: Sequence[Format],
    specimens: Path,
    folder: Path,
    count: int,
    seed: int,
    report: Callable[[int], object] = lambda _: None,
) -> list[Tally]:
    """Read damaged files, the formats in turn; those that are neither read nor refused are saved in the folder."""
    make_folder(folder)
    tallies = [Tally(form.name) for form in formats]
    with contextlib.closing(Reader(formats, specimens, seed, folder)) as reader:
        for index, form in enumerate(formats):
            if (intact := reader.read(index, INTACT)).kind != "read":
                raise RunError(f"An intact {form.name} is not read: {intact.reason}", hint="Correct the specimen.")
        for done in range(count):
            number, index = divmod(done, len(formats))
            form, tally, outcome = formats[index], tallies[index], reader.read(index, number)
            tally.count(outcome)
            if outcome.kind == "failed":
                path = folder / f"{form.name.replace(' ', '-')}-{number}{Path(form.file).suffix}"
                path.write_bytes(form.damage((specimens / form.file).read_bytes(), seed, number))
                tally.failures.append(f"{path}: {outcome.reason}")
            report(done + 1)
    return tallies


class Reader:
    """A process that reads files; it is replaced after a crash or a hang."""

    def __init__(self, formats: Sequence[Format], specimens: Path, seed: int, folder: Path) -> None:
        self.formats, self.specimens, self.seed, self.folder = tuple(formats), specimens, seed, folder
        self._start()

    def read(self, index: int, number: int) -> Outcome:
        """Read a damaged file, or the intact one, of the format with this index."""
        try:
            self._pipe.send((index, number))
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
        with contextlib.suppress(EOFError):  # it has died
            if self._pipe.poll(STARTING):
                self._pipe.recv()
                return
        self._process.kill()
        self.close()
        raise RunError("The reading process does not start.", hint=f"The reason is in {self.folder / LOG}.")


def serve(pipe: Connection, formats: Sequence[Format], specimens: Path, seed: int, folder: Path) -> None:
    """Read what is ordered until the orders end; runs in a process of its own."""
    with (folder / LOG).open("ab") as file:  # what libraries print about damaged files is no outcome
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    for form in formats:  # imports every library before memory is limited
        for number in (INTACT, GARBAGE) if form.is_lazy else (INTACT,):
            _read(folder / "copy", specimens, form, seed, number)
    _limit_memory()
    pipe.send(None)
    while order := pipe.recv():
        index, number = order
        pipe.send(_read(folder / "copy", specimens, formats[index], seed, number))


def _read(copy: Path, specimens: Path, form: Format, seed: int, number: int) -> Outcome:
    shutil.rmtree(copy, ignore_errors=True)  # a process that died has left its own
    for pattern in (form.file, *form.needed):
        for source in filter(Path.is_file, specimens.glob(pattern)):
            target = copy / source.relative_to(specimens)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    path = copy / form.file
    if number != INTACT:
        path.write_bytes(b"damaged" if number == GARBAGE else form.damage(path.read_bytes(), seed, number))
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
