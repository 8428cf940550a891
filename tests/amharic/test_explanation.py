"""Explaining how a text is read."""

import pytest

from utils.amharic.explanation import explain, explain_words
from utils.amharic.phonemes import phonemize


def test_every_step_is_kept() -> None:
    found = explain("ሠላም ለዓለም።")
    assert found.written == "ሠላም ለዓለም።"
    assert found.phones == phonemize(found.normalized)
    assert found.latin == "səlam lə’aləm."
    assert [word.phones for word in found.words] == ["səlam", "ləʔaləm"]


@pytest.mark.parametrize(
    ("written", "gemination"),
    [
        ("ገና\u135f", "mark in the text, otherwise word list"),
        ("የልቤን", "affixes: jə- + lbː + -en, stem word list"),
        ("ጠገረመ", "shape CəCəCːəCə"),
        ("ጉጉጎነት", "affixes: ɡuɡuɡo + -nːət, stem not listed"),
        ("ጉልባጎ", "none"),
    ],
)
def test_each_word_says_where_its_geminates_come_from(written: str, gemination: str) -> None:
    (word,) = explain_words(written)
    assert word.gemination.startswith(gemination)


def test_an_override_is_named_as_the_source() -> None:
    (word,) = explain_words("ገና", {"ገና": "ገናː"})
    assert (word.phones, word.gemination) == ("ɡənːa", "override")


def test_unknown_letters_are_counted() -> None:
    found = explain("ሰꬁላም ꬁ")
    assert found.unknown == {"ꬁ": 2}


def test_an_empty_text_has_no_words() -> None:
    assert explain("").words == ()
