"""The tables that show what the model reads."""

from utils.amharic import explain
from utils.ui.tabs.pronunciation import MAX_WORDS, show


def test_every_station_of_a_text_is_shown() -> None:
    found = explain("3 ልጆች")
    shown = show(found, "en")
    assert all(text in shown for text in (found.written, found.normalized, found.phones, found.latin))
    assert all(word.gemination in shown for word in found.words)


def test_what_is_left_out_is_named() -> None:
    assert "😀 × 2" in show(explain("ሰላም 😀😀"), "en")


def test_nothing_that_was_typed_becomes_html() -> None:
    assert "<img" not in show(explain("<img src=x> ሰላም"), "en")


def test_a_long_text_shows_its_first_words() -> None:
    shown = show(explain("ሰላም " * (MAX_WORDS + 7)), "en")
    assert "7" in shown.rpartition("</table>")[2]
    assert shown.count("<tr>") == MAX_WORDS + 6


def test_an_empty_text_says_so() -> None:
    assert "<table" not in show(explain("  "), "am")
