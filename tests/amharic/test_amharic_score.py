"""The command that scores the front end on word lists, sentences and homographs."""

from pathlib import Path

import pytest

from tools.amharic_score import score

DATA = Path(__file__).parent.parent / "data"


@pytest.mark.parametrize(
    ("row", "kind", "right"),
    [
        ("ሰላም\tsəlam\tnoun", "words", 1),
        ("ሰላም\tsəlːam|sala\tnoun", "words", 0),
        ("news\tሰላም፣ ለዓለም።\tsəlam ləʔaləm", "sentences", 1),
        ("news\tሰላም፣ ለዓለም።\tsəlam ləʔalːəm", "sentences", 0),
        ("ሰላም ለዓለም።\tለዓለም\tləʔaləm", "homographs", 1),
    ],
)
def test_a_list_is_scored_by_its_kind(row: str, kind: str, right: int, tmp_path: Path) -> None:
    (tmp_path / "list.tsv").write_text(f"# a comment\n{row}\n", encoding="utf-8")
    found, results, wrong = score(tmp_path / "list.tsv")
    assert (found, results["all"].right, len(wrong)) == (kind, right, 1 - right)


def test_a_missing_word_of_a_sentence_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "list.tsv").write_text("chat\tሰላም\tsəlam ləʔaləm\n", encoding="utf-8")
    result = score(tmp_path / "list.tsv")[1]["chat"]
    assert (result.right_words, result.words) == (1, 2)


@pytest.mark.parametrize(
    ("name", "least"), [("words", 0.99), ("running", 0.97), ("homographs", 0.93), ("voices", 0.95)]
)
def test_most_words_of_the_development_lists_are_right(name: str, least: float) -> None:
    result = score(DATA / f"amharic_{name}.tsv")[1]["all"]
    assert result.right_words >= least * result.words


def test_long_consonants_of_the_development_words_are_found() -> None:
    rates = score(DATA / "amharic_words.tsv")[1]["all"].score.rates()
    assert rates["geminate F1"] >= 0.98
