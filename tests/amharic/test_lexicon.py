"""Tables of data, the word lists and a project's own pronunciations."""

from collections import Counter
from pathlib import Path

import pytest

from utils.amharic import lexicon, tables
from utils.amharic.alphabet import PronunciationError, read
from utils.amharic.tables import DATA, TableError


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


@pytest.mark.parametrize(
    ("line", "message"),
    [("ልብː\tn", "expected an Amharic word"), ("lib\tn\theart", "'lib'"), ("ልብː\tn\theart\tli%", "'%'")],
)
def test_a_bad_line_is_named(line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "words.tsv").write_text(f"# a list\n{line}\n", encoding="utf-8")
    monkeypatch.setattr(lexicon, "FOLDER", tmp_path)
    with pytest.raises(TableError, match=rf"words\.tsv:2: .*{message}"):
        lexicon.words.__wrapped__()


def test_the_first_file_wins_and_closed_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tsv").write_text("ገና\tadv\tstill\nልብː\tn\theart\n", encoding="utf-8")
    (tmp_path / "closed.tsv").write_text("ገናː\tn\tChristmas\n", encoding="utf-8")
    monkeypatch.setattr(lexicon, "FOLDER", tmp_path)
    sources = {key: entry.source for key, entry in lexicon.words.__wrapped__().items() if not entry.is_verb}
    assert sources == {"gEna": "closed", "lb": "a"}


def test_derived_verbs_are_listed_unless_a_noun_with_a_suffix_has_the_same_letters() -> None:
    assert lexicon.words()[read("ተሰበረ")] == lexicon.Entry("tEsEb:ErE", is_verb=True, source="verbs")
    assert read("ነገርን") not in lexicon.words()


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.tsv")), ids=lambda path: path.stem)
def test_every_table_says_where_it_comes_from(path: Path) -> None:
    header = [line for line in path.read_text(encoding="utf-8").splitlines()[:12] if line.startswith("#")]
    assert "own knowledge" in " ".join(header).lower()


@pytest.mark.parametrize(
    ("lines", "message"),
    [("one cell", r"odd\.tsv:2: expected 2"), ("a\t1\nb\t2\na\t3", r"odd\.tsv:4: 'a' appears twice")],
)
def test_a_bad_line_of_a_table_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, message: str
) -> None:
    (tmp_path / "odd.tsv").write_text(f"# comment\n{lines}\n", encoding="utf-8")
    monkeypatch.setattr(tables, "DATA", tmp_path)
    with pytest.raises(TableError, match=message):
        tables.mapping.__wrapped__("odd.tsv")
