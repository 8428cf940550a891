"""The word list: which consonants are geminate, from `data/lexicon/*.tsv`, the verbs and a project's own list."""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from utils.amharic.alphabet import VOWEL_CODES, WORD, PronunciationError, encode_loosely, read
from utils.amharic.tables import DATA, TableError, numbered_cells
from utils.amharic.verbs import TABLE, all_forms

FOLDER = DATA / "lexicon"
# Where two files list the same letters the earlier one wins; files not named here follow in alphabetical order.
_FIRST = ("closed",)
_NOUN_SUFFIXES = "nhX"


class Entry(NamedTuple):
    """A word as it is said: codes with `:` after geminates, or after `=` the complete pronunciation, ɨ included."""

    codes: str
    is_verb: bool
    source: str


Words = Mapping[str, Entry]


@cache
def words() -> dict[str, Entry]:
    """Return every listed word and verb form by its codes without gemination, so homophones meet in one key."""
    listed: dict[str, Entry] = {}
    for path in sorted(FOLDER.glob("*.tsv"), key=lambda path: (path.stem not in _FIRST, path.stem)):
        if path.name != Path(TABLE).name:
            for key, entry in _read_list(path):
                listed.setdefault(key, entry)
    codes = read("\n".join(all_forms().values()))  # all at once: there are more than a hundred thousand
    forms = zip(codes.replace(":", "").split("\n"), codes.split("\n"), strict=True)
    # A verb form that is written like a listed word with -ን, -ህ or -ሽ is met far less often than that word: ነገርን.
    verbs = {
        key: Entry(marked, is_verb=True, source="verbs")
        for key, marked in forms
        if key[-1] not in _NOUN_SUFFIXES or key[:-1] not in listed
    }
    return verbs | listed


def with_overrides(overrides: Mapping[str, str] | None) -> Words:
    """Return the word list with a project's own pronunciations before it; they are found under affixes too."""
    return _merged(frozenset(overrides.items())) if overrides else words()


@lru_cache(maxsize=4)
def _merged(overrides: frozenset[tuple[str, str]]) -> dict[str, Entry]:
    merged = words().copy()
    for written, spoken in overrides:
        if not WORD.fullmatch(written):
            raise PronunciationError(f"override {written!r}: the written form must be one Amharic word")
        merged[_key(written)] = Entry(spoken_codes(spoken), is_verb=False, source="override")
    return merged


def spoken_codes(spoken: str) -> str:
    """Read a pronunciation: Ethiopic letters with ː after geminates, or phones."""
    if WORD.fullmatch(spoken):
        return read(spoken)
    codes = encode_loosely(spoken)
    # The glottal stop before a first vowel is not written in phones, but it is heard after a prefix.
    return "=H" + codes if codes[:1] in VOWEL_CODES else "=" + codes


def _key(marked: str) -> str:
    return read(marked).replace(":", "")


def _read_list(path: Path) -> Iterator[tuple[str, Entry]]:
    for number, cells in numbered_cells(path):
        if not 3 <= len(cells) <= 4 or not WORD.fullmatch(cells[0]):
            expected = "an Amharic word, its kind, its meaning and perhaps its phones, between tabs"
            raise TableError(f"{path}:{number}: expected {expected}; found {cells!r}")
        try:
            codes = spoken_codes(cells[3]) if len(cells) == 4 else read(cells[0])
        except PronunciationError as error:
            raise TableError(f"{path}:{number}: {error}") from error
        yield _key(cells[0]), Entry(codes, cells[1] == "v", path.stem)
