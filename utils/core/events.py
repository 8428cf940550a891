"""Event logs: one JSON object per line, appended by a run and read by whoever follows it.

Each line begins with its checksum and its number: ``{"crc": "0a1b2c3d", "line": 7, "time": …, "kind": …}``. A line that
has changed is left out, and an event of its own says so, also where lines are missing. Version 1.1 wrote neither.
"""

import errno
import json
import math
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Self

from utils.core.errors import UnreadableError
from utils.core.facts import MAX_INTEGER, Fact, LineDamaged, LinesMissing, plain, to_json
from utils.core.storage import parse_json, storage_errors

Event = dict[str, object]
BLOCK = 1 << 20  # bytes read at a time: bounds the memory of a reader, whatever the size of the log
SIGNED = re.compile(rb'\{"crc": "([0-9a-f]{8})", ("line": (\d+), .*)', re.DOTALL)
SHOWN = 60  # characters of a damaged line


class EventLog:
    """Appends events; each line reaches the file completely or is ignored by readers. A listener gets them as well."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listener: Callable[[Event], object] | None = None
        self.number, self._end = 0, 0  # of the last line that it knows of, and where that ends
        with storage_errors(path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)

    def emit(self, kind: str, **fields: object) -> None:
        event = {"time": round(time.time(), 3), "kind": kind} | {name: plain(value) for name, value in fields.items()}
        with storage_errors(self.path):
            size = os.fstat(self._descriptor).st_size
            tail = read_block(self.path, max(0, size - BLOCK), BLOCK) if size != self._end else b"\n"
            if size != self._end:  # another process has written to it, or this one not the whole line
                self.number = last_number(tail)
            line = (b"" if not size or tail.endswith(b"\n") else b"\n") + signed(event, self.number + 1)
            if os.write(self._descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, "No space left on device")
        self.number, self._end = self.number + 1, size + len(line)
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


def signed(event: Event, number: int) -> bytes:
    """Return an event as a line with its checksum and number."""
    content = json.dumps({"line": number} | event, ensure_ascii=False, default=str).encode()[1:]
    return b'{"crc": "%08x", ' % zlib.crc32(content) + content + b"\n"


def last_number(block: bytes) -> int:
    """Return the number of the last numbered line; 0 if there is none."""
    found = filter(None, map(SIGNED.fullmatch, reversed(block.split(b"\n"))))
    return next((int(match[3]) for match in found), 0)


class LineParser:
    """Parses the lines of a log in their order, from any of them on."""

    def __init__(self, number: int | None) -> None:
        self.number = number  # of the last line; None where that is unknown

    def skip(self) -> None:
        """Pass over a line without looking at it."""
        self.number = None

    def parse(self, line: bytes) -> Iterator[Event]:
        """Yield the event of a line, and what is wrong with it or before it."""
        event = _parse_line(line)
        if event is None:
            if line.strip():
                yield to_json(LineDamaged(line[:SHOWN].decode("utf-8", "replace")))
                self.number = None
            return
        if (number := as_integer(event.pop("line", None))) is not None:
            if self.number not in {None, number - 1}:
                yield to_json(LinesMissing(self.number or 0, number))
            self.number = number
        yield event


class EventBatch(NamedTuple):
    """Events read at once, and the offset at which to read on."""

    events: list[Event]
    offset: int


def read_events(path: Path, offset: int = 0, limit: int = BLOCK, parser: LineParser | None = None) -> EventBatch:
    """Read complete events from an offset; a half-written last line is left for the next call.

    Pass the parser of the call before so that a line that is missing between the two is noticed.
    """
    parser = parser or LineParser(None if offset else 0)
    block = read_block(path, offset, limit)
    end = block.rfind(b"\n") + 1
    if not end and len(block) == limit:
        end = limit  # a line longer than a block is not an event: skip it
    return EventBatch([event for line in block[:end].split(b"\n") for event in parser.parse(line)], offset + end)


def iter_events(path: Path) -> Iterator[Event]:
    offset = 0
    parser = LineParser(0)
    while (batch := read_events(path, offset, parser=parser)).offset > offset:
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


def _parse_line(line: bytes) -> Event | None:
    """Parse one line; None if it is not an event, or not as it was written."""
    match = SIGNED.fullmatch(line)
    if match and zlib.crc32(match[2]) != int(match[1], 16):
        return None
    try:
        event = parse_json(b"{" + match[2] if match else line)
    except ValueError:
        return None
    if not isinstance(event, dict) or not isinstance(event.get("kind"), str):
        return None
    return event if match or not event.keys() & {"crc", "line"} else None


def as_number(value: object) -> float | None:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if (integer := as_integer(value)) is None else float(integer)


def as_integer(value: object) -> int | None:
    """Return an integer from an event, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_INTEGER else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
