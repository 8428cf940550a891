"""Sequences cut into batches; Python itself can do this from 3.12 on."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Cut a sequence into parts of one size; the last may be shorter."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
