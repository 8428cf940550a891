"""One JSON object a line, appended while a run works and read by whoever watches."""

import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from utils.core.errors import StorageError
from utils.core.storage import storage_error

Event = dict[str, object]
BLOCK = 1 << 20  # bytes read by one look: bounds the memory of a watcher, whatever the size of the log
LARGEST_NUMBER = 2**53  # nothing of ours is counted further; beyond it a number with a point misses whole ones


class EventLog:
    """Appends events; each line reaches the file whole or is ignored by readers.

    Args:
        path: The events.jsonl of a run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._torn = _ends_torn(path)
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as error:
            raise storage_error(path, error) from error

    def emit(self, kind: str, **fields: object) -> None:
        """Append one event with the time of day."""
        event = {"time": round(time.time(), 3), "kind": kind} | _finite(fields)
        line = json.dumps(event, ensure_ascii=False, default=str).encode() + b"\n"
        if self._torn:
            line = b"\n" + line
        self._torn = True
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            raise storage_error(self.path, error) from error
        if written < len(line):
            raise storage_error(self.path, OSError(28, "No space left on device"))
        self._torn = False

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class EventBatch:
    """What one look at a log found, and where the next look starts."""

    events: list[Event]
    offset: int


def read_events(path: Path, offset: int = 0, limit: int = BLOCK) -> EventBatch:
    """Read whole events from an offset; a half-written last line is left for the next look."""
    block = read_block(path, offset, limit)
    whole = block.rfind(b"\n") + 1
    if not whole and len(block) == limit:
        whole = limit  # a line longer than a block is no event of ours: step over it
    parsed = (parse_line(line) for line in block[:whole].split(b"\n"))
    return EventBatch([event for event in parsed if event is not None], offset + whole)


def iter_events(path: Path) -> Iterator[Event]:
    """Read a log from its beginning to its end."""
    offset = 0
    while (look := read_events(path, offset)).offset > offset:
        yield from look.events
        offset = look.offset


def format_event(event: Event) -> str:
    """Write one event as a line for people; what has parts says them as a message too."""
    told = ((name, value) for name, value in event.items() if name not in {"time", "kind"} and value != "")
    fields = (f"{name}={value}" for name, value in told if not isinstance(value, dict))
    return " ".join([str(event["kind"]), *fields])


def tail_offset(path: Path, size: int = BLOCK) -> int:
    """Return an offset near the end of a file from which a late watcher may start."""
    return max(0, _size(path) - size)


def read_tail(path: Path, size: int = 16_384) -> str:
    """Read the last lines of a text log."""
    start = tail_offset(path, size)
    text = read_block(path, start, size).decode("utf-8", "replace")
    return text.partition("\n")[2] if start else text


def read_block(path: Path, offset: int, limit: int) -> bytes:
    """Read up to ``limit`` bytes from an offset; a file that is not there yet is empty."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(min(limit, max(0, _size(path) - offset)))  # room for all of a limit would be taken
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.", hint="Delete it or mend its rights.") from error


def parse_line(line: bytes) -> Event | None:
    """Read one line; None for what is no event."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("kind"), str) else None


def as_number(value: object) -> float | None:
    """Return a finite number of an event; what is none, such as the word nan, is left out."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if (count := as_integer(value)) is None else float(count)


def as_integer(value: object) -> int | None:
    """Return a whole number of an event; what is none, or goes on for hundreds of digits, is left out."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_NUMBER else None


def _finite(fields: Mapping[str, object]) -> Event:
    """Write NaN and infinity as words, because JSON has no number for them."""
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in fields.items()
    }


def _ends_torn(path: Path) -> bool:
    size = _size(path)
    return size > 0 and read_block(path, size - 1, 1) != b"\n"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
