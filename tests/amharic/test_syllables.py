"""Where ɨ is heard."""

import pytest

from utils.amharic.fidel import read
from utils.amharic.syllables import insert_vowels


@pytest.mark.parametrize(
    ("written", "phones"),
    [
        ("ም", "mɨ"), ("እ", "ɨ"), ("አ", "a"), ("ብር", "bɨr"), ("ውሃ", "wɨha"), ("ይህ", "jɨh"), ("እንደ", "ɨndə"),
        ("ብራዚል", "bɨrazil"), ("ትራክተር", "tɨraktər"),
    ],
)  # fmt: skip
def test_no_word_begins_with_two_consonants(written: str, phones: str) -> None:
    assert insert_vowels([read(written)]) == [phones]


@pytest.mark.parametrize(
    ("written", "phones"),
    [
        ("ሰው", "səw"), ("ላይ", "laj"), ("ዓይን", "ajn"), ("ጥርስ", "tʼɨrs"), ("ህንድ", "hɨnd"), ("ሕዝብ", "hɨzb"),
        ("ስልክ", "sɨlk"),
        ("ወቅት", "wəkʼt"), ("ነፍስ", "nəfs"), ("ልብስ", "lɨbs"), ("ፊዚክስ", "fiziks"), ("እህት", "ɨhɨt"), ("ክፍል", "kɨfɨl"),
        ("ምግብ", "mɨɡɨb"), ("ስም", "sɨm"), ("ስምን", "sɨmɨn"), ("ቤትህ", "betɨh"), ("ወይም", "wəjɨm"), ("ሥዕል", "sɨʔɨl"),
    ],
)  # fmt: skip
def test_two_final_consonants_stay_if_sonority_falls(written: str, phones: str) -> None:
    assert insert_vowels([read(written)]) == [phones]


@pytest.mark.parametrize(
    ("written", "phones"),
    [
        ("አፍሪካ", "afrika"), ("እንግዳ", "ɨnɡɨda"), ("ትምህርት", "tɨmhɨrt"), ("መንግሥት", "mənɡɨst"), ("ጥቅምት", "tʼɨkʼɨmt"),
        ("አምስት", "amɨst"), ("ስምንት", "sɨmɨnt"), ("ቅርንጫፍ", "kʼɨrɨnt͡ʃʼaf"), ("ክርስቲያን", "kɨrɨstijan"),
        ("አውስትራሊያ", "awstɨralija"), ("ሳይንስ", "sajns"), ("ኦክስፎርድ", "oksford"), ("ሃይድሮጂን", "hajdɨrod͡ʒin"),
        ("አህያ", "ahɨja"), ("ማዕዘን", "maʔɨzən"),
    ],
)  # fmt: skip
def test_longer_runs_part_from_left_to_right(written: str, phones: str) -> None:
    assert insert_vowels([read(written)]) == [phones]


@pytest.mark.parametrize(
    ("marked", "phones"),
    [
        ("ልብː", "lɨbː"),
        ("አማርኛː", "amarɨɲːa"),
        ("ትክːል", "tɨkːɨl"),
        ("ትግርኛː", "tɨɡrɨɲːa"),
        ("ብልː", "bɨlː"),
        ("ቋːንቋ", "kʼːwankʼwa"),
        ("ትልːቅ", "tɨlːɨkʼ"),
    ],
)
def test_a_geminate_is_never_part_of_a_cluster(marked: str, phones: str) -> None:
    assert insert_vowels([read(marked)]) == [phones]


def test_a_complete_pronunciation_is_left_alone() -> None:
    assert insert_vowels(["=prezidnt", "prs"]) == ["prezidnt", "pɨrs"]


def test_words_do_not_touch_each_other() -> None:
    alone = [insert_vowels([read(word)])[0] for word in ("ልብ", "ብር", "ክፍል")]
    assert insert_vowels(map(read, ("ልብ", "ብር", "ክፍል"))) == alone


def test_a_run_without_end_takes_no_memory_and_no_recursion() -> None:
    (phones,) = insert_vowels(["tk" * 20_000])
    assert phones.startswith("tɨk")
