"""Written Amharic becomes spoken Amharic; any text is accepted, and spoken text is unchanged."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from utils.amharic.alphabet import ETHIOPIC, fold
from utils.amharic.normalization import normalize, normalize_with_report, split_sentences
from utils.amharic.romanized import decode_rows

DATA = Path(__file__).parent.parent / "data"


def pairs() -> Iterator[tuple[str, str]]:
    for name in ("pairs", "more", "judge", "typed"):
        lines = (DATA / f"amharic_normalization_{name}.tsv").read_text(encoding="utf-8").splitlines()
        cells = [line.split("\t") for line in lines if line.strip() and not line.startswith("#")]
        yield from ((written, spoken) for _, written, spoken, _ in cells)


def alike(text: str) -> str:
    return " ".join(fold(text).split())


@pytest.mark.parametrize(("written", "spoken"), list(pairs()))
def test_collected_pairs(written: str, spoken: str) -> None:
    assert alike(normalize(written)) in {alike(variant) for variant in spoken.split("|")}


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("ዶ/ር አበበ በ2010 ዓ.ም. 3 ት/ቤቶችን ከፈቱ።", "ዶክተር አበበ በሁለት ሺህ አስር አመተ ምህረት ሶስት ትምህርት ቤቶችን ከፈቱ."),
        ("ከጠዋቱ 3፡30 ሰዓት እስከ 5፡00 ሰዓት", "ከጠዋቱ ሶስት ሰአት ተኩል እስከ አምስት ሰአት"),
        ("ዋጋው 1,250.50 ብር ነው፤ 15% ቅናሽ አለው።", "ዋጋው አንድ ሺህ ሁለት መቶ ሃምሳ ብር ከሃምሳ ሳንቲም ነው; አስራ አምስት በመቶ ቅናሽ አለው."),
        ("የ21ኛው ክ/ዘመን", "የሃያ አንደኛው ክፍለ ዘመን"),
        ("info@example.com", "ኢንፎ አት ኤክሳምፕል ነጥብ ኮም"),
        ("አለ\u135f", "አለ\u135f"),
    ],
)
def test_running_text(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("ጽ/ማርያም", "ጽጌ ማርያም"), ("ሥ/ጊዮርጊስ", "ስነ ጊዮርጊስ"), ("ጥር 09/2014", "ጥር ዘጠኝ ሁለት ሺህ አስራ አራት"),
        ("በ1999 እአአ", "በአንድ ሺህ ዘጠኝ መቶ ዘጠና ዘጠኝ እንደ አውሮፓውያን አቆጣጠር"), ("የዩሮ 2020", "የዩሮ ሁለት ሺህ ሃያ"),
        ("251-911-223344", "ሁለት አምስት አንድ ዘጠኝ አንድ አንድ ሁለት ሁለት ሶስት ሶስት አራት አራት"), ("ኮቪድ–19", "ኮቪድ አስራ ዘጠኝ"),
        ("12 Jan 2023", "አስራ ሁለት ጃንዋሪ ሁለት ሺህ ሃያ ሶስት"), ("XIX ክፍለ ዘመን", "አስራ ዘጠነኛው ክፍለ ዘመን"),
        ("$5-$10", "ከአምስት እስከ አስር ዶላር"), ("1.000.000", "አንድ ሚሊዮን"), ('55" ቲቪ', "ሃምሳ አምስት ኢንች ቲቪ"), ("x²", "ኤክስ ስኩዌር"),
        ("500 ሜባ", "አምስት መቶ ሜጋባይት"), ("CO₂", "ሲ ኦ ሁለት"), ("ሀ &amp; ለ", "ሀ እና ለ"), ("<b>ሰላም</b>", "ሰላም"),
        ("ኘሮግራም", "ፕሮግራም"), ("ዘፍ. ፩፥፩", "ዘፍጥረት ምእራፍ አንድ ቁጥር አንድ"), ("$1.5M", "አንድ ነጥብ አምስት ሚሊዮን ዶላር"),
    ],
)  # fmt: skip
def test_what_people_type_is_read_as_what_they_mean(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Selam endet neh? guys", "ሰላም እንዴት ነህ? ጋይስ"), ("Selam new?", "ሰላም ነው?"), ("ke 3 seat behuala", "ከሶስት ሰአት በኋላ"),
        ("Tikur Anbessa", "ጥቁር አንበሳ"), ("yene konjo", "የኔ ቆንጆ"), ("berun zigaw", "በሩን ዝጋው"),
        ("kwas sichawetu ayehu", "ኳስ ሲጫወቱ አየሁ"), ("kesaat behuala emetalehu", "ከሰአት በኋላ እመጣለሁ"),
        ("eyetebekugn new", "እየጠበቁኝ ነው"), ("lemin atimetam ende", "ለምን አትመጣም እንዴ"),
    ],
)  # fmt: skip
def test_amharic_in_latin_letters_is_decoded(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    "english", ["The meeting is at the office", "New York Times", "he is a good man", "Real Madrid", "Arsenal", "wifi"]
)
def test_english_is_not_taken_for_amharic(english: str) -> None:
    assert decode_rows(english) == english


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("lemin almetahim", "ለምን አልመጣህም"), ("ke gonder metahu", "ከጎንደር መጣሁ"), ("wuha amtalign", "ውሃ አምጣልኝ"),
        ("and sew metual", "አንድ ሰው መጥቷል"), ("enante endet nachu", "እናንተ እንዴት ናችሁ"), ("tadias lij", "ታዲያስ ልጅ"),
        ("gobez lij newu", "ጎበዝ ልጅ ነው"), ("hulet birr sitegn", "ሁለት ብር ስጠኝ"),
    ],
)  # fmt: skip
def test_everyday_words_are_likelier_in_a_chat(typed: str, written: str) -> None:
    assert decode_rows(typed) == written


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("this page", "ዚስ ፔጅ"), ("game station", "ጌም ስቴሽን"), ("cheese", "ቺዝ"), ("night light", "ናይት ላይት"),
        ("machine learning", "ማሺን ለርኒንግ"), ("customer service", "ካስቶመር ሰርቪስ"), ("singing", "ሲንጊንግ"), ("Nike", "ናይክ"),
        ("የdesign ሥራ", "የዲዛይን ስራ"), ("HTML እና NGOs", "ኤች ቲ ኤም ኤል እና ኤን ጂ ኦስ"), ("US and us", "ዩ ኤስ ኤንድ አስ"),
        ("NEWS", "ኒውስ"), ("don't", "ዶንት"), ("Kebede Tadesse", "ከበደ ታደሰ"),
    ],
)  # fmt: skip
def test_english_is_written_by_its_sounds_and_acronyms_by_their_letters(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@given(st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzAEIS'"), min_size=1, max_size=12))
def test_no_latin_letter_is_left(word: str) -> None:
    assert not re.search("[A-Za-z]", normalize(f"ይህ {word} ነው"))


def test_dropped_symbols_are_counted() -> None:
    assert normalize_with_report("ሰላም 😀😀 ለ→ሁሉም") == ("ሰላም ለ ሁሉም", {"😀": 2, "→": 1})


TEXTS = st.text(st.characters() | st.sampled_from("ሀለዓም.፡።/-0123459፩፻፼ በከ$%½:@+aGዶርት\u135f"))


@given(TEXTS)
@example("\ud800")
@example("5:30፡30-5/6.7")
@example("ዓ. ም. ቁ. 5")
@example("-3ኛ")
@example("A-Æ")
@example("ወዘተ.፡፡")
@example("ዓ.ም.ሚሩዶ/ር")
@example("10ኪ.ሜ/ሰዓትዓ.ም.ዓ.ም.")
@settings(max_examples=400)
def test_normalizing_any_text_twice_changes_nothing(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once
    assert not any("0" <= letter <= "9" or "፩" <= letter <= "፼" for letter in once)


def seconds(text: str) -> float:
    normalize("1 ዓ.ም.")  # reads the tables
    began = time.process_time()
    normalize(text)
    return time.process_time() - began


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["7", ".", "ት/", "፻", "1,", "1 ", "$1", "a@", "www.", "በ5", "ሀ.ለ/", "5:", '" ', "-", "😀", "\ud800", "1/2-"],
)
def test_odd_texts_take_time_in_proportion_to_their_length(piece: str) -> None:
    once = seconds(piece * 20_000)
    assert seconds(piece * 80_000) < 8 * once + 0.2


def test_only_letters_and_plain_marks_are_left_of_ethiopic_text() -> None:
    text = normalize("«ሰላም»፣ ፨ እንዴት፡ነህ፧ ፤፥፦ ፠ ፡፡")
    assert all(letter in ' .,;:?"' or ETHIOPIC[0] <= letter <= "\u135a" for letter in text)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("መጣ። ሄደ፡፡ ማን ነው፧ እኔ! አንተስ?", ["መጣ።", "ሄደ፡፡", "ማን ነው፧", "እኔ!", "አንተስ?"]),
        ("በ2010 ዓ.ም. ተጀመረ። አለቀ።", ["በ2010 ዓ.ም. ተጀመረ።", "አለቀ።"]), ("በ2010 ዓ.ም. ተጀመረ", ["በ2010 ዓ.ም. ተጀመረ"]),
        ("ዶ/ር አበበ እና ጠ/ሚ/ር መጡ።", ["ዶ/ር አበበ እና ጠ/ሚ/ር መጡ።"]), ("ቁ. 5 ቤት። ገጽ. 7", ["ቁ. 5 ቤት።", "ገጽ. 7"]),
        ("1. መግቢያ\n2. ዓላማ", ["1. መግቢያ", "2. ዓላማ"]),
        ("ዮሐ. 3፥16 ያንብቡ። ኃ.የተ.የግ.ማ. ነው።", ["ዮሐ. 3፥16 ያንብቡ።", "ኃ.የተ.የግ.ማ. ነው።"]),
        ("አበበ በሶ በላ።ጫላ ጩቤ ጨበጠ፡፡", ["አበበ በሶ በላ።", "ጫላ ጩቤ ጨበጠ፡፡"]), ("አለ፦ «ና።» ሄደ።", ["አለ፦ «ና።»", "ሄደ።"]),
        ("ርዕስ\nጽሑፍ ነው።\n\nሌላ", ["ርዕስ", "ጽሑፍ ነው።", "ሌላ"]), ("ምን?! እሺ...", ["ምን?!", "እሺ..."]),
        ("example.com ላይ አለ።", ["example.com ላይ አለ።"]), ("  \n ", []), ("።", ["።"]),
    ],
)  # fmt: skip
def test_text_is_split_into_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(st.text(st.characters() | st.sampled_from("ሀለ.።፡!? \nዓም/5")))
def test_splitting_loses_only_white_space(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())
