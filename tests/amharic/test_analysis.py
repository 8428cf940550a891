"""Readings of a word: listed stems with affixes, templates of what is not listed."""

import pytest

from utils.amharic.alphabet import read
from utils.amharic.analysis import readings
from utils.amharic.kinds import mask
from utils.amharic.lexicon import Entry, stems
from utils.amharic.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "phones"),
    [
        # affixes of a listed noun
        ("ቤቶች ቤቶቻቸው ተማሪዎቹ አበቦች ልጅነት ሰውዬ", "betot͡ʃː betot͡ʃːat͡ʃːəw təmariwot͡ʃːu abəbot͡ʃː lɨd͡ʒɨnːət səwɨjːe"),
        ("ልቡ ከተማችን በከተማ ስለከተማው ያገሩ", "lɨbːu kətəmat͡ʃːɨn bəkətəma sɨləkətəmaw jaɡəru"),
        ("ኃይለኝነት ቤትስ ቤቱኮ ቤታቹ ልጅቷ", "hajləɲːɨnːət betɨsː betukːo betat͡ʃːu lɨd͡ʒɨtwa"),
        # affixes of a listed verb
        ("የሄደው የሚሄድ ስለሚሰብር የማይሄድ የምትሄድ የምሰብር", "jəhedəw jəmːihed sɨləmːisəbɨr jəmːajhed jəmːɨtːɨhed jəmːɨsəbɨr"),
        ("ሚሄድ ምትሄድ", "mihed mɨtːɨhed"),  # as people type it
        ("ሲሄድ እየሄደ ሰበረኝ ሰበራቸው ሆነልኝ", "sihed ɨjːəhedə səbːərəɲː səbːərat͡ʃːəw honəlːɨɲː"),
        ("አልሄደም አትሄድም አንሰብርም", "alhedəmː atːɨhedɨmː anːɨsəbrɨmː"),
        ("ይሰብረዋል ይሰብረኛል ይሰብራችኋል ሰብሮታል", "jɨsəbrəwal jɨsəbrəɲːal jɨsəbrat͡ʃːɨhwal səbrotal"),
    ],
)
def test_listed_stems_take_their_affixes(written: str, phones: str) -> None:
    assert " ".join(map(phonemize, written.split())) == phones


@pytest.mark.parametrize(
    ("written", "phones"),
    [
        ("ጠረመ ተጠረመ መነጠረ", "tʼərːəmə tətʼərːəmə mənətʼːərə"),
        ("አጋፈጠ አመራመር", "aɡːafːətʼə amːəramər"),  # two long consonants; a noun of manner
        ("ጎረመ ጠረመሰች አስጠረመ", "ɡorːəmə tʼərəmːəsət͡ʃː astʼərːəmə"),
        ("ጎራኝ ጎረኛ ጉጉነት ጉላዎቻቸው አልጎረደም", "ɡoraɲ ɡorəɲːa ɡuɡunːət ɡulawot͡ʃːat͡ʃːəw alɡorːədəmː"),
        ("አጠናቋል አስጨንቋል", "atʼːənakʼːwal ast͡ʃʼənːɨkʼwal"),
        ("ተሽኮረበረ ተሰነጣጠቀ", "təʃkorəbːərə təsənətʼatʼːəkʼə"),  # five radicals, the first without a vowel or not
        # no template, but affixes that only verbs have
        ("ያጌብላሉ የሚጌብ", "jaɡeblalːu jəmːiɡeb"),
        # no template
        ("ጉልባ ሰሀረ ጎመ", "ɡulba səharə ɡomə"),
    ],
)
def test_a_word_that_is_not_listed_takes_the_template_of_its_skeleton(written: str, phones: str) -> None:
    assert " ".join(map(phonemize, written.split())) == phones


def test_all_readings_are_returned_the_likeliest_first() -> None:
    found = readings(read("ስሜ"), stems())
    assert [reading.codes for reading in found] == ["sme", "sIm:e"]
    assert found[0].cost < found[1].cost


def test_a_listed_word_without_geminates_blocks_the_templates() -> None:
    listed = {"nEgErE": (Entry("nEgErE", mask("V"), 0, "test", "ነገረ"),)}
    assert readings("nEgErE", listed)[0].codes == "nEgErE"
    assert readings("nEgErE", {})[0].codes == "nEg:ErE"


def test_the_longest_stem_wins() -> None:
    assert phonemize("በቆሎን") == "bəkʼːolːon"
