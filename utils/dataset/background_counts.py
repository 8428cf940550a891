"""Counts of a dataset that take too long while somebody waits: they are made in the background."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from utils.dataset import statistics
from utils.dataset.metadata import read_language
from utils.dataset.statistics import Account, Statistics
from utils.dataset.store import Store

PAUSE = 5.0  # seconds without an edit before a dataset is counted again


@dataclass(frozen=True, eq=False)
class Counts:
    """What takes too long to be counted while somebody waits; compared by identity, so that it can be a key."""

    revision: int
    statistics: Statistics
    account: Account


class BackgroundCounts:
    """Counts datasets in the background, for everybody who asks."""

    def __init__(self) -> None:
        self._counts: dict[Path, Counts] = {}
        self._running: set[Path] = set()
        self._lock = threading.Lock()

    def latest(self, store: Store) -> Counts | None:
        """Return the latest counts, and start to count again when they are out of date."""
        revision = store.meta("revision")
        with self._lock:
            counts = self._counts.get(store.folder)
            if (counts is None or counts.revision != revision) and store.folder not in self._running:
                self._running.add(store.folder)
                threading.Thread(target=self._count, args=(store.folder,), name="counts", daemon=True).start()
        return counts

    def _count(self, folder: Path) -> None:
        try:
            store = Store(folder)  # reads are kept short, because they block edits
            revision = store.meta("revision")
            while folder in self._counts:  # counting slows down all other work, so it waits for a pause in the edits
                time.sleep(PAUSE)
                before = revision
                revision = store.meta("revision")
                if revision == before:
                    break
            counts = Counts(revision, statistics.count(store, read_language(folder)), statistics.account(store.read()))
            with self._lock:
                self._counts[folder] = counts
        finally:
            with self._lock:
                self._running.discard(folder)
