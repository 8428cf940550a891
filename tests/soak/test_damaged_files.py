"""Every damaged file is read, or refused with an error of ours, within bounds of time and memory.

They are read in another process, so that a crash or a hang is counted like any other failure. The same seed always does
the same damage. ``SOAK_FILES=360`` damages that many files of each format; ``SOAK_SEED`` changes the damage, and
``SOAK_ONLY`` names part of a format.
"""

import contextlib
import functools
import json
import multiprocessing
import os
import random
import re
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.soak.foreign import foreign_formats, write_foreign
from tests.soak.formats import FORMATS, Format, Outcome, write_specimens
from tests.soak.owned import OWNED, write_owned

EACH, SEED = int(os.environ.get("SOAK_FILES", "15")), os.environ.get("SOAK_SEED", "5")
ONLY = os.environ.get("SOAK_ONLY", "")
SECONDS, CLOCK_SECONDS = 10, 120  # of CPU time that reading a small file may take, and on the clock of a busy machine
STARTING = 180  # seconds until every library is imported
MEMORY = 1 << 30  # bytes that reading one small file may take
LOG = "reading.log"
# Without a mark, these read as those of version 1.1 or as edited by a person (docs/decisions/0018-digests.md).
MAY_LACK_MARKS, MARKS = {"config.yaml", "page.yaml", "report"}, re.compile(rb"sha256|# end|digest")
MAX_MUTATIONS = 4  # of one file
MAX_GROWTH = 1 << 21  # bytes: chunks that double again and again only take time
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
NUMBERS = (
    b"0 -1 1e308 -1e308 1e999 NaN -Infinity nan inf 2147483648 4294967295 -9223372036854775809 "
    b"18446744073709551616 99999999999999999999999999 0x10 00 1_000 .5 5. 1e-400 \xd9\xa3"
).split()
BRACKETS = ((b"[", b"]"), (b'{"a":', b"}"), (b"- ", b""), (b"{", b"}"), (b"<", b">"))
DEPTHS = (100, 1000, 20_000)  # of brackets; the last is too many for a recursive reader
LENGTHS = (0, 1, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
ODD = (
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x00",
    b"\x00" * 512,  # byte order marks and zeros
    b"\xff\xc0\x80",
    b"\xed\xa0\x80",
    b"\xe1\x88",  # no UTF-8, half of a pair, two thirds of an Ethiopic letter
    b"\r",
    b"\r\n",
    "\u2028\u0085\u202e".encode(),
    b"|,;\t",
    b'"',
    b"\\u0000\\ud800",
    b"{{[[",
    b"&a [*a, *a]",
    b"!!python/object/apply:os.getcwd []",
    b"../../../../etc/passwd",
    b"--> 99:99:99,999",
    b"A" * 70_000,
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1 << 70,
    1e308,
    "",
    "x",
    "\ud800",
    "\x00",
    "../..",
    [],
    {},
    [[]],
    {"": None},
    "9" * 5000,
    -(1 << 31),
    0.5,
    "NaN",
    ["a"] * 300,
)


@functools.cache
def formats_of(specimens: Path) -> list[Format]:
    return [*FORMATS, *OWNED, *foreign_formats(specimens)]


class Reader:
    """A process that reads files; it is replaced after a crash or a hang."""

    def __init__(self, specimens: Path, folder: Path) -> None:
        self.specimens, self.folder = specimens, folder
        self._start()

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")  # a fork would inherit what the campaign has open
        self._pool = ProcessPoolExecutor(1, spawn, _prepare, (self.specimens, self.folder))

    def read(self, index: int, content: bytes) -> Outcome:
        """Read a file of the format with this index."""
        try:
            return self._pool.submit(_read_within_limits, index, content, self.specimens, self.folder).result()
        except BrokenProcessPool:
            self._start()
            return Outcome("failed", f"the process crashed, or was not done after {SECONDS} s of CPU time")

    def close(self) -> None:
        self._pool.shutdown()


def _prepare(specimens: Path, folder: Path) -> None:
    """Import every library, by reading an intact and a worthless file of every format, before memory is limited."""
    import resource  # not on Windows

    with (folder / LOG).open("ab") as file:  # what libraries print about damaged files is no outcome
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    signal.alarm(STARTING)
    for form in formats_of(specimens):
        for content in ((specimens / form.file).read_bytes(), b"damaged"):
            form.outcome(specimens, content, folder / "copy")
    limit = psutil.Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _read_within_limits(index: int, content: bytes, specimens: Path, folder: Path) -> Outcome:
    """Read a file; the system ends this process when that takes too long."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(CLOCK_SECONDS)
    try:
        return formats_of(specimens)[index].outcome(specimens, content, folder / "copy")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def damage(content: bytes, seed: str) -> bytes:
    """Damage a file with one to four mutations."""
    rng = random.Random(seed)
    limit = len(content) + MAX_GROWTH
    for mutation in rng.choices(MUTATIONS, k=rng.randint(1, MAX_MUTATIONS)):
        content = mutation(content, rng)[:limit]
    return content


def flip_bits(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8, 32)) if changed else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(content: bytes, rng: random.Random) -> bytes:
    """Truncate a file at the end or the start, or delete, repeat or move a chunk of it."""
    start, other = rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)
    end = start + rng.choice((1, 2, 4, 16, 64, 512, 4096))
    before, chunk, after = content[:start], content[start:end], content[end:]
    moved = content[:other] + chunk + content[other + len(chunk) :]  # like a lost cluster of a disk
    return rng.choice((before, content[start:], before + after, before + chunk * rng.choice((2, 3, 51)) + after, moved))


def rewrite(content: bytes, rng: random.Random) -> bytes:
    """Swap two lines, or write the file with other line ends or in another encoding."""
    lines = content.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    encoding = rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-7"))
    match rng.randrange(3):
        case 0:
            lines[first], lines[second] = lines[second], lines[first]
            return b"\n".join(lines)
        case 1:
            return rng.choice((b"\r\n", b"\r", b"\n\n", b"")).join(lines)
    return content.decode("utf-8", "replace").encode(encoding, "replace")


def insert_odd(content: bytes, rng: random.Random) -> bytes:
    at = rng.choice((0, rng.randrange(len(content) + 1)))
    return content[:at] + rng.choice(ODD) + content[at:]


def strange_number(content: bytes, rng: random.Random) -> bytes:
    """Replace a number by a huge or negative one, by none, or by many brackets, which are sometimes closed."""
    opening, closing = rng.choice(BRACKETS)
    depth = rng.choice(DEPTHS)
    nested = opening * depth + b"0" + closing * rng.choice((0, depth))
    match = rng.choice(list(NUMBER.finditer(content[:MAX_GROWTH])) or [None])
    start, end = match.span() if match else (0, 0)
    return content[:start] + rng.choice((rng.choice(NUMBERS), nested)) + content[end:]


def strange_length(content: bytes, rng: random.Random) -> bytes:
    """Overwrite bytes with a length, most often in the header, where files store them."""
    size = rng.choice((1, 2, 4, 8))
    at = rng.randrange(1 + min(len(content), rng.choice((64, 64, 4096, MAX_GROWTH))))
    length = (rng.choice(LENGTHS) % (1 << 8 * size)).to_bytes(size, "little")
    return content[:at] + rng.choice((length, length[::-1])) + content[at + size :]


def other_type(content: bytes, rng: random.Random) -> bytes:
    """Put a value of another type into a JSON file, or into one line of it."""
    lines = content.split(b"\n")
    number = rng.randrange(len(lines))
    for text, before, after in ((content, [], []), (lines[number], lines[:number], lines[number + 1 :])):
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return b"\n".join([*before, json.dumps(_replace_value(tree, rng)).encode(), *after])
    return strange_number(content, rng)


def _replace_value(tree: Any, rng: random.Random) -> Any:
    """Replace or delete a random value of a tree."""
    items: list[tuple[Any, Any]] = []
    nodes = [tree]
    for node in nodes:  # grows on the way
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
        items += [(node, key) for key in keys]
        nodes += [node[key] for key in keys]
    if not items or rng.random() < 0.05:
        return rng.choice(VALUES)
    parent, key = rng.choice(items[: rng.choice((10, 1000, len(items)))])
    if isinstance(parent, dict) and rng.random() < 0.2:
        del parent[key]
    else:
        parent[key] = rng.choice(VALUES)
    return tree


MUTATIONS = (
    flip_bits, *[cut] * 5, *[rewrite] * 3, *[strange_number] * 2, strange_length, insert_odd, *[other_type] * 2,
)  # fmt: skip


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("soak")
    specimens = folder / "specimens"
    write_specimens(specimens)
    write_owned(specimens)
    write_foreign(specimens)
    with contextlib.closing(Reader(specimens, folder)) as reader:
        yield reader


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("is_owned", [True, False], ids=["owned", "foreign"])
def test_damaged_files_are_read_or_refused(reader: Reader, tmp_path: Path, is_owned: bool) -> None:
    """What the program owns must also be read as what was written."""
    outcomes = list[Outcome]()
    for index, form in enumerate(formats_of(reader.specimens)):
        if form.is_hashed is not is_owned or ONLY not in form.name:
            continue
        intact = (reader.specimens / form.file).read_bytes()
        expected = reader.read(index, intact)
        assert expected.kind == "read", (form.name, expected.reason)
        for number in range(EACH):
            content = damage(intact, f"{SEED}/{form.name}/{number}")
            if content == intact:
                continue
            outcome = reader.read(index, content)
            if outcome.kind == "read" and outcome.reason != expected.reason:
                is_unmarked = form.name in MAY_LACK_MARKS and not MARKS.search(content)
                outcome = Outcome("unmarked" if is_unmarked else "failed", f"{form.name} was read as something else")
            outcomes.append(outcome)
            if outcome.kind == "failed":
                name = f"{form.name.replace(' ', '-')}-{number}{Path(form.file).suffix}"
                (tmp_path / name).write_bytes(content)
    failed = Counter(outcome.reason for outcome in outcomes if outcome.kind == "failed")
    print(Counter(outcome.kind for outcome in outcomes))  # noqa: T201  # the numbers of a campaign
    assert not failed, (failed, tmp_path)
    assert [outcome for outcome in outcomes if not outcome.has_hint] == []
