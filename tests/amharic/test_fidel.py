"""Letters to codes."""

import unicodedata

import pytest

from utils.amharic.alphabet import PronunciationError, decode, encode, encode_loosely
from utils.amharic.fidel import WORD, read, unknown, values

BLOCKS = ((0x1200, 0x135B), (0x1380, 0x1390), (0x2D80, 0x2DE0), (0xAB00, 0xAB30), (0x1E7E0, 0x1E800))
ASSIGNED = [chr(code) for start, end in BLOCKS for code in range(start, end) if unicodedata.category(chr(code)) == "Lo"]


@pytest.mark.parametrize(
    ("letter", "phones"),
    [
        ("ለ", "lə"), ("ሉ", "lu"), ("ሊ", "li"), ("ላ", "la"), ("ሌ", "le"), ("ል", "l"), ("ሎ", "lo"), ("ሏ", "lwa"),
        ("ሀ", "ha"), ("ሐ", "ha"), ("ኀ", "ha"), ("ሃ", "ha"), ("አ", "ʔa"), ("ዐ", "ʔa"), ("ዓ", "ʔa"), ("ኸ", "hə"),
        ("ኧ", "ʔə"),
        ("ቈ", "kʼwə"), ("ኰ", "kwə"), ("ጐ", "ɡwə"), ("ኈ", "hwə"), ("ጕ", "ɡwɨ"), ("ቋ", "kʼwa"), ("ኋ", "hwa"),
        ("ሠ", "sə"), ("ፀ", "sʼə"), ("ጸ", "sʼə"), ("ጬ", "t͡ʃʼe"), ("ፘ", "rja"), ("ፙ", "mja"), ("ፚ", "fja"), ("ዏ", "wa"),
        ("ᎁ", "mwi"), ("ⶀ", "lwa"), ("ⷈ", "kjə"), ("ꬨ", "bə"), ("𞟵", "kwi"),
    ],
)  # fmt: skip
def test_a_letter_has_its_sound(letter: str, phones: str) -> None:
    assert decode(read(letter)) == phones


def test_all_326_syllables_of_the_base_block_are_known() -> None:
    assert sum(letter <= "\u135a" for letter in values()) == 326


def test_every_assigned_letter_is_known_or_reported() -> None:
    assert set(values()) <= set(ASSIGNED)
    assert set(ASSIGNED) - set(values()) == set(unknown("".join(ASSIGNED)))


def test_an_unknown_letter_is_counted_each_time() -> None:
    assert unknown("ሰꬁላꬁም") == {"ꬁ": 2}


@pytest.mark.parametrize("letter", ["\u1249", "\u2ddf", "\uab00"])
def test_a_place_without_a_letter_is_reported_like_an_unknown_letter(letter: str) -> None:
    assert unknown(letter) == {letter: 1}
    assert read(letter) == ""


@pytest.mark.parametrize(
    ("one", "other"), [("ሀገር", "ሃገር"), ("ሐኪም", "ሀኪም"), ("ኅብረት", "ህብረት"), ("ሠላም", "ሰላም"), ("ዓለም", "አለም"), ("ፀሐይ", "ጸሃይ")]
)
def test_homophone_letters_read_alike(one: str, other: str) -> None:
    assert read(one) == read(other)


@pytest.mark.parametrize(
    ("written", "codes"),
    [("አዲː\u0020", "Had:i "), ("ልብ\u135f", "lb:"), ("ቋː", "K:Wa"), ("መː\u135f", "m:E"), ("መ\u135e", "mE")],
)
def test_a_gemination_mark_moves_to_its_consonant(written: str, codes: str) -> None:
    assert read(written) == codes


def test_words_are_found_between_other_characters() -> None:
    assert WORD.findall("«ሰላም»፣ 5ኛ abcቤት") == ["ሰላም", "ኛ", "ቤት"]


@pytest.mark.parametrize("phones", ["t͡ʃʼːwa", "kʼənː", "ʔɨsːu", "d͡ʒoro"])
def test_phones_survive_encoding(phones: str) -> None:
    assert decode(encode(phones)) == phones


def test_phones_may_be_typed_loosely() -> None:
    assert decode(encode_loosely(" k'wan:ga ")) == "kʼwanːɡa"
    assert decode(encode_loosely("tʃ'dʒ")) == "t͡ʃʼd͡ʒ"


def test_a_symbol_that_is_no_phone_is_named() -> None:
    with pytest.raises(PronunciationError, match="'ŋ' is no Amharic phone"):
        encode("baŋk")
