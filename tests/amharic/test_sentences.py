"""Text is parted where sentences end, never inside an abbreviation or a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.amharic.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("መጣ። ሄደ፡፡ ማን ነው፧ እኔ! አንተስ?", ["መጣ።", "ሄደ፡፡", "ማን ነው፧", "እኔ!", "አንተስ?"]),
        ("በ2010 ዓ.ም. ተጀመረ። አለቀ።", ["በ2010 ዓ.ም. ተጀመረ።", "አለቀ።"]),
        ("በ2010 ዓ.ም. ተጀመረ", ["በ2010 ዓ.ም. ተጀመረ"]),
        ("ዶ/ር አበበ እና ጠ/ሚ/ር መጡ።", ["ዶ/ር አበበ እና ጠ/ሚ/ር መጡ።"]),
        ("3.14 ነው። 12.5 ነው።", ["3.14 ነው።", "12.5 ነው።"]),
        ("ፖ.ሳ.ቁ. 12 ነው።", ["ፖ.ሳ.ቁ. 12 ነው።"]),
        ("ቁ. 5 ቤት። ገጽ. 7", ["ቁ. 5 ቤት።", "ገጽ. 7"]),
        ("መጣ. ሄደ.", ["መጣ.", "ሄደ."]),
        ("1. መግቢያ\n2. ዓላማ", ["1. መግቢያ", "2. ዓላማ"]),
        ("ዮሐ. 3፥16 ያንብቡ። ኃ.የተ.የግ.ማ. ነው።", ["ዮሐ. 3፥16 ያንብቡ።", "ኃ.የተ.የግ.ማ. ነው።"]),
        ("አበበ በሶ በላ።ጫላ ጩቤ ጨበጠ፡፡", ["አበበ በሶ በላ።", "ጫላ ጩቤ ጨበጠ፡፡"]),
        ("አለ፦ «ና።» ሄደ።", ["አለ፦ «ና።»", "ሄደ።"]),
        ("ርዕስ\nጽሑፍ ነው።\n\nሌላ", ["ርዕስ", "ጽሑፍ ነው።", "ሌላ"]),
        ("ምን?! እሺ...", ["ምን?!", "እሺ..."]),
        ("example.com ላይ አለ።", ["example.com ላይ አለ።"]),
        ("", []),
        ("  \n ", []),
        ("።", ["።"]),
    ],
)
def test_sentences_end_where_they_end(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(st.text(st.characters() | st.sampled_from("ሀለ.።፡!? \nዓም/5")))
def test_nothing_but_white_space_is_lost(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())
