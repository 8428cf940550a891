"""Damage done to files by rule and by chance: the same seed always does the same damage.

Each mutation takes the bytes of a file and returns others; a mutant has one to four of them.
"""

import json
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

MOST = 4  # mutations of one file
LARGEST = (
    1 << 21
)  # bytes by which a mutant may grow: chunks that double again and again test our patience and nothing else
DEEP = 20_000  # brackets; a reader that calls itself for each one has no room for so many
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
NUMBERS = (
    b"0 -1 1e308 -1e308 1e999 NaN -Infinity nan inf 2147483648 4294967295 -9223372036854775809 "
    b"18446744073709551616 99999999999999999999999999 0x10 00 1_000 .5 5. 1e-400 \xd9\xa3"
).split()
LENGTHS = (0, 1, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
ODD = (
    b"\xef\xbb\xbf",  # the mark of UTF-8
    b"\xff\xfe",
    b"\x00",
    b"\x00" * 512,
    b"\xff\xc0\x80",  # no UTF-8
    b"\xed\xa0\x80",  # half of a pair
    b"\xe1\x88",  # two thirds of an Ethiopic letter
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
    *(None, True, False, 0, -1, 1 << 70, 1e308, "", "x", "\ud800", "\x00", "../..", [], {}, [[]], {"": None}),
    *("9" * 5000, -(1 << 31), 0.5, "NaN", ["a"] * 300),
)


class Mutant(NamedTuple):
    """A damaged file, and what was done to it."""

    content: bytes
    done: tuple[str, ...]


def mutant(content: bytes, seed: str, only: int | None = None) -> Mutant:
    """Damage a file; the seed says how.

    Args:
        content: The whole file.
        seed: Of the choice of mutations and of everything that they choose.
        only: Place of the one mutation that is done, of those that the seed says; None for all of them.
    """
    dice = random.Random(seed)  # chance that can be repeated, no secret
    most = len(content) + LARGEST
    chosen = list(enumerate(dice.choices(MUTATIONS, k=dice.randint(1, MOST))))
    done = chosen if only is None else chosen[only : only + 1]
    for number, mutation in done:
        content = mutation(content, random.Random(f"{seed}/{number}"))[:most]
    return Mutant(content, tuple(mutation.__name__ for _, mutation in done))


def flip_bits(content: bytes, dice: random.Random) -> bytes:
    """Turn a few bits over, as a bad disk does."""
    changed = bytearray(content)
    for _ in range(dice.choice((1, 1, 2, 8, 32)) if changed else 0):
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def truncate(content: bytes, dice: random.Random) -> bytes:
    """Cut the end off, as a full disk does."""
    return content[: dice.randrange(len(content) + 1)]


def behead(content: bytes, dice: random.Random) -> bytes:
    """Cut the beginning off."""
    return content[dice.randrange(len(content) + 1) :]


def delete_chunk(content: bytes, dice: random.Random) -> bytes:
    """Leave a piece out."""
    start, end = _chunk(content, dice)
    return content[:start] + content[end:]


def repeat_chunk(content: bytes, dice: random.Random) -> bytes:
    """Write a piece several times."""
    start, end = _chunk(content, dice)
    return content[:end] + content[start:end] * dice.choice((1, 1, 2, 50)) + content[end:]


def splice(content: bytes, dice: random.Random) -> bytes:
    """Write a piece over another place, as a lost cluster of a disk does."""
    start, end = _chunk(content, dice)
    at = dice.randrange(len(content) + 1)
    return content[:at] + content[start:end] + content[at + end - start :]


def swap_lines(content: bytes, dice: random.Random) -> bytes:
    """Put the lines into another order."""
    lines = content.split(b"\n")
    one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def strange_number(content: bytes, dice: random.Random) -> bytes:
    """Write a huge number, a negative one or none in the place of one."""
    found = list(NUMBER.finditer(content[:LARGEST]))
    if not found:
        return flip_bits(content, dice)
    place = dice.choice(found)
    return content[: place.start()] + dice.choice(NUMBERS) + content[place.end() :]


def strange_length(content: bytes, dice: random.Random) -> bytes:
    """Write a length over the bytes of a place, most often in the head, where files keep them."""
    size, order = dice.choice((1, 2, 4, 8)), dice.choice(("little", "big"))
    at = dice.randrange(1 + min(len(content), dice.choice((64, 64, 4096, LARGEST))))
    told = dice.choice(LENGTHS) % (1 << 8 * size)
    return content[:at] + told.to_bytes(size, order) + content[at + size :]  # type: ignore[arg-type]


def insert_odd(content: bytes, dice: random.Random) -> bytes:
    """Put in what text seldom holds: marks of byte order, zeros, half letters, signs of every format."""
    at = dice.choice((0, dice.randrange(len(content) + 1)))
    return content[:at] + dice.choice(ODD) + content[at:]


def other_line_ends(content: bytes, dice: random.Random) -> bytes:
    """End the lines as another system does."""
    return content.replace(b"\n", dice.choice((b"\r\n", b"\r", b"\n\n", b"")))


def other_encoding(content: bytes, dice: random.Random) -> bytes:
    """Write the text in another encoding."""
    return content.decode("utf-8", "replace").encode(dice.choice(("utf-16", "utf-16-le", "utf-32", "utf-7")), "replace")


def nest(content: bytes, dice: random.Random) -> bytes:
    """Open many brackets at a place of the file, and sometimes close them."""
    sign, close = dice.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"- ", b""), (b"{", b"}"), (b"<", b">")))
    depth = dice.choice((100, 1000, DEEP))
    place = dice.choice(list(NUMBER.finditer(content[:LARGEST])) or [None])
    start, end = place.span() if place else (0, 0)
    return content[:start] + sign * depth + b"0" + close * dice.choice((0, depth)) + content[end:]


def other_type(content: bytes, dice: random.Random) -> bytes:
    """Put a value of another type into a JSON file, or into one line of it."""
    lines = content.split(b"\n")
    number = dice.randrange(len(lines))
    for text, write in ((content, lambda new: new), (lines[number], lambda new: _with(lines, number, new))):
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return write(json.dumps(_replaced(tree, dice)).encode())
    return strange_number(content, dice)


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(flip_bits, truncate, behead, delete_chunk, repeat_chunk, splice, swap_lines, strange_number, strange_length),
    *(insert_odd, other_line_ends, other_encoding, nest, other_type, other_type),
)


def _chunk(content: bytes, dice: random.Random) -> tuple[int, int]:
    size = dice.choice((1, 2, 4, 16, 64, 512, 4096))
    start = dice.randrange(len(content) + 1)
    return start, min(len(content), start + size)


def _with(lines: list[bytes], number: int, line: bytes) -> bytes:
    return b"\n".join([*lines[:number], line, *lines[number + 1 :]])


def _replaced(tree: Any, dice: random.Random) -> Any:
    """Walk to a place of a tree by chance and change what is there."""
    places: list[tuple[Any, Any]] = []
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
        places += [(node, key) for key in keys]
        nodes += [node[key] for key in keys]
    if not places or dice.random() < 0.05:
        return dice.choice(VALUES)
    parent, key = dice.choice(places[: dice.choice((10, 1000, len(places)))])
    if isinstance(parent, dict) and dice.random() < 0.2:
        del parent[key]
    else:
        parent[key] = dice.choice(VALUES)
    return tree
