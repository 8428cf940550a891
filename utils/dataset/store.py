"""The store of a dataset: its clips and recordings, their order in lists, and the history of edits."""

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from utils.dataset.clip import COLUMNS, REPLACED, Clip, Source, clip_of_row, columns_of, row_of_source, source_of_row
from utils.dataset.database import Database
from utils.dataset.errors import DatasetError

if TYPE_CHECKING:
    import pandas as pd

QUOTED = [f'"{name}"' for name in COLUMNS]
SELECT = f"SELECT {', '.join(QUOTED)} FROM clips"
UNRANKED = -2  # the doubt of a clip that is new or has another status; other edits leave a clip in its place in a list
UPSERT = (
    f"INSERT INTO clips ({', '.join(QUOTED)}, doubt) VALUES ({', '.join(f':{name}' for name in COLUMNS)}, {UNRANKED}) "
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in QUOTED[1:])}, "
    f"doubt = iif(status = excluded.status AND reason = excluded.reason, doubt, {UNRANKED})"
)
# How suspicious a clip is. Excluded clips come first, then those in use that somebody should listen to. Replaced ones
# come last, and approved ones are not suspicious at all.
# Each term is between 0 and 1; what was not measured adds nothing.
TERMS = (
    "(30 - snr_db) / 30",
    "1 - confidence",
    "second_cer",
    "text_match / -8",  # half of what texts of other clips have
    "abs(chars_per_second / nullif((SELECT value FROM meta WHERE name = 'pace'), 0) - 1)",
    "100 * clipping",
    "2 * (0.5 - speech_ratio)",
    "trim(text) = ''",
)
DOUBT = f"""CASE
  WHEN status = 'excluded' AND reason IN ({", ".join(f"'{reason}'" for reason in sorted(REPLACED))}) THEN -1
  WHEN status = 'kept' AND reason = 'approved' THEN 0
  ELSE ((status = 'excluded') + (reason <> '')) * {len(TERMS)}
    + {" + ".join(f"coalesce(min(1, max(0, {term})), 0)" for term in TERMS)}
END"""


PAGE_SIZE = 20
ORDERS = {
    "worst": "doubt DESC",
    "recording": "source, start",
    "longest": '"end" - start DESC',
    "shortest": '"end" - start',
    "noisiest": "snr_db IS NULL, snr_db",
    "newest": "number DESC",
}
STATUSES = {  # SQL conditions by the status of a view; any other status means all clips
    "kept": "status = 'kept'",
    "unchecked": "status = 'kept' AND reason <> 'approved'",
    "approved": "status = 'kept' AND reason = 'approved'",
    "excluded": "status = 'excluded'",
}
WHY = "iif(reason = 'other', note, reason)"  # version 1.1 stored a person's own words as the reason
REPAIR = "repair/"  # and the id of a clip: a change that is proposed for it
FINDING = "list"  # what was found about the list that the changes come from
UNDO = "SELECT number, name FROM edits WHERE NOT undone ORDER BY number DESC LIMIT 1"
REDO = "SELECT number, name FROM edits WHERE undone ORDER BY number LIMIT 1"

Change = tuple[str, str | None, str]  # of an edit: a clip with its columns before, if there was one, and after, as JSON


class View(NamedTuple):
    """A choice of clips, and their order."""

    status: str = "kept"  # all, kept, unchecked, approved or excluded
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


class EditStep(NamedTuple):
    """A step of the edit history, with the columns to which it brings each clip; None removes the clip."""

    number: int
    name: str
    clips: dict[str, str | None]


@dataclass
class Dataset:
    """The whole content of a dataset at one moment."""

    clips: dict[str, Clip] = field(default_factory=dict)  # by id, in the order they were added
    recordings: dict[str, Source] = field(default_factory=dict)  # by content hash
    files: dict[str, Source] = field(default_factory=dict)  # the latest entry of each path

    @property
    def kept(self) -> list[Clip]:
        return [clip for clip in self.clips.values() if clip.status == "kept"]

    @property
    def excluded(self) -> list[Clip]:
        return [clip for clip in self.clips.values() if clip.status == "excluded"]

    @property
    def failed(self) -> list[Source]:
        return [source for source in self.files.values() if source.bad]


