"""Which consonants are geminate, and what decides it."""

import pytest

from utils.amharic.fidel import read
from utils.amharic.gemination import mark
from utils.amharic.lexicon import Entry

LISTED = ("ልብː", "ልጅ", "ቤት", "አበባ", "ከተማ", "ተማሪ", "ሰው", "አገር", "ነገር", "ምሽትː", "ቆሎ")
VERBS = (
    "ሄደ", "ይሄድ", "ትሄድ", "እሄድ", "ሰበːረ", "ይሰብር", "እሰብር", "እንሰብር", "ሰብሮ", "መስበር", "ሆነ", "ይወዳልː", "ያስːብ",
)  # fmt: skip
WORDS = {
    read(marked).replace(":", ""): Entry(read(marked), is_verb=marked in VERBS, source="test")
    for marked in (*LISTED, *VERBS)
}


def marked(written: str) -> str:
    return mark(read(written), WORDS).codes


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("ቤቶች", "ቤቶችː"), ("ቤቶቻቸው", "ቤቶቻːቸːው"), ("ተማሪዎቹ", "ተማሪዎቹː"), ("አበቦች", "አበቦችː"), ("ልጅነት", "ልጅነːት"),
        ("ሰውዬ", "ሰውዬː"),
        ("ልቤ", "ልቤː"), ("ልቡ", "ልቡː"), ("ከተማችን", "ከተማችːን"), ("በከተማ", "በከተማ"), ("ስለከተማው", "ስለከተማው"), ("ያገሩ", "ያገሩ"),
    ],
)  # fmt: skip
def test_affixes_of_a_listed_noun_follow_their_rules(written: str, expected: str) -> None:
    assert marked(written).replace("I", "") == read(expected)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("የሄደው", "የሄደው"), ("የሚሄድ", "የሚːሄድ"), ("ስለሚሰብር", "ስለሚːሰብር"), ("የማይሄድ", "የማːይሄድ"), ("የምትሄድ", "የምːትːሄድ"),
        ("የምሰብር", "የምːሰብር"),
        ("ሲሄድ", "ሲሄድ"), ("እየሄደ", "እየːሄደ"), ("ሰበረኝ", "ሰበːረኝː"), ("ሰበራቸው", "ሰበːራቸːው"), ("ሆነልኝ", "ሆነልːኝː"),
        ("አልሄደም", "አልሄደምː"), ("በመስበር", "በመስበር"), ("አትሄድም", "አትːሄድምː"), ("አንሰብርም", "አንːሰብርምː"),
        ("አልሰብርም", "አልሰብርምː"), ("ስንሰብር", "ስንːሰብር"), ("ብሰብር", "ብሰብር"), ("ሳልሄድ", "ሳልሄድ"),
        ("ይሰብረዋል", "ይሰብረዋልː"), ("ይሰብረኛል", "ይሰብረኛːልː"), ("ይሰብራችኋል", "ይሰብራችːኋልː"), ("ሰብሮታል", "ሰብሮታልː"),
        ("ሰብሯቸዋል", "ሰብሯቸːዋልː"), ("እሰብረዋለሁ", "እሰብረዋለːሁ"), ("የሚያስብ", "የሚːያስːብ"),
    ],
)  # fmt: skip
def test_affixes_of_a_listed_verb_follow_their_rules(written: str, expected: str) -> None:
    assert marked(written).replace("I", "") == read(expected)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("ጠረመ", "ጠረːመ"), ("ተጠረመ", "ተጠረːመ"), ("አስፈለገ", "አስፈለːገ"), ("መነጠረ", "መነጠːረ"), ("ባረከ", "ባረːከ"), ("አለፈ", "አለːፈ"),
        ("ቀረ", "ቀረː"),
        ("ተመታ", "ተመታː"), ("ጎሬኝ", "ጎሬኝː"), ("ጎራኝ", "ጎራኝ"), ("ጎረኛ", "ጎረኛː"), ("ጉጉነት", "ጉጉነːት"), ("ጉላዎቻቸው", "ጉላዎቻːቸːው"),
        ("አልጎረደም", "አልጎረደምː"),
    ],
)  # fmt: skip
def test_an_unlisted_word_is_marked_by_affix_or_shape(written: str, expected: str) -> None:
    assert marked(written) == read(expected)


@pytest.mark.parametrize("written", ["ጉልባ", "ሰሀረ", "ሰአረ", "ጎመ", "ቆመ"])
def test_a_word_without_a_rule_keeps_its_single_consonants(written: str) -> None:
    assert ":" not in marked(written)


@pytest.mark.parametrize(
    ("written", "source", "parts"),
    [
        ("ልብ", "word list", ("test",)),
        ("ቤቶች", "affixes", ("", "bet", "oc:", "word list", "test")),
        ("ጠረመ", "shape", ("CəCːəCə",)),
        ("ጉጉነት", "affixes", ("", "gugu", "n:Et")),
        ("ጉልባ", "none", ()),
        ("ጉልባ\u135f", "mark", ("none",)),
    ],
)
def test_the_decision_names_its_source(written: str, source: str, parts: tuple[str, ...]) -> None:
    found = mark(read(written), WORDS)
    assert (found.source, found.parts) == (source, parts)


def test_a_mark_in_the_text_comes_before_everything_and_leaves_the_rest_to_the_list() -> None:
    assert marked("ቤትː") == "bet:"
    assert marked("ልጅ\u135f") == "lJ:"


def test_a_listed_word_without_geminates_blocks_the_shapes() -> None:
    listed = WORDS | {"nEgE": Entry("nEgE", is_verb=False, source="test")}
    assert mark("nEgE", listed).codes == "nEgE"
    assert mark("nEgE", WORDS).codes == "nEg:E"


def test_a_labialised_spelling_is_geminate_where_the_rounded_one_is() -> None:
    listed = WORDS | {read("ጎበኘ"): Entry(read("ጎበኘː"), is_verb=True, source="test")}
    assert mark(read("ጐበኘ"), listed).codes == "gWEbEN:E"


def test_the_longest_stem_wins() -> None:
    listed = WORDS | {read("በቆሎ"): Entry("bEK:olo", is_verb=False, source="test")}
    assert mark(read("በቆሎን"), listed).codes == "bEK:olon"


def test_a_noun_keeps_its_first_vowel_after_a_prefix() -> None:
    assert marked("የልጅ") == "yElIJ"
