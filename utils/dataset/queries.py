"""What the page shows of a dataset: a page of clips, and counts. These are queries: nothing loads 50,000 clips."""

import threading
import time
from pathlib import Path
from typing import NamedTuple

from utils.dataset import statistics
from utils.dataset.clip import Clip
from utils.dataset.facts import Reason
from utils.dataset.metadata import read_language
from utils.dataset.statistics import Account, Statistics
from utils.dataset.store import Store

PAGE_SIZE = 20
WHY = f"iif(reason = '{Reason.OTHER}', note, reason)"  # version 1.1 stored a person's own words as the reason
PAUSE = 5.0  # seconds without an edit before a dataset is counted again
ORDERS = {
    "worst": "doubt DESC",
    "recording": "source, start",
    "longest": '"end" - start DESC',
    "shortest": '"end" - start',
    "noisiest": "snr_db IS NULL, snr_db",
}


class View(NamedTuple):
    """A choice of clips, and their order."""

    status: str = "kept"  # all, kept, approved or excluded
    reason: str = ""  # why they were excluded; empty for any reason
    search: str = ""  # part of the text, the path of the recording or the id
    order: str = "worst"  # a key of ``ORDERS``


class ClipPage(NamedTuple):
    """A page of a view."""

    clips: list[Clip]
    number: int  # from 1
    pages: int
    total: int  # clips of all pages


class Total(NamedTuple):
    """Number and duration of some clips."""

    clips: int
    seconds: float


def page(store: Store, view: View, number: int) -> ClipPage:
    """Return one page of a view; beyond the last page it is the last one."""
    condition, values = _condition(view)
    with store.reading() as db:
        total = db.execute(f"SELECT count(*) FROM clips WHERE {condition}", values).fetchone()[0]
        pages = max(1, -(-total // PAGE_SIZE))
        number = min(max(1, number), pages)
        order = f"{ORDERS.get(view.order, ORDERS['worst'])}, number LIMIT ? OFFSET ?"
        clips = store.clips(f"{condition} ORDER BY {order}", *values, PAGE_SIZE, (number - 1) * PAGE_SIZE)
    return ClipPage(clips, number, pages, total)


def _condition(view: View) -> tuple[str, list[str]]:
    conditions, values = ["1"], list[str]()
    if view.status == "approved":
        conditions.append("status = 'kept' AND reason = ?")
        values.append(Reason.APPROVED)
    elif view.status in {"kept", "excluded"}:
        conditions.append("status = ?")
        values.append(view.status)
    if view.reason:
        conditions.append(f"status = 'excluded' AND {WHY} = ?")
        values.append(view.reason)
    if search := view.search.strip():
        pattern = "%" + "".join(f"\\{sign}" if sign in "\\%_" else sign for sign in search) + "%"
        conditions.append(r"(text LIKE ? ESCAPE '\' OR source LIKE ? ESCAPE '\' OR id LIKE ? ESCAPE '\')")
        values += [pattern] * 3
    return " AND ".join(conditions), values


def reasons(store: Store) -> dict[str, int]:
    """Count the excluded clips by reason, or by the person's own words, the most frequent first."""
    query = f"SELECT {WHY}, count(*) FROM clips WHERE status = 'excluded' GROUP BY 1 ORDER BY 2 DESC, min(number)"
    with store.reading() as db:
        return dict(db.execute(query).fetchall())


def totals(store: Store) -> dict[str, Total]:
    """Count kept, excluded, train and eval clips; train and eval are the kept ones of each side."""
    # grouped as the index is, so that nothing is sorted
    query = 'SELECT status, split, count(*), sum("end" - start) FROM clips GROUP BY status, reason, split'
    found = dict.fromkeys(("kept", "excluded", "train", "eval"), Total(0, 0.0))
    with store.reading() as db:
        for status, split, clips, seconds in db.execute(query):
            for name in filter(None, (status, split if status == "kept" else "")):
                found[name] = Total(found[name].clips + clips, found[name].seconds + seconds)
    return found


def count_recordings(store: Store) -> int:
    """Count the recordings that are finished."""
    with store.reading() as db:
        query = "SELECT count(DISTINCT recording) FROM sources WHERE recording <> '' AND reason = ''"
        return int(db.execute(query).fetchone()[0])


class Counts(NamedTuple):
    """What takes too long to be counted while somebody waits."""

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
                before, revision = revision, store.meta("revision")
                if revision == before:
                    break
            counts = Counts(revision, statistics.count(store, read_language(folder)), statistics.account(store.read()))
            with self._lock:
                self._counts[folder] = counts
        finally:
            with self._lock:
                self._running.discard(folder)
