"""Which reading the sentence asks for."""

import pytest

from utils.amharic import normalize, phonemize
from utils.amharic.explanation import explain_words


@pytest.mark.parametrize(
    ("sentence", "phones"),
    [
        ("ቤት አለ።", "alːə"),
        ("«ደክሞኛል» አለ።", "alə"),  # said, behind a quotation
        ("ነገ እሄዳለሁ አለ።", "alə"),  # or behind a finite verb
        ("በሩን ይዘጋል።", "jɨzəɡal"),  # active behind an object
        ("ሱቁ በሁለት ሰዓት ይዘጋል።", "jɨzːəɡːal"),  # passive where nobody acts
        ("ነፍስ ይማር።", "jɨmar"),  # a fixed phrase
        ("ልጁ ይማር ነበር።", "jɨmːar"),
        ("እባካችሁ፣ እዚህ ተቀመጡ!", "təkʼəmətʼu"),  # a command
        ("እንግዶቹ ወንበር ላይ ተቀመጡ።", "təkʼəmːətʼu"),
        ("ልጆች አትተኙ፤ ቶሎ ተነሱ።", "tənəsu"),  # a command behind another
        ("ልጄን ማን ያመጣልኛል።", "jamətʼalːɨɲːal"),  # no object follows the auxiliary
        ("ሰላም ደረሳቹ።", "dərːəsat͡ʃːu"),  # as people type -አችሁ
        ("ተማሪዎቹ ደወሉን ሰሙ።", "səmːu"),  # a verb at the end, a noun before it
        ("ሻማው ሲነድ ሰሙ ቀለጠ።", "səmu"),
        ("ቤት የሚሸጥ ልጅ", "jəmːiʃətʼ"),  # the noun of a relative clause
        ("በጨረታ የሚሸጥ ቤት", "jəmːiʃːətʼ"),
        ("ፖሊሱ ያለ ፈቃድ ቤቱን ፈተሸ።", "jalə"),  # without
        ("ጠረጴዛው ላይ ያለ መጽሐፍ", "jalːə"),
        ("ትናንት ስሜ ሰማሁ።", "sɨmːe"),  # having kissed, in a sentence about me
        ("በዚህ ስሜ ያለበት ታንኩ", "sɨme"),
        ("ዳኛ አድርጌ ሹሜ ተመለስኩ።", "ʃumːe"),  # behind another deed of mine
        ("ባቡሩ ወደ ጣቢያው ይገባል።", "jɨɡəbal"),  # enters
        ("ሲሾም ያልበላ ሲሻር ይቆጨዋል።", "siʃːom"),  # a verb that is mostly passive begins the sentence
        ("ምስሩ ከመቀቀሉ በፊት ይታጠባል።", "kəməkʼːəkʼːəlu"),  # a thing with its article is no object
        ("ልጁ ከመብላቱ በፊት ታጠበ።", "kəməblatu"),
        ("ዋጋው መቀነሱን ሰማን።", "məkʼənːəsun"),  # things may do this by themselves
        ("ታላላቆችን ማክበር ይገባል።", "jɨɡːəbːal"),  # ought to
        ("ሰነድ ያጭበረበረ ሰው በእስራት ይቀጣል።", "jɨkʼːətʼːal"),  # the object belongs to the relative clause
        ("ዛፉ ለሰው ጥላ ይሰጣል።", "jɨsətʼal"),  # a subject and an object
        ("ሌባው በፖሊስ ይመታል።", "jɨmːətːal"),  # by whom
        ("ሾፌሩ አንድ ሰው መቶ አመለጠ።", "mətːo"),  # no number before a verb
        ("ኃላፊነቱን ይወጣል።", "jɨwːətʼːal"),
        ("እውነቱ ይወጣል።", "jɨwətʼal"),
        ("ጫማህን ቶሎ ለውጥ።", "ləwːɨtʼ"),  # a command behind an object
        ("በሀገሪቱ ትልቅ ለውጥ መጣ።", "ləwtʼ"),
        ("በሩን ከፍታ ገባች።", "kəfta"),  # a verb right behind an object
        ("የተራራው ከፍታ ብዙ ነው።", "kəfːɨta"),
        ("እሷን ከልቡ ጠላት።", "tʼəlːat"),
        ("እናቴ አልመጣም አለች።", "almətʼamː"),  # "I do not come", she said
        ("እሱ እስካሁን አልመጣም።", "almətʼːamː"),
        ("እንዲህ ያለ ነገር አላየሁም።", "jalːə"),  # such
        ("እንደሚመጡ አሉ።", "alu"),
        ("ምሳ በላሽ ወይ?", "bəlːaʃ"),  # a verb before a particle
        ("ይህ መድኃኒት ያለ ሐኪም ትእዛዝ መሸጥ የለበትም።", "məʃːətʼ"),
    ],
)
def test_the_sentence_chooses_a_reading(sentence: str, phones: str) -> None:
    assert phones in phonemize(normalize(sentence)).strip(".! ").split()


def test_an_explanation_names_the_rule_and_the_readings_that_lost() -> None:
    *_, word = explain_words("ሱቁ በሁለት ሰዓት ይዘጋል.")
    assert word.gemination.endswith("active or passive")
    assert "jɨzəɡal" in [phones for phones, _ in word.others]


AMBIGUOUS = "አለ ገና ይሰጣል ሰፊ ዋና አባይ ለጋ መላ ሰሙ አለኝ አሉ ያለው ሳለ ዘፈኑ ነገሩ ይሰማል ተቀመጡ ለውጥ መልስ ፈረሱ"


@pytest.mark.parametrize("written", AMBIGUOUS.split())
def test_every_reading_of_an_ambiguous_word_is_explained(written: str) -> None:
    (word,) = explain_words(written)
    assert word.others
    assert word.phones not in [phones for phones, _ in word.others]
    assert all(reason for _, reason in word.others)
