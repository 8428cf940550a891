"""Tables of data, the word lists and a project's own pronunciations."""

from collections import Counter
from pathlib import Path

import pytest

from utils.amharic import lexicon
from utils.amharic.alphabet import PronunciationError, read
from utils.amharic.tables import DATA
from utils.amharic.verbs import TABLE

LISTED = [
    (path.stem, entry)
    for path in sorted(lexicon.FOLDER.glob("*.tsv"))
    if path.name != Path(TABLE).name
    for _, entry in lexicon.read_list(path)
]


def test_no_word_is_listed_twice_with_one_pronunciation() -> None:
    assert len(LISTED) >= 5_000
    counts = Counter((entry.word, entry.codes) for _, entry in LISTED)
    assert [word for word, count in counts.items() if count > 1] == []


def test_every_listed_plural_has_its_geminate() -> None:
    plurals = [entry for _, entry in LISTED if lexicon.bare(entry.codes).endswith("oc")]
    assert [entry for entry in plurals if not entry.codes.endswith("c:")] == []


@pytest.mark.parametrize(("spoken", "codes"), [("ሰናːይ", "sEn:ay"), ("sən:aj", "=sEn:ay")])
def test_an_override_is_marked_letters_or_phones(spoken: str, codes: str) -> None:
    entry, *_ = lexicon.with_overrides({"ሠናይ": spoken})[read("ሰናይ")]
    assert (entry.codes, entry.source) == (codes, "override")


@pytest.mark.parametrize(("written", "spoken", "wrong"), [("ጎራ", "go7", "'7'"), ("abc", "a", "'abc'")])
def test_an_override_of_no_word_or_with_no_phones_is_refused(written: str, spoken: str, wrong: str) -> None:
    with pytest.raises(PronunciationError, match=wrong):
        lexicon.with_overrides({written: spoken})


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.tsv")), ids=lambda path: path.stem)
def test_every_table_says_where_it_comes_from(path: Path) -> None:
    header = [line for line in path.read_text(encoding="utf-8").splitlines()[:12] if line.startswith("#")]
    assert "own knowledge" in " ".join(header).lower()
