"""Cut work into batches and groups, choose some of many items, and fetch the next item while one is used."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
Result = TypeVar("Result")


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Cut a sequence into parts of one size, the last may be shorter; ``itertools.batched`` needs Python 3.12."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def grouped(items: Iterable[T], belongs: Callable[[Sequence[T], T], bool]) -> Iterator[list[T]]:
    """Group consecutive items: one that does not belong to the group before it begins another."""
    group: list[T] = []
    for item in items:
        if group and not belongs(group, item):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def evenly_spaced(items: Sequence[T], count: int) -> list[T]:
    """Return at most ``count`` items, spread evenly over all."""
    if count >= len(items):
        return list(items)
    return [items[index * len(items) // count] for index in range(count)]


def prefetch(load: Callable[[T], Result], items: Iterable[T]) -> Iterator[Result]:
    """Load each item in a thread while the one before it is used."""
    with ThreadPoolExecutor(1, "prefetch") as pool:
        pending = None
        for item in items:
            following = pool.submit(load, item)
            if pending:
                yield pending.result()
            pending = following
        if pending:
            yield pending.result()
