"""Phones in Latin letters and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.amharic.alphabet import CONSONANTS, VOWELS
from utils.amharic.latin import SYMBOLS, from_latin, to_latin

GEMINATES = [phone + "ː" for phone in CONSONANTS]


@pytest.mark.parametrize(
    ("phones", "latin"),
    [
        ("səlam", "səlam"), ("kʼwankʼwa", "qwanqwa"), ("lɨbː", "lïbb"), ("t͡ʃʼəw", "č'əw"), ("at͡ʃʼːɨr", "ač'č'ïr"),
        ("d͡ʒəmːərə", "jəmmərə"),
        ("ɨɲːa", "ïñña"), ("jɨh", "yïh"), ("sɨʔɨl", "sï’ïl"), ("ʃaj", "šay"), ("sʼəhaj", "s'əhay"),
        ("ɡəbːa, beta.", "gəbba, beta."),
    ],
)  # fmt: skip
def test_phones_have_their_letters(phones: str, latin: str) -> None:
    assert to_latin(phones) == latin
    assert from_latin(latin) == phones


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tːa", "tta"),
        ("ttʼ", "tːʼ"),
        ("tʼː", "tʼtʼ"),
        ("ttʼ", "tʼt"),
        ("ʃ", "sh"),
        ("kʼ", "q"),
        ("ɡ", "g"),
        ("t'", "tʼ"),
        ("j", "y"),
        ("ttʼː", "tːtʼ"),
    ],
)
def test_different_phones_never_look_alike(one: str, other: str) -> None:
    assert to_latin(one) != to_latin(other)
    assert (from_latin(to_latin(one)), from_latin(to_latin(other))) == (one, other)


@given(
    st.lists(
        st.sampled_from([*CONSONANTS, *GEMINATES, *VOWELS, " ", ",", ".", "?", "-", "'", "’", "|", "_", "5", "q"])
    ).map("".join)
)
def test_any_row_of_phones_comes_back(phones: str) -> None:
    assert from_latin(to_latin(phones)) == phones


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    assert from_latin(to_latin(text)) == text


def test_every_phone_is_written_with_the_announced_symbols() -> None:
    assert set(to_latin(" ".join([*CONSONANTS, *VOWELS, *GEMINATES]))) <= SYMBOLS