class Store(Database):
    """The clips and recordings of one dataset folder."""

    def read(self) -> Dataset:
        """Read everything; a folder without a dataset is empty."""
        dataset = Dataset()
        with self.reading():
            sources = self.rows("SELECT * FROM sources ORDER BY number")
            dataset.clips = {clip.id: clip for clip in self.clips()}
        for row in sources:
            source = source_of_row(row[1:])
            dataset.files[source.path] = source
            if source.recording and not source.bad:
                dataset.recordings.setdefault(source.recording, source)
        return dataset

    def _clips(self, condition: str, *values: object) -> list[Clip]:
        return [*map(clip_of_row, self.rows(f"{SELECT} WHERE {condition}", *values))]

    def clips(self, *, status: str = "", split: str = "", recording: str = "") -> list[Clip]:
        """Read clips, by default all, in the order they were added."""
        chosen = {"status": status, "split": split, "recording": recording}
        conditions = [f"{name} = ?" for name, value in chosen.items() if value] or ["1"]
        return self._clips(f"{' AND '.join(conditions)} ORDER BY number", *filter(None, chosen.values()))

    def find(self, ids: Iterable[str]) -> dict[str, Clip]:
        """Read clips by their ids; unknown ids are left out."""
        clips = self._clips("id IN (SELECT value FROM json_each(?))", json.dumps(list(ids)))
        return {clip.id: clip for clip in clips}

    def following(self, clip: Clip) -> Clip | None:
        """Read the kept clip that follows another one in its recording."""
        condition = (
            "recording = ? AND status = 'kept' AND id <> ? AND start >= ? AND \"end\" > ? ORDER BY start LIMIT 1"
        )
        return next(iter(self._clips(condition, clip.recording, clip.id, clip.span.start, clip.span.end)), None)

    # --- what the page shows: nothing loads 50,000 clips ---

    def page(self, view: View, number: int) -> ClipPage:
        """Read one page of a view; beyond the last page it is the last one."""
        condition, values = _condition(view)
        with self.reading():
            ((total,),) = self.rows(f"SELECT count(*) FROM clips WHERE {condition}", *values)
            pages = max(1, -(-total // PAGE_SIZE))
            number = min(max(1, number), pages)
            order = f"{ORDERS.get(view.order, ORDERS['worst'])}, number LIMIT ? OFFSET ?"
            clips = self._clips(f"{condition} ORDER BY {order}", *values, PAGE_SIZE, (number - 1) * PAGE_SIZE)
        return ClipPage(clips, number, pages, total)

    def reasons(self) -> dict[str, int]:
        """Count the excluded clips by reason, or by the person's own words, the most frequent first."""
        query = f"SELECT {WHY}, count(*) FROM clips WHERE status = 'excluded' GROUP BY 1 ORDER BY 2 DESC, min(number)"
        return dict(self._counted(query))

    def totals(self) -> dict[str, Total]:
        """Count kept, excluded, approved, train and eval clips; all but the excluded ones are kept."""
        # grouped as the index is, so that nothing is sorted
        query = 'SELECT status, reason, split, count(*), sum("end" - start) FROM clips GROUP BY status, reason, split'
        found = dict.fromkeys(("kept", "excluded", "approved", "train", "eval"), Total(0, 0.0))
        for status, reason, split, clips, seconds in self._counted(query):
            of_kept = (split, "approved" if reason == "approved" else "") if status == "kept" else ()
            for name in filter(None, (status, *of_kept)):
                found[name] = Total(found[name].clips + clips, found[name].seconds + seconds)
        return found

    def _counted(self, query: str) -> list[Any]:
        return _rows(self.folder, self.meta("revision"), query)

    def count_recordings(self) -> int:
        """Count the recordings that are finished."""
        query = "SELECT count(DISTINCT recording) FROM sources WHERE recording <> '' AND reason = ''"
        return int(next(self.rows(query))[0])

    # --- the edit history ---

    def record(self, name: str, changes: Iterable[Change]) -> None:
        """Add a step to the history; those that were undone can no longer be redone."""
        with self.transaction() as db:
            db.execute("DELETE FROM edits WHERE undone")
            number = db.execute("INSERT INTO edits (name) VALUES (?)", [name]).lastrowid
            db.executemany("INSERT INTO changes VALUES (?, ?, ?, ?)", [(number, *change) for change in changes])

    def step(self, *, undo: bool) -> EditStep | None:
        """Return the step that would be undone, or redone."""
        with self.reading():
            found = next(self.rows(UNDO if undo else REDO), None)
            if found is None:
                return None
            number, name = found
            side = "before" if undo else "after"
            clips = self.rows(f"SELECT clip, {side} FROM changes WHERE edit = ?", number)
        return EditStep(number, name, dict(clips))

    def mark(self, step: EditStep, *, undone: bool) -> None:
        with self.transaction() as db:
            db.execute("UPDATE edits SET undone = ? WHERE number = ?", [undone, step.number])

    def last_change(self, clip: str) -> tuple[str | None] | None:
        """Return the columns of a clip before its last change: None in a tuple if an edit made it."""
        query = "SELECT before FROM changes JOIN edits ON edit = number WHERE clip = ? AND NOT undone"
        return next(self.rows(f"{query} ORDER BY edit DESC LIMIT 1", clip), None)

    def table(self) -> "pd.DataFrame":
        """Return all clips as a table, with their duration in ``seconds``."""
        import pandas as pd

        with self.reading() as db:
            found = db.execute(f"{SELECT} ORDER BY number")
            columns = [name for name, *_ in found.description]
            rows = found.fetchall()
        table = pd.DataFrame.from_records(rows, columns=columns, coerce_float=True)
        return table.assign(seconds=table["end"] - table["start"])

    def add(self, source: Source, clips: Iterable[Clip]) -> None:
        """Add a recording with its clips, whose audio must be on disk."""
        with self.transaction():
            self.put(clips)
            self.note(source)

    def propose(self, changes: Mapping[str, str]) -> None:
        """Store a change of clips, as JSON, that a person may accept."""
        with self.transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", [(f"{REPAIR}{name}", new) for name, new in changes.items()]
            )

    def proposed(self) -> dict[str, str]:
        """Return the changes that were proposed for clips whose text is still the doubted one."""
        query = f"""SELECT id, value FROM meta JOIN clips ON name = '{REPAIR}' || id
            WHERE status = 'excluded' AND reason = 'text does not match' AND other_text <> ''"""
        return dict(self.rows(query))

    def note(self, source: Source) -> None:
        row = row_of_source(source)
        with self.transaction() as db:
            db.execute(f"INSERT INTO sources VALUES (NULL{', ?' * len(row)})", row)

    def put(self, clips: Iterable[Clip]) -> None:
        """Add clips, or replace those with the same id."""
        rows = [columns_of(clip) for clip in clips]
        with self.transaction() as db:
            db.executemany(UPSERT, rows)
            db.executemany(f"UPDATE clips SET doubt = {DOUBT} WHERE id = :id AND doubt = {UNRANKED}", rows)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove clips; their audio stays on disk."""
        with self.transaction() as db:
            db.executemany("DELETE FROM clips WHERE id = ?", [(name,) for name in ids])

    def rank(self) -> None:
        """Rank all clips again after many have changed: the usual pace of the dataset may be another."""
        with self.transaction() as db:
            paces = [pace for (pace,) in db.execute("SELECT chars_per_second FROM clips WHERE chars_per_second > 0")]
            db.execute("UPDATE meta SET value = ? WHERE name = 'pace'", [median(paces) if paces else 0.0])
            db.execute(f"UPDATE clips SET doubt = {DOUBT}")


def _condition(view: View) -> tuple[str, list[str]]:
    conditions = [STATUSES.get(view.status, "1")]
    values = []
    if view.reason:
        conditions.append(f"status = 'excluded' AND {WHY} = ?")
        values.append(view.reason)
    if search := view.search.strip():
        pattern = "%" + "".join(f"\\{sign}" if sign in "\\%_" else sign for sign in search) + "%"
        conditions.append(r"(text LIKE ? ESCAPE '\' OR source LIKE ? ESCAPE '\' OR id LIKE ? ESCAPE '\')")
        values += [pattern] * 3
    return " AND ".join(conditions), values


@functools.lru_cache(maxsize=16)
def _rows(folder: Path, revision: int, query: str) -> list[Any]:  # noqa: ARG001  # a revision has one answer
    """Read the rows of a query over all clips, once for each revision of a dataset."""
    return list(Database(folder).rows(query))


def open_store(folder: Path) -> Store:
    """Return the store of a dataset that must exist."""
    store = Store(folder)
    if not store.exists:
        raise DatasetError(folder, "missing")
    return store


def load_dataset(folder: Path) -> Dataset:
    return open_store(folder).read()
