"""The process that reads damaged files: what they do to it is counted by another one, which outlives it."""

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

from tests.soak.mutations import mutant
from utils.core.errors import AmharicTtsError

MEMORY = 1 << 30  # bytes that reading one small file may take at most
WHOLE, RUBBISH = -1, -2  # numbers of the file that is not damaged, and of one that holds nothing of it
LOG = "reading.log"

Kind = Literal["read", "refused", "failed"]


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        name: What it is called in the table.
        file: Where a whole one lies below the specimens.
        needed: What else the reader needs, as patterns below the specimens.
        read: Reads it as the product does.
        is_lazy: Whether the reader loads a large library only when a file is damaged.
    """

    name: str
    file: str
    read: Callable[[Path], object]
    needed: tuple[str, ...] = ()
    is_lazy: bool = False


class Order(NamedTuple):
    """What is to be read: which format, which of its mutants, and which single mutation of it where not all."""

    format: int
    number: int
    only: int | None = None


class Outcome(NamedTuple):
    """What came of reading a file."""

    kind: Kind
    said: str = ""
    has_hint: bool = True
    seconds: float = 0.0


def seed_of(seed: int, form: Format, number: int) -> str:
    """Name a mutant; of the same specimen it can be made again."""
    return f"{seed}/{form.name}/{number}"


def damaged(specimens: Path, form: Format, seed: int, order: Order) -> bytes:
    """Make a mutant."""
    content = (specimens / form.file).read_bytes()
    if order.number < 0:
        return content if order.number == WHOLE else b"damaged"
    return mutant(content, seed_of(seed, form, order.number), order.only).content


def serve(orders: Connection, formats: Sequence[Format], specimens: Path, seed: int, folder: Path) -> None:
    """Read what is ordered until the orders end; runs in a process of its own."""
    with (folder / LOG).open("ab") as file:  # what libraries print about damaged files is no outcome
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    place = folder / "place"
    for kind, form in enumerate(formats):  # brings in every library before memory is limited
        for number in (WHOLE, RUBBISH) if form.is_lazy else (WHOLE,):
            _read(place, specimens, form, seed, Order(kind, number))
    _limit_memory()
    orders.send(None)
    while order := orders.recv():
        orders.send(_read(place, specimens, formats[order.format], seed, order))


def _read(place: Path, specimens: Path, form: Format, seed: int, order: Order) -> Outcome:
    shutil.rmtree(place, ignore_errors=True)  # a process that died has left its own
    path = place / form.file
    for pattern in (form.file, *form.needed):
        _copy(specimens, place, pattern)
    path.write_bytes(damaged(specimens, form, seed, order))
    began = time.process_time()
    try:
        form.read(path)
        outcome = Outcome("read")
    except AmharicTtsError as error:
        outcome = Outcome("refused", type(error).__name__, bool(error.hint))
    except Exception as error:  # noqa: BLE001  # whatever else comes is what this campaign looks for
        outcome = Outcome("failed", "".join(traceback.format_exception(error)[-4:]))
    seconds = time.process_time() - began
    shutil.rmtree(place)
    return outcome._replace(seconds=seconds)


def _copy(specimens: Path, folder: Path, pattern: str) -> None:
    for path in specimens.glob(pattern):
        if path.is_file():
            target = folder / path.relative_to(specimens)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def _limit_memory() -> None:
    """Let an allocation of gigabytes fail; Windows has no such limit."""
    try:
        import resource
    except ImportError:
        return
    most = psutil.Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
