"""Mutations of files: each takes bytes and a random generator; the same seed always does the same damage."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

MAX_MUTATIONS = 4  # of one file
MAX_GROWTH = 1 << 21  # bytes: chunks that double again and again only take time
DEEP = 20_000  # brackets; too many for a recursive reader
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


def mutant(content: bytes, seed: str) -> bytes:
    """Damage a file with one to four mutations."""
    rng = random.Random(seed)
    limit = len(content) + MAX_GROWTH
    for number, mutation in enumerate(rng.choices(MUTATIONS, k=rng.randint(1, MAX_MUTATIONS))):
        content = mutation(content, random.Random(f"{seed}/{number}"))[:limit]
    return content


def flip_bits(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8, 32)) if changed else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def behead(content: bytes, rng: random.Random) -> bytes:
    return content[rng.randrange(len(content) + 1) :]


def delete_chunk(content: bytes, rng: random.Random) -> bytes:
    start, end = _chunk(content, rng)
    return content[:start] + content[end:]


def repeat_chunk(content: bytes, rng: random.Random) -> bytes:
    start, end = _chunk(content, rng)
    return content[:end] + content[start:end] * rng.choice((1, 1, 2, 50)) + content[end:]


def splice(content: bytes, rng: random.Random) -> bytes:
    """Overwrite a position with another part, like a lost cluster of a disk."""
    start, end = _chunk(content, rng)
    at = rng.randrange(len(content) + 1)
    return content[:at] + content[start:end] + content[at + end - start :]


def swap_lines(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def strange_number(content: bytes, rng: random.Random) -> bytes:
    """Replace a number by a huge or negative one, or by none."""
    matches = list(NUMBER.finditer(content[:MAX_GROWTH]))
    if not matches:
        return flip_bits(content, rng)
    match = rng.choice(matches)
    return content[: match.start()] + rng.choice(NUMBERS) + content[match.end() :]


def strange_length(content: bytes, rng: random.Random) -> bytes:
    """Overwrite bytes with a length, most often in the header, where files store them."""
    size, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    at = rng.randrange(1 + min(len(content), rng.choice((64, 64, 4096, MAX_GROWTH))))
    length = rng.choice(LENGTHS) % (1 << 8 * size)
    return content[:at] + length.to_bytes(size, order) + content[at + size :]  # type: ignore[arg-type]


def insert_odd(content: bytes, rng: random.Random) -> bytes:
    at = rng.choice((0, rng.randrange(len(content) + 1)))
    return content[:at] + rng.choice(ODD) + content[at:]


def other_line_ends(content: bytes, rng: random.Random) -> bytes:
    return content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"")))


def other_encoding(content: bytes, rng: random.Random) -> bytes:
    return content.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-7")), "replace")


def nest(content: bytes, rng: random.Random) -> bytes:
    """Open many brackets somewhere, and sometimes close them."""
    sign, close = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"- ", b""), (b"{", b"}"), (b"<", b">")))
    depth = rng.choice((100, 1000, DEEP))
    match = rng.choice(list(NUMBER.finditer(content[:MAX_GROWTH])) or [None])
    start, end = match.span() if match else (0, 0)
    return content[:start] + sign * depth + b"0" + close * rng.choice((0, depth)) + content[end:]


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


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(flip_bits, truncate, behead, delete_chunk, repeat_chunk, splice, swap_lines, strange_number, strange_length),
    *(insert_odd, other_line_ends, other_encoding, nest, other_type, other_type),
)


def _chunk(content: bytes, rng: random.Random) -> tuple[int, int]:
    size = rng.choice((1, 2, 4, 16, 64, 512, 4096))
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + size)


def _replace_value(tree: Any, rng: random.Random) -> Any:
    """Replace or delete a random value of a tree."""
    items: list[tuple[Any, Any]] = []
    nodes = [tree]
    while nodes:
        node = nodes.pop()
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
