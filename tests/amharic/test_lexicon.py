"""Tables of data, the word lists and a project's own pronunciations."""

from collections import Counter
from pathlib import Path

import pytest

from utils.amharic import lexicon
from utils.amharic.alphabet import PronunciationError, read
from utils.amharic.tables import DATA


def test_no_word_is_listed_twice_and_the_list_is_long() -> None:
    assert sum(not entry.is_verb for entry in lexicon.words().values()) >= 1_500
    files = sorted(lexicon.FOLDER.glob("*.tsv"))
    keys = [key for path in files if path.stem != "verbs" for key, _ in lexicon._read_list(path)]
    assert [key for key, count in Counter(keys).items() if count > 1] == []


def test_every_listed_plural_has_its_geminate() -> None:
    plurals = [entry for key, entry in lexicon.words().items() if key.endswith("oc") and not entry.is_verb]
    assert [entry for entry in plurals if not entry.codes.endswith("c:")] == []


@pytest.mark.parametrize(("spoken", "codes"), [("ሰናːይ", "sEn:ay"), ("sən:aj", "=sEn:ay")])
def test_an_override_is_marked_letters_or_phones(spoken: str, codes: str) -> None:
    entry = lexicon.with_overrides({"ሠናይ": spoken})[read("ሰናይ")]
    assert (entry.codes, entry.source) == (codes, "override")


@pytest.mark.parametrize(("written", "spoken", "wrong"), [("ጎራ", "go7", "'7'"), ("abc", "a", "'abc'")])
def test_an_override_of_no_word_or_with_no_phones_is_refused(written: str, spoken: str, wrong: str) -> None:
    with pytest.raises(PronunciationError, match=wrong):
        lexicon.with_overrides({written: spoken})


def test_derived_verbs_are_listed_unless_a_noun_with_a_suffix_has_the_same_letters() -> None:
    assert lexicon.words()[read("ተሰበረ")] == lexicon.Entry("tEsEb:ErE", is_verb=True, source="verbs")
    assert read("ነገርን") not in lexicon.words()


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.tsv")), ids=lambda path: path.stem)
def test_every_table_says_where_it_comes_from(path: Path) -> None:
    header = [line for line in path.read_text(encoding="utf-8").splitlines()[:12] if line.startswith("#")]
    assert "own knowledge" in " ".join(header).lower()
