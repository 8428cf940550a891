"""Where ɨ is spoken."""

import pytest

from utils.amharic.alphabet import read
from utils.amharic.syllables import insert_vowels


def phones_of(words: str) -> str:
    return " ".join(insert_vowels(map(read, words.split())))


@pytest.mark.parametrize(
    ("written", "phones"),
    [
        # No word begins with two consonants.
        ("ም እ አ ብር ውሃ ይህ እንደ ብራዚል ትራክተር", "mɨ ɨ a bɨr wɨha jɨh ɨndə bɨrazil tɨraktər"),
        # Two final consonants stay if sonority falls.
        ("ሰው ላይ ዓይን ጥርስ ህንድ ሕዝብ ስልክ", "səw laj ajn tʼɨrs hɨnd hɨzb sɨlk"),
        ("ወቅት ነፍስ ልብስ ፊዚክስ እህት ክፍል", "wəkʼt nəfs lɨbs fiziks ɨhɨt kɨfɨl"),
        ("ምግብ ስም ስምን ቤትህ ወይም ሥዕል", "mɨɡɨb sɨm sɨmɨn betɨh wəjɨm sɨʔɨl"),
        # Longer runs part from left to right.
        ("አፍሪካ እንግዳ ትምህርት መንግሥት ጥቅምት", "afrika ɨnɡɨda tɨmhɨrt mənɡɨst tʼɨkʼɨmt"),
        ("አምስት ስምንት ቅርንጫፍ ክርስቲያን", "amɨst sɨmɨnt kʼɨrɨnt͡ʃʼaf kɨrɨstijan"),
        ("አውስትራሊያ ሳይንስ ኦክስፎርድ ሃይድሮጂን", "awstɨralija sajns oksford hajdɨrod͡ʒin"),
        ("አህያ ማዕዘን", "ahɨja maʔɨzən"),
        # A geminate is never part of a cluster.
        ("ልብː አማርኛː ትክːል ትግርኛː ብልː ቋːንቋ ትልːቅ", "lɨbː amarɨɲːa tɨkːɨl tɨɡrɨɲːa bɨlː kʼːwankʼwa tɨlːɨkʼ"),
    ],
)
def test_words_are_spoken_with_their_vowels(written: str, phones: str) -> None:
    assert phones_of(written) == phones
    assert " ".join(map(phones_of, written.split())) == phones  # words do not touch each other


def test_a_complete_pronunciation_is_left_alone() -> None:
    assert insert_vowels(["=prezidnt", "prs"]) == ["prezidnt", "pɨrs"]


def test_a_run_without_end_takes_no_memory_and_no_recursion() -> None:
    (phones,) = insert_vowels(["tk" * 20_000])
    assert phones.startswith("tɨk")
