"""The database of a dataset: one SQLite file, where every change is a transaction.

``clips.db`` uses SQLite's rollback journal. Between two changes the dataset is this one file, so a copied folder is
complete, and it works on network drives. The write-ahead log needs a second file and shared memory for that.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from utils.core.errors import AmharicTtsError, DiskFullError
from utils.core.storage import atomic_writer, file_lock, make_folder
from utils.dataset import seal
from utils.dataset.clip import COLUMNS, SCORES
from utils.dataset.errors import DatasetError, StoreError

DATABASE = "clips.db"
LOCK = ".lock"  # whoever changes clips holds it; readers need none
VERSION = 1
BUSY_SECONDS = 30.0
TYPES = dict.fromkeys(["start", "end", *SCORES], "REAL")
SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value);
INSERT INTO meta VALUES ('revision', 0), ('lists_revision', -1), ('pace', 0.0);
CREATE TABLE sources (number INTEGER PRIMARY KEY, recording TEXT, path TEXT, size INTEGER, changed INTEGER,
  seconds REAL, reason TEXT, warnings TEXT);
CREATE TABLE clips (number INTEGER PRIMARY KEY, {", ".join(f'"{name}" {TYPES.get(name, "TEXT")}' for name in COLUMNS)},
  doubt REAL NOT NULL DEFAULT 0, UNIQUE (id));
CREATE INDEX clips_by_doubt ON clips (status, doubt);
CREATE INDEX clips_by_reason ON clips (status, reason, split, start, "end");
CREATE INDEX clips_by_recording ON clips (recording, start);
CREATE TABLE edits (number INTEGER PRIMARY KEY, name TEXT, undone INTEGER NOT NULL DEFAULT 0);
CREATE TABLE changes (edit INTEGER REFERENCES edits ON DELETE CASCADE, clip TEXT, before TEXT, after TEXT);
CREATE INDEX changes_by_edit ON changes (edit);
CREATE INDEX changes_by_clip ON changes (clip);
PRAGMA user_version = {VERSION};
"""


class Database:
    """The database of one dataset folder, made by the first change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self._open: sqlite3.Connection | None = None

    @property
    def exists(self) -> bool:
        return self.path.is_file()

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """Make several changes as one: all of them or none. Calls inside join the outer transaction."""
        count_change = "UPDATE meta SET value = value + 1 WHERE name = 'revision'"
        return self._session(["BEGIN IMMEDIATE"], [count_change, "COMMIT"], create=True)

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Read from one consistent state; calls inside read from it too."""
        return self._session(["PRAGMA query_only = ON", "BEGIN"], [], create=False)

    def rows(self, query: str, *values: object) -> Iterator[Any]:
        """Read the rows that a query finds."""
        with self.reading() as db:
            return iter(db.execute(query, values).fetchall())

    @contextmanager
    def _session(self, first: Sequence[str], last: Sequence[str], *, create: bool) -> Iterator[sqlite3.Connection]:
        if self._open:
            yield self._open
            return
        with self._connection(create=create) as db:
            try:
                for statement in first:
                    db.execute(statement)
                self._open = db
                yield db
                if last:
                    seal.remove(self.path)
                for statement in last:
                    db.execute(statement)
            finally:
                self._open = None  # closing the connection rolls back what was not committed

    def meta(self, name: str) -> Any:  # noqa: ANN401  # a number or text
        """Read a value of the store, such as ``revision``, which grows with every change and differs between stores."""
        row = next(self.rows("SELECT value FROM meta WHERE name = ?", name), None)
        return row[0] if row else None

    def set_meta(self, name: str, value: object) -> None:
        """Set a value of the store; this does not count as a change of the dataset."""
        with self._session(["BEGIN IMMEDIATE"], ["COMMIT"], create=True) as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [name, value])

    def seal(self) -> None:
        """Note the digest of the database until its next change."""
        with self.reading() as db:
            seal.write(self.path, db)

    @contextmanager
    def _connection(self, *, create: bool) -> Iterator[sqlite3.Connection]:
        try:
            with closing(self._connect(create=create)) as db:
                yield db
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the message of an error may hold text of the file
            raise _explained(self.path, error) from error

    def _connect(self, *, create: bool) -> sqlite3.Connection:
        if not self.exists:
            if not create:
                return _new_database()
            self._create()
        db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        db.executescript("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA synchronous = FULL;")
        seal.verify(self.path, db)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            db.close()
            raise DatasetError(self.path, "format", str(version))
        return _with_new_columns(db)

    def _create(self) -> None:
        """Write a new database, complete or not at all."""
        make_folder(self.folder)
        with file_lock(self.folder / ".create.lock"):
            if self.path.is_file():
                return
            with closing(_new_database()) as db, atomic_writer(self.path) as file:
                # unlike that of a dataset that was here before, which the page remembers
                db.execute("UPDATE meta SET value = random() & 0xffffffffffff WHERE name = 'revision'")
                file.write(db.serialize())


def _explained(path: Path, error: Exception) -> AmharicTtsError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return DiskFullError(path, str(error))
    if name.startswith("SQLITE_BUSY"):
        return StoreError(path, "busy")
    return DatasetError(path, "damaged", str(error))


def _with_new_columns(db: sqlite3.Connection) -> sqlite3.Connection:
    """Add the columns that a database of an earlier version lacks; one that cannot be changed is copied to memory."""
    known = {row[1] for row in db.execute("PRAGMA table_info(clips)")}
    missing = [name for name in COLUMNS if name not in known]
    if not missing:
        return db
    text = "TEXT NOT NULL DEFAULT ''"
    statements = [f'ALTER TABLE clips ADD COLUMN "{name}" {TYPES.get(name, text)}' for name in missing]
    try:
        db.execute("BEGIN IMMEDIATE")
        for statement in statements:
            db.execute(statement)
        db.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname.startswith("SQLITE_READONLY"):
            copy = sqlite3.connect(":memory:", isolation_level=None)
            db.backup(copy)
            db.close()
            copy.executescript("; ".join(statements))
            return copy
        if "duplicate column" not in str(error):  # another process was faster
            raise
        db.execute("ROLLBACK")
    return db


def _new_database() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(SCHEMA)
    return db
