"""Which consonants are geminate, and what decides it."""

import pytest

from utils.amharic.alphabet import read
from utils.amharic.gemination import mark
from utils.amharic.lexicon import Entry

NOUNS = ("ልብː", "ልጅ", "ቤት", "አበባ", "ከተማ", "ተማሪ", "ሰው", "አገር", "ነገር", "ምሽትː", "ቆሎ")
VERBS = (
    "ሄደ", "ይሄድ", "ትሄድ", "እሄድ", "ሰበːረ", "ይሰብር", "እሰብር", "እንሰብር", "ሰብሮ", "መስበር", "ሆነ", "ይወዳልː", "ያስːብ",
)  # fmt: skip
WORDS = {
    read(marked).replace(":", ""): Entry(read(marked), is_verb=marked in VERBS, source="test")
    for marked in (*NOUNS, *VERBS)
}


def marked(written: str) -> str:
    return mark(read(written), WORDS).codes


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        # affixes of a listed noun
        ("ቤቶች ቤቶቻቸው ተማሪዎቹ አበቦች ልጅነት ሰውዬ ልቤ", "ቤቶችː ቤቶቻːቸːው ተማሪዎቹː አበቦችː ልጅነːት ሰውዬː ልቤː"),
        ("ልቡ ከተማችን በከተማ ስለከተማው ያገሩ", "ልቡː ከተማችːን በከተማ ስለከተማው ያገሩ"),
        # affixes of a listed verb
        ("የሄደው የሚሄድ ስለሚሰብር የማይሄድ የምትሄድ የምሰብር", "የሄደው የሚːሄድ ስለሚːሰብር የማːይሄድ የምːትːሄድ የምːሰብር"),
        ("ሲሄድ እየሄደ ሰበረኝ ሰበራቸው ሆነልኝ", "ሲሄድ እየːሄደ ሰበːረኝː ሰበːራቸːው ሆነልːኝː"),
        ("አልሄደም በመስበር አትሄድም አንሰብርም", "አልሄደምː በመስበር አትːሄድምː አንːሰብርምː"),
        ("አልሰብርም ስንሰብር ብሰብር ሳልሄድ", "አልሰብርምː ስንːሰብር ብሰብር ሳልሄድ"),
        ("ይሰብረዋል ይሰብረኛል ይሰብራችኋል ሰብሮታል", "ይሰብረዋልː ይሰብረኛːልː ይሰብራችːኋልː ሰብሮታልː"),
        ("ሰብሯቸዋል እሰብረዋለሁ የሚያስብ", "ሰብሯቸːዋልː እሰብረዋለːሁ የሚːያስːብ"),
        # shapes and certain affixes of an unlisted word
        ("ጠረመ ተጠረመ አስፈለገ መነጠረ ባረከ አለፈ ቀረ", "ጠረːመ ተጠረːመ አስፈለːገ መነጠːረ ባረːከ አለːፈ ቀረː"),
        ("ተመታ ጎሬኝ ጎራኝ ጎረኛ ጉጉነት ጉላዎቻቸው አልጎረደም", "ተመታː ጎሬኝː ጎራኝ ጎረኛː ጉጉነːት ጉላዎቻːቸːው አልጎረደምː"),
        # no rule
        ("ጉልባ ሰሀረ ጎመ", "ጉልባ ሰሀረ ጎመ"),
    ],
)
def test_lists_affixes_and_shapes_decide(written: str, expected: str) -> None:
    assert [marked(word).replace("I", "") for word in written.split()] == list(map(read, expected.split()))


def test_a_listed_word_without_geminates_blocks_the_shapes() -> None:
    listed = WORDS | {"nEgE": Entry("nEgE", is_verb=False, source="test")}
    assert mark("nEgE", listed).codes == "nEgE"
    assert mark("nEgE", WORDS).codes == "nEg:E"


def test_the_longest_stem_wins() -> None:
    listed = WORDS | {read("በቆሎ"): Entry("bEK:olo", is_verb=False, source="test")}
    assert mark(read("በቆሎን"), listed).codes == "bEK:olon"
