"""The pronunciations of a project: ``pronunciations.tsv`` with the columns written, spoken and note.

Training stores them with the model, in ``text.json``. Preview and speech add what the file of the project has now, so
that a correction is heard at once.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from utils.core import languages
from utils.core.storage import cached_while_unchanged, file_lock, make_folder, write_atomically
from utils.xtts.facts import PronunciationListError
from utils.xtts.language_packs import pack_for

HEADER = ("written", "spoken", "note")
MAX_ROWS = 20_000
NONE: dict[str, str] = {}


class Pronunciation(NamedTuple):
    """How a project says a word."""

    written: str
    spoken: str  # Ethiopic letters with ː after long consonants, or phones; of Latin words and phrases a text
    note: str = ""


def read_pronunciations(path: Path) -> list[Pronunciation]:
    """Read a file of pronunciations; none if it does not exist. Of a word written twice, the last line counts."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeError) as error:
        raise PronunciationListError(str(path), "unreadable", str(error)) from error
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        cells = [" ".join(cell.split()) for cell in line.split("\t")]
        if not any(cells) or line.startswith("#") or tuple(cells[:2]) == HEADER[:2]:
            continue
        if not 2 <= len(cells) <= len(HEADER) or not all(cells[:2]):
            raise PronunciationListError(f"{path}:{number}", "malformed", repr(line[:60]))
        found[cells[0]] = Pronunciation(*cells)
    return list(found.values())


def add_pronunciation(path: Path, written: str, spoken: str, note: str = "", *, language: str = "am") -> str:
    """Add or replace a pronunciation, or remove it if nothing is spoken; return what is heard instead of it.

    Raises:
        PronunciationListError: The word cannot be pronounced like this.
    """
    entry = Pronunciation(*(" ".join(cell.split()) for cell in (written, spoken, note)))
    if not entry.written:
        raise PronunciationListError(entry.written, "empty")
    heard = check(entry, language)
    make_folder(path.parent)
    with file_lock(path.with_name(".pronunciations.lock")):
        listed = {known.written: known for known in read_pronunciations(path)}
        listed.pop(entry.written, None)
        if entry.spoken:
            listed[entry.written] = entry
        _write(path, listed)
    return heard


def check(entry: Pronunciation, language: str) -> str:
    """Return the phones of a written form with this pronunciation; raise if it has none."""
    pack = pack_for(language, overrides={entry.written: entry.spoken} if entry.spoken else None)
    is_amharic = languages.canonical(language) == languages.AMHARIC.code
    if is_amharic and pack.is_respelled(entry.written) and re.search("[A-Za-zɡəɨ]", entry.spoken):
        raise PronunciationListError(entry.written, "not_spoken", entry.spoken)
    return pack.phonemize(pack.normalize(entry.written))


def _write(path: Path, listed: Mapping[str, Pronunciation]) -> None:
    if len(listed) > MAX_ROWS:
        raise PronunciationListError(str(path), "too_many", str(MAX_ROWS))
    write_atomically(path, "".join("\t".join(cells) + "\n" for cells in (HEADER, *listed.values())))


def overrides(path: Path | None) -> dict[str, str]:
    """Return the spoken form of each written form in a file now; it is read again when it has changed."""
    return _overrides_in(path) if path else NONE


@cached_while_unchanged(16)
def _overrides_in(path: Path) -> dict[str, str]:
    return {entry.written: entry.spoken for entry in read_pronunciations(path)}
