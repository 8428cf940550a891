"""Fidel, codes, phones and Latin letters."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from utils.amharic.alphabet import (
    CONSONANTS,
    LATIN_SYMBOLS,
    VOWELS,
    PronunciationError,
    decode,
    encode,
    encode_loosely,
    from_latin,
    read,
    to_latin,
    unknown,
    values,
)

BLOCKS = ((0x1200, 0x135B), (0x1380, 0x1390), (0x2D80, 0x2DE0), (0xAB00, 0xAB30), (0x1E7E0, 0x1E800))
ASSIGNED = [chr(code) for start, end in BLOCKS for code in range(start, end) if unicodedata.category(chr(code)) == "Lo"]
GEMINATES = [phone + "ː" for phone in CONSONANTS]


@pytest.mark.parametrize(
    ("letters", "phones"),
    [
        ("ለ ሉ ሊ ላ ሌ ል ሎ ሏ", "lə lu li la le l lo lwa"), ("ሀ ሐ ኀ ሃ አ ዐ ዓ ኸ ኧ", "ha ha ha ha ʔa ʔa ʔa hə ʔə"),
        ("ቈ ኰ ጐ ኈ ጕ ቋ ኋ", "kʼwə kwə ɡwə hwə ɡwɨ kʼwa hwa"), ("ሠ ፀ ጸ ጬ ፘ ፙ ፚ ዏ", "sə sʼə sʼə t͡ʃʼe rja mja fja wa"),
        ("ᎁ ⶀ ⷈ ꬨ 𞟵", "mwi lwa kjə bə kwi"),
    ],
)  # fmt: skip
def test_letters_have_their_sounds(letters: str, phones: str) -> None:
    assert decode(read(letters)) == phones


def test_every_assigned_letter_is_known_or_reported() -> None:
    assert sum(letter <= "\u135a" for letter in values()) == 326  # all syllables of the base block
    assert set(values()) <= set(ASSIGNED)
    assert set(ASSIGNED) - set(values()) == set(unknown("".join(ASSIGNED)))
    assert unknown("ሰꬁላꬁም") == {"ꬁ": 2}


def test_homophone_letters_read_alike() -> None:
    assert read("ሀገር ሐኪም ኅብረት ሠላም ዓለም ፀሐይ") == read("ሃገር ሀኪም ህብረት ሰላም አለም ጸሃይ")


@pytest.mark.parametrize(
    ("written", "codes"),
    [("አዲː\u0020", "Had:i "), ("ልብ\u135f", "lb:"), ("ቋː", "K:Wa"), ("መː\u135f", "m:E"), ("መ\u135e", "mE")],
)
def test_a_gemination_mark_moves_to_its_consonant(written: str, codes: str) -> None:
    assert read(written) == codes


def test_phones_may_be_typed_loosely() -> None:
    assert decode(encode_loosely(" k'wan:ga ")) == "kʼwanːɡa"
    assert decode(encode_loosely("tʃ'dʒ")) == "t͡ʃʼd͡ʒ"


def test_a_symbol_that_is_no_phone_is_named() -> None:
    with pytest.raises(PronunciationError, match="'ŋ' is not an Amharic phone"):
        encode("baŋk")


@pytest.mark.parametrize(
    ("phones", "latin"),
    [
        ("kʼwankʼwa", "qwanqwa"), ("lɨbː", "lïbb"), ("t͡ʃʼəw", "č'əw"), ("at͡ʃʼːɨr", "ač'č'ïr"), ("d͡ʒəmːərə", "jəmmərə"),
        ("ɨɲːa", "ïñña"), ("sɨʔɨl", "sï’ïl"), ("ʃaj", "šay"), ("sʼəhaj", "s'əhay"), ("ɡəbːa, beta.", "gəbba, beta."),
    ],
)  # fmt: skip
def test_phones_have_their_latin_letters(phones: str, latin: str) -> None:
    assert to_latin(phones) == latin
    assert from_latin(latin) == phones


PHONES = st.lists(
    st.sampled_from([*CONSONANTS, *GEMINATES, *VOWELS, " ", ",", ".", "?", "-", "'", "’", "|", "_", "5", "q"])
).map("".join)


@given(PHONES | st.text())
@example("tːa tta ttʼ tːʼ tʼː tʼtʼ ʃ sh t' tʼ ttʼː tːtʼ")  # alike, but never written alike
def test_latin_letters_are_reversible(text: str) -> None:
    assert from_latin(to_latin(text)) == text


def test_every_phone_is_written_with_the_announced_symbols() -> None:
    assert set(to_latin(" ".join([*CONSONANTS, *VOWELS, *GEMINATES]))) <= LATIN_SYMBOLS
