"""Ten thousand damaged files: every one is read, or refused with an error of ours; those without a cure are counted."""

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from tests.soak.mutations import MOST, mutant
from tests.soak.reading import LOG, WHOLE, Format, Order, Outcome, damaged, seed_of, serve
from utils.core.errors import RunError
from utils.core.storage import make_folder

SECONDS = 10.0  # of computing that reading one small file may take
BUSY = 12  # times as long it may take on a clock, on a machine that does other things too
STARTING = 180.0  # seconds until every library is there


@dataclass
class Tally:
    """What came of the damaged files of one format.

    Attributes:
        name: Of the format.
        inputs: How many there were.
        read: How many were read all the same.
        refused: How many were refused with an error of ours.
        without_hint: How many of these errors did not say what to do.
        failed: How many ended in anything else.
        slowest: Seconds that the slowest took.
    """

    name: str
    inputs: int = 0
    read: int = 0
    refused: int = 0
    without_hint: int = 0
    failed: int = 0
    slowest: float = 0.0

    def count(self, outcome: Outcome) -> None:
        """Count one file."""
        self.inputs += 1
        setattr(self, outcome.kind, getattr(self, outcome.kind) + 1)
        self.without_hint += not outcome.has_hint
        self.slowest = max(self.slowest, round(outcome.seconds, 2))


@dataclass(frozen=True)
class Failure:
    """A damaged file that was neither read nor refused.

    Attributes:
        format: Name of its format.
        seed: Makes the same file again of the same specimen, which lies beside it.
        done: The mutations.
        said: What happened.
        file: Where it is kept.
    """

    format: str
    seed: str
    done: tuple[str, ...]
    said: str
    file: str


class Reader:
    """A process that reads files, and its successors after a crash or a hang.

    Args:
        formats: What it can read.
        specimens: Whole files of these formats.
        seed: Of the mutations.
        folder: For its log, and for what it reads.
    """

    def __init__(self, formats: Sequence[Format], specimens: Path, seed: int, folder: Path) -> None:
        self._arguments = (tuple(formats), specimens, seed, folder)
        self._start()

    def ask(self, order: Order) -> Outcome:
        """Have a file read and return what came of it; a process that did not survive it is replaced."""
        try:
            self._orders.send(order)
            if self._answers():
                outcome: Outcome = self._orders.recv()
                return outcome
            self._process.kill()
            said = f"it hung: not done after {SECONDS:g} s"
        except (EOFError, ConnectionError):
            self._process.join()
            said = f"the process died with exit code {self._process.exitcode}"
        self.close()
        self._start()
        return Outcome("failed", said)

    def _answers(self) -> bool:
        """Wait for an answer, as long as the process may compute for one."""
        process = psutil.Process(self._process.pid)
        before, deadline = sum(process.cpu_times()[:2]), time.monotonic() + BUSY * SECONDS
        while not (answers := self._orders.poll(SECONDS / 10)) and time.monotonic() < deadline:
            with contextlib.suppress(psutil.NoSuchProcess):  # then the pipe says so
                if sum(process.cpu_times()[:2]) - before > SECONDS:
                    return False
        return answers

    def close(self) -> None:
        """Let the process end; one that does not is killed."""
        with contextlib.suppress(OSError):  # it has died
            self._orders.send(None)
            self._process.join(STARTING)
        self._process.kill()
        self._process.join()
        self._orders.close()

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")  # a fork would inherit what the campaign has open
        self._orders, theirs = spawn.Pipe()
        self._process = spawn.Process(target=serve, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()
        try:
            _await_ready(self._orders, self._arguments[-1] / LOG)
        except RunError:
            self._process.kill()
            self.close()
            raise


@dataclass(frozen=True)
class Fuzzed:
    """What came of all damaged files."""

    tallies: tuple[Tally, ...]
    failures: tuple[Failure, ...]
    seconds: float

    @property
    def inputs(self) -> int:
        """Return how many files there were."""
        return sum(tally.inputs for tally in self.tallies)


def fuzz(
    formats: Sequence[Format],
    specimens: Path,
    folder: Path,
    count: int,
    seed: int,
    tell: Callable[[int], object] = lambda _: None,
) -> Fuzzed:
    """Have damaged files read, the formats in turn; failures are kept below the folder.

    Args:
        formats: What is damaged.
        specimens: Whole files.
        folder: For the log and the failures.
        count: How many in all.
        seed: Of the mutations.
        tell: Hears how many are done.
    """
    make_folder(folder)
    began = time.monotonic()
    tallies = [Tally(form.name) for form in formats]
    failures: list[Failure] = []
    with contextlib.closing(Reader(formats, specimens, seed, folder)) as reader:
        for kind, form in enumerate(formats):
            if (whole := reader.ask(Order(kind, WHOLE))).kind != "read":
                raise RunError(f"A whole {form.name} is not read: {whole.said}", hint="Mend the specimen.")
        for number in range(count):
            order = Order(number % len(formats), number // len(formats))
            outcome = reader.ask(order)
            tallies[order.format].count(outcome)
            if outcome.kind == "failed":
                failures.append(_kept(reader, formats[order.format], specimens, folder, (seed, order, outcome)))
            tell(number + 1)
    return Fuzzed(tuple(tallies), tuple(failures), round(time.monotonic() - began, 1))


def _kept(reader: Reader, form: Format, specimens: Path, folder: Path, found: tuple[int, Order, Outcome]) -> Failure:
    """Keep the file of a failure, with one mutation where one alone does it."""
    seed, order, outcome = found
    for only in range(MOST):
        alone = order._replace(only=only)
        if (again := reader.ask(alone)).kind == "failed":
            order, outcome = alone, again
            break
    name = seed_of(seed, form, order.number)
    path = folder / f"{form.name.replace(' ', '-')}-{order.number}{Path(form.file).suffix}"
    path.write_bytes(damaged(specimens, form, seed, order))
    done = mutant((specimens / form.file).read_bytes(), name, order.only).done
    return Failure(form.name, name, done, outcome.said, str(path))


def _await_ready(orders: Connection, log: Path) -> None:
    """Wait until a new process has read a whole file of every format."""
    if not orders.poll(STARTING):
        raise RunError("The reading process does not start.", hint=f"The reason is in {log}.")
    try:
        orders.recv()
    except EOFError as error:
        raise RunError("The reading process died at its start.", hint=f"The reason is in {log}.") from error
