"""Numbers in words, read back by a parser that knows nothing of the grammar that wrote them."""

from hypothesis import given
from hypothesis import strategies as st

from utils.amharic.numbers import GEEZ, cardinal, geez_value

ONES = "ዜሮ አንድ ሁለት ሦስት አራት አምስት ስድስት ሰባት ስምንት ዘጠኝ".split()
TENS = "አሥር ሃያ ሠላሳ አርባ ሃምሳ ስልሳ ሰባ ሰማንያ ዘጠና".split()
VALUES = (
    {word: value for value, word in enumerate(ONES)}
    | {word: 10 * value for value, word in enumerate(TENS, start=1)}
    | {"አሥራ": 10}
)  # fmt: skip
SCALES = {"ሺህ": 10**3, "ሚሊዮን": 10**6, "ቢሊዮን": 10**9, "ትሪሊዮን": 10**12, "ኳድሪሊዮን": 10**15}


def read_back(words: str) -> int:
    """Add up word by word: a scale multiplies what stands before it."""
    total = group = 0
    for word in words.split():
        if word in SCALES:
            total, group = total + group * SCALES[word], 0
        elif word == "መቶ":
            group *= 100
        else:
            group += VALUES[word]
    return total + group


@given(st.integers(0, 10**6) | st.integers(0, 10**18 - 1))
def test_numbers_are_read_back(number: int) -> None:
    assert read_back(cardinal(number)) == number


def to_geez(number: int) -> str:
    """Write a number in Ge'ez: two digits a pair, ፻ behind odd pairs, ፼ behind even ones."""
    letters = {value: letter for letter, value in GEEZ.items()}
    pairs = [number // 100**place % 100 for place in range(4)]
    text = ""
    for place in (3, 2, 1, 0):
        pair = pairs[place]
        sign = {0: "", 1: "፻", 2: "", 3: "፻"}[place]
        ones = letters.get(pair - pair % 10, "") + letters.get(pair % 10, "")
        text += (ones if not (pair == 1 and sign) else "") + (sign if pair else "")
        text += "፼" if place == 2 and any(pairs[2:]) else ""
    return text


@given(st.integers(1, 10**8 - 1))
def test_any_geez_numeral_is_read_back(number: int) -> None:
    assert geez_value(to_geez(number)) == str(number)


def test_long_rows_of_geez_letters_are_read_one_by_one() -> None:
    assert geez_value("፻፼" * 13) == " ".join(["መቶ አሥር ሺህ"] * 13)


def test_a_ten_thousand_needs_no_one_before_it() -> None:
    assert (geez_value("፼"), geez_value("፼፼")) == ("10000", "100000000")
