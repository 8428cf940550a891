"""Words that were split at morphemes are read as whole words."""

import pytest

from utils.amharic.joining import whole_words
from utils.amharic.phonemes import phonemize
from utils.recognition.units import units_of

SPLIT = {
    "የ ትግራይ ተወላጆች ገንዘባቸው ን ለ ልማት አዋጥ ተው": "የትግራይ ተወላጆች ገንዘባቸውን ለልማት አዋጥተው",
    "ተባባሪ መንገደኞች ም ይህን ነገር ይናገሩ ታል": "ተባባሪ መንገደኞችም ይህን ነገር ይናገሩታል",
    "እንኳ ን ለ ሴቶቹ ለ ወንዶቹ ም ይከብዳ ል": "እንኳን ለሴቶቹ ለወንዶቹም ይከብዳል",
    "በ ጌዲኦ ዞን የ ዲላ ኮሌጅ ና ተማሪዎች": "በጌዲኦ ዞን የዲላ ኮሌጅና ተማሪዎች",
}


@pytest.mark.parametrize("split", SPLIT)
def test_pieces_become_the_words_that_a_person_writes(split: str) -> None:
    assert " ".join("".join(pieces) for pieces in whole_words(split.split())) == SPLIT[split]


@pytest.mark.parametrize(
    "text", ["ጠቅላይ ሚኒስትሩ ወደ ሰማይ ብዙ ጊዜ አዩ", "ዲ ኤን ኤ በጣም አስፈላጊ የሆኑ ተግባሮች ያሉት ሲሆን ብዙ ሰዎች ስለ እሱ ያውቃሉ", ""]
)
def test_a_text_with_whole_words_stays_as_it_is(text: str) -> None:
    assert whole_words(text.split()) == [[word] for word in text.split()]


def test_the_recogniser_hears_whole_words_where_the_text_has_pieces() -> None:
    split = next(iter(SPLIT))
    words = units_of("am").words(split)
    assert " ".join(word.text for word in words) == split  # as they are written
    phones = [unit for word in words for unit in word.units]
    assert phones == [unit for word in units_of("am").words(SPLIT[split]) for unit in word.units]
    assert phonemize(SPLIT[split]).count(" ") == len(words) - 1
