"""Events: one whole line each, read from an offset with bounded memory."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from utils.core.errors import StorageError
from utils.core.events import BLOCK, EventLog, iter_events, read_events, read_tail, tail_offset
from utils.core.facts import LineDamaged, to_json
from utils.core.paths import ROOT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_events_are_read_as_written_from_an_offset_on(path: Path) -> None:
    with EventLog(path) as log:
        log.emit("progress", step=1, text="ሰላም", loss=float("nan"), best=float("inf"))
        first = read_events(path)
        log.emit("second")
    (event,) = first.events
    del event["time"]
    assert event == {"kind": "progress", "step": 1, "text": "ሰላም", "loss": "nan", "best": "inf"}
    assert [event["kind"] for event in read_events(path, first.offset).events] == ["second"]


@pytest.mark.parametrize("rubbish", [b'{"kind": "half', b"not json\n", b"[1]\n", b"\xff\xfe\n", b'{"no": "kind"}\n'])
def test_broken_lines_are_named(path: Path, rubbish: bytes) -> None:
    path.write_bytes(rubbish)
    with EventLog(path) as log:
        log.emit("after")
    damaged, after = read_events(path).events
    assert damaged == to_json(LineDamaged(rubbish.strip().decode("utf-8", "replace")))
    assert after["kind"] == "after"


def three_lines(path: Path) -> list[bytes]:
    with EventLog(path) as log:
        for step in range(1, 4):
            log.emit("train", step=step, loss=1.5)
    return path.read_bytes().splitlines(keepends=True)


def kinds(path: Path) -> list[object]:
    return [event["kind"] for event in iter_events(path)]


def test_a_line_with_any_changed_byte_is_left_out(path: Path) -> None:
    first, second, third = three_lines(path)
    for at in range(len(second) - 1):
        path.write_bytes(first + second[:at] + bytes([second[at] ^ 1]) + second[at + 1 :] + third)
        assert kinds(path) == ["train", "line_damaged", "train"], at


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ((0, 2), ["train", "lines_missing", "train"]),
        ((1, 2), ["lines_missing", "train", "train"]),
        ((0, 1, 1, 2), ["train", "train", "lines_missing", "train", "train"]),
        ((1, 0, 2), ["lines_missing", "train", "lines_missing", "train", "lines_missing", "train"]),
    ],
)
def test_lines_that_are_missing_or_moved_are_named(path: Path, order: tuple[int, ...], found: list[str]) -> None:
    lines = three_lines(path)
    path.write_bytes(b"".join(lines[number] for number in order))
    assert kinds(path) == found


def test_two_processes_number_their_lines_together(path: Path) -> None:
    with EventLog(path) as log, EventLog(path) as other:
        for each in (log, other, other, log, other):
            each.emit("a")
    assert kinds(path) == ["a"] * 5


def test_a_log_of_version_1_1_is_continued(path: Path) -> None:
    path.write_text('{"time": 1.5, "kind": "train", "step": 1}\n', encoding="utf-8")
    with EventLog(path) as log:
        log.emit("train", step=2)
    assert [event["step"] for event in iter_events(path)] == [1, 2]


def test_a_half_written_last_line_waits(path: Path) -> None:
    line = json.dumps({"kind": "whole"}).encode() + b"\n"
    path.write_bytes(line + line[:5])
    page = read_events(path)
    assert (len(page.events), page.offset) == (1, len(line))
    with path.open("ab") as file:
        file.write(line[5:])
    assert len(read_events(path, page.offset).events) == 1


def test_a_line_longer_than_a_block_does_not_block_the_watcher(path: Path) -> None:
    path.write_bytes(b"x" * (BLOCK + 10) + b"\n" + b'{"kind": "after"}\n')
    page = read_events(path)
    assert [event["kind"] for event in page.events] == ["line_damaged"]
    assert [event["kind"] for event in read_events(path, page.offset).events] == ["line_damaged", "after"]


def test_a_missing_file_is_empty(path: Path) -> None:
    assert (read_events(path).events, read_tail(path), tail_offset(path)) == ([], "", 0)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        read_events(tmp_path)


def test_a_full_disk_is_one_clear_error(small_disk: Path) -> None:
    path = small_disk / "events.jsonl"
    ballast = small_disk / "ballast"
    with EventLog(path) as log:
        log.emit("before")
        ballast.write_bytes(b"x" * 400_000)
        with pytest.raises(StorageError, match="No space left"):
            log.emit("lost", text="x" * 300_000)
        ballast.unlink()
        log.emit("after")
    kinds = [json.loads(line)["kind"] for line in path.read_bytes().split(b"\n") if line.endswith(b"}")]
    assert kinds == ["before", "after"]


def test_the_tail_of_a_log_begins_at_a_whole_line(path: Path) -> None:
    path.write_text("".join(f"line {number}\n" for number in range(10_000)), encoding="utf-8")
    assert read_tail(path, 25) == "line 9998\nline 9999\n"


WATCHER = """
import sys
from pathlib import Path
from tests.peak import peak_mb
from utils.core.events import as_number, read_events, read_tail, tail_offset
path = Path(sys.argv[1])
before = peak_mb()
page = read_events(path, tail_offset(path))
assert page.events and read_tail(path)
print(peak_mb() - before)
"""


def test_a_watcher_of_a_log_of_a_gigabyte_stays_small(path: Path) -> None:
    with path.open("wb") as file:
        file.seek(2**30)  # a hole: takes no disk
        file.write(b"\n" + b'{"kind": "progress", "step": 1}\n' * 30_000)
    words = [sys.executable, "-c", WATCHER, str(path)]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(run.stdout) < 40


def test_a_large_limit_takes_no_more_memory_than_the_file_needs(path: Path) -> None:
    with EventLog(path) as log:
        log.emit("progress", step=1)
    tracemalloc.start()
    assert len(read_events(path, 0, 1 << 30).events) == 1
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
