"""Work cut into batches, and the next one fetched while one is worked on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
Read = TypeVar("Read")


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Cut a sequence into parts of one size, as Python itself can from 3.12 on; the last may be shorter."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def read_ahead(read: Callable[[T], Read], items: Iterable[T]) -> Iterator[Read]:
    """Read each item in a thread while the one before it is worked on."""
    with ThreadPoolExecutor(1, "reader") as thread:
        waiting: Future[Read] | None = None
        for item in items:
            coming = thread.submit(read, item)
            if waiting:
                yield waiting.result()
            waiting = coming
        if waiting:
            yield waiting.result()
