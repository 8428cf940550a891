"""Text to phones, and what explains them."""

import logging
import re
import sys
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.amharic.test_alphabet import ASSIGNED
from utils.amharic.alphabet import PHONES, from_latin, to_latin, values
from utils.amharic.explanation import explain, explain_words
from utils.amharic.phonemes import _epitran, phonemize

ETHIOPIC = re.compile("[\u1200-\u135a\u1380-\u138f\u2d80-\u2dde\uab01-\uab2e\U0001e7e0-\U0001e7fe]")
AMHARIC = st.text(st.sampled_from([*values(), " ", "።", "፣", "\u135f", "ː", "5", "x"]))


def test_all_but_words_and_quotation_marks_is_unchanged() -> None:
    assert phonemize("ሰላም፣  ቤት 12 ok\nልጅ።") == "səlam,  bet 12 ok\nlɨd͡ʒ."
    assert phonemize('"ሰላም" \'ቤት\' በ"አገር"') == "səlam bet bəʔaɡər"


def test_only_known_backends_are_accepted() -> None:
    assert phonemize("ሰላም፣ ዓለም።", "fidel") == "ሰላም፣ ዓለም።"
    with pytest.raises(ValueError, match="rules, epitran, fidel"):
        phonemize("ሰላም", "espeak")


def test_a_mark_in_the_text_and_an_override_are_honoured_after_prefixes_too() -> None:
    assert phonemize("ገና\u135f ገና") == "ɡənːa ɡəna"
    assert phonemize("ገና የገናን", overrides={"ገና": "gən:a"}) == "ɡənːa jəɡənːan"
    assert phonemize("ኤርትራ የኤርትራ", overrides={"ኤርትራ": "ertra"}) == "ertra jəʔertra"  # with a glottal stop


def test_every_known_letter_is_spoken_in_known_phones() -> None:
    phones = phonemize(" ".join(values())).split(" ")
    assert len(phones) == len(values())
    assert all(phones)
    assert set("".join(phones)) <= set("".join(PHONES) + "ː")


@given(st.text())
@example(" ".join(f"{letter} ሰ{letter}ላ{letter}" for letter in ASSIGNED))
def test_no_ethiopic_letter_is_left_of_any_text(text: str) -> None:
    assert not ETHIOPIC.search(phonemize(text))


@given(AMHARIC)
def test_phones_in_latin_letters_are_read_back(text: str) -> None:
    phones = phonemize(text)
    assert from_latin(to_latin(phones)) == phones


@given(AMHARIC)
def test_spaces_and_digits_are_neither_lost_nor_added(text: str) -> None:
    signs = " 5x,."
    written = Counter(text.replace("።", ".").replace("፣", ","))
    spoken = Counter(phonemize(text))
    assert {sign: spoken[sign] for sign in signs} == {sign: written[sign] for sign in signs}


def test_long_words_take_linear_time() -> None:
    assert len(phonemize("ትክልስብ" * 20_000)) > 100_000
    assert len(phonemize("ይዘጋል " * 20_000)) > 100_000  # an ambiguous word in a sentence without end


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "phones"),
    [
        ("ኧረ ጐንደር ቈላ ሀገር አገር ዐርብ", "ərə ɡwəndər kʼwəla haɡər aɡər arɨb"),
        ("ቅዳሜ ጽዮን ⶀ ፀሐይ፣ ቤት", "kʼɨdame sʼɨjon lwa sʼəhaj, bet"),
    ],
)
def test_the_known_errors_of_epitran_are_fixed(written: str, phones: str) -> None:
    pytest.importorskip("epitran")
    assert phonemize(written, "epitran") == phones


@pytest.mark.slow
def test_epitran_leaves_no_letter_over() -> None:
    pytest.importorskip("epitran")
    before = logging.getLogger().level
    assert not ETHIOPIC.search(phonemize(" ".join(values()), "epitran"))
    assert logging.getLogger().level == before


def test_a_missing_epitran_is_reported_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "epitran", None)
    _epitran.cache_clear()
    with pytest.raises(ImportError, match="pip install epitran"):
        phonemize("ሰላም", "epitran")


def test_an_explanation_has_every_step() -> None:
    explanation = explain("ሠላም ለዓለም።")
    assert explanation.written == "ሠላም ለዓለም።"
    assert explanation.phones == phonemize(explanation.normalized)
    assert explanation.latin == "səlam lə’aləm."
    assert [word.phones for word in explanation.words] == ["səlam", "ləʔaləm"]
    assert explain("ሰꬁላም ꬁ").unknown == {"ꬁ": 2}


@pytest.mark.parametrize(
    ("written", "gemination"),
    [
        ("ገና\u135f", "mark in the text, otherwise word list"), ("የልቤን", "jə- + lbː + -en, nouns_body_family: ልብː"),
        ("ጠገረመ", "tʼəɡərːəm + -ə, template 1ə2ə3ːə4"), ("ጉጉጎነት", "ɡuɡuɡo + -nːət, not listed"), ("ጉልባጎ", "not listed"),
    ],
)  # fmt: skip
def test_each_word_says_where_its_geminates_come_from(written: str, gemination: str) -> None:
    (word,) = explain_words(written)
    assert word.gemination.startswith(gemination)
