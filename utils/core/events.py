"""Event logs: one JSON object per line, appended by a run and read by whoever follows it."""

import errno
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Self

from utils.core.errors import UnreadableError
from utils.core.facts import Fact, to_json
from utils.core.storage import parse_json, storage_errors

Event = dict[str, object]
BLOCK = 1 << 20  # bytes read at a time: bounds the memory of a reader, whatever the size of the log
MAX_INTEGER = 2**53  # floats beyond it skip integers; no event counts that far


class Progress(NamedTuple):
    """How far work is; a total of 0 means that the end is unknown."""

    step: int = 0
    total: int = 0
    part: str = ""  # what is being worked on
    message: str = ""


class EventLog:
    """Appends events; each line reaches the file completely or is ignored by readers. A listener gets them as well."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listener: Callable[[Event], object] | None = None
        size = _size(path)
        self._is_torn = size > 0 and read_block(path, size - 1, 1) != b"\n"  # the last line was not written whole
        with storage_errors(path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)

    def emit(self, kind: str, **fields: object) -> None:
        event = {"time": round(time.time(), 3), "kind": kind} | {name: _finite(value) for name, value in fields.items()}
        line = json.dumps(event, ensure_ascii=False, default=str).encode() + b"\n"
        if self._is_torn:
            line = b"\n" + line
        self._is_torn = True
        with storage_errors(self.path):
            if os.write(self._descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, "No space left on device")
        self._is_torn = False
        if self.listener:
            self.listener(event)

    def report(self, fact: Fact) -> None:
        """Append a fact."""
        event = to_json(fact)
        self.emit(event.pop("kind"), **event)

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class EventBatch(NamedTuple):
    """Events read at once, and the offset at which to read on."""

    events: list[Event]
    offset: int


def read_events(path: Path, offset: int = 0, limit: int = BLOCK) -> EventBatch:
    """Read complete events from an offset; a half-written last line is left for the next call."""
    block = read_block(path, offset, limit)
    end = block.rfind(b"\n") + 1
    if not end and len(block) == limit:
        end = limit  # a line longer than a block is not an event: skip it
    parsed = (parse_line(line) for line in block[:end].split(b"\n"))
    return EventBatch([event for event in parsed if event is not None], offset + end)


def iter_events(path: Path) -> Iterator[Event]:
    offset = 0
    while (batch := read_events(path, offset)).offset > offset:
        yield from batch.events
        offset = batch.offset


def format_event(event: Event) -> str:
    """Format an event as one line of text; nested values are left out, because such events have a message too."""
    fields = {name: value for name, value in event.items() if name not in {"time", "kind"}}
    shown = [f"{name}={value}" for name, value in fields.items() if value != "" and not isinstance(value, dict)]
    return " ".join([str(event["kind"]), *shown])


def tail_offset(path: Path, size: int = BLOCK) -> int:
    """Return an offset near the end of a file, from which a new reader can start."""
    return max(0, _size(path) - size)


def read_tail(path: Path, size: int = 16_384) -> str:
    start = tail_offset(path, size)
    text = read_block(path, start, size).decode("utf-8", "replace")
    return text.partition("\n")[2] if start else text


def read_block(path: Path, offset: int, limit: int) -> bytes:
    """Read up to ``limit`` bytes from an offset; a file that does not exist yet is empty."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(min(limit, max(0, _size(path) - offset)))  # read() allocates all that it is asked for
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UnreadableError(path, str(error.strerror)) from error


def parse_line(line: bytes) -> Event | None:
    """Parse one line; None if it is not an event."""
    try:
        event = parse_json(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("kind"), str) else None


def as_number(value: object) -> float | None:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if (integer := as_integer(value)) is None else float(integer)


def as_integer(value: object) -> int | None:
    """Return an integer from an event, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_INTEGER else None


def _finite(value: object) -> object:
    """Turn NaN and infinity into strings, because JSON has no numbers for them."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
