"""The digest of ``clips.db``: SQLite does not notice that a value has changed.

It is noted a moment after the last change, when the lists are written. Each process compares it once per size and time
of the file. While clips are being changed there is none.
"""

import hashlib
import sqlite3
from pathlib import Path

from utils.core.storage import file_version, read_document, retry_while_in_use, write_document
from utils.dataset.errors import DatasetError

SEAL = "clips.digest.json"
CHANGES, VALID = slice(24, 28), slice(92, 96)  # of the file: two copies of the number of its changes
SEALED = (slice(24), slice(28, 92), slice(100, None))  # what does not differ between copies

_verified: dict[Path, tuple[int, int]] = {}  # databases by their size and time when they were compared


def write(path: Path, db: sqlite3.Connection) -> None:
    """Note the digest of a database, from within a transaction."""
    content = db.serialize()
    write_document(path.with_name(SEAL), {"changes": content[CHANGES].hex(), "sha256": _digest(content)})
    _verified[path] = file_version(path)


def remove(path: Path) -> None:
    """Remove the digest of a database that is going to be changed."""
    retry_while_in_use(lambda: path.with_name(SEAL).unlink(missing_ok=True))


def verify(path: Path, db: sqlite3.Connection) -> None:
    """Compare a database with its digest, which does not hold after another program has changed clips."""
    version = file_version(path)
    if _verified.get(path) == version:
        return
    try:
        sealed = read_document(path.with_name(SEAL))
    except (OSError, ValueError):  # being changed, of version 1.1, or damaged, and then written again
        return
    content = db.serialize()  # not read from the file: closing it would free the locks of this process
    changes = content[CHANGES]
    is_same_state = changes.hex() == sealed["changes"] or changes != content[VALID]
    if is_same_state and _digest(content) != sealed["sha256"]:
        db.close()
        raise DatasetError(path, "changed", SEAL)
    _verified[path] = version


def _digest(content: bytes) -> str:
    digest = hashlib.sha256()
    for part in SEALED:
        digest.update(memoryview(content)[part])
    return digest.hexdigest()
