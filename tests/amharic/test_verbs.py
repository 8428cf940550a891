"""Amharic verbs: what each class makes, and which of two homographs is chosen."""

from pathlib import Path

import pytest

from utils.amharic.alphabet import read as encode_letters
from utils.amharic.analysis import readings
from utils.amharic.lexicon import Entry, bare
from utils.amharic.phonemes import phonemize
from utils.amharic.tables import TableError, rows
from utils.amharic.verbs import TABLE, roots, stems

# citation, class, forms that the paradigm must hold
PARADIGMS = [
    ("ሰበːረ", "A", "ሰበːርኩ ሰበːርክ ሰበːረችː ሰበːራችːሁ ይሰብር ይሰብራል ትሰብሪያለːሽ ይስበር ስበር ሰብሮ ሰብሬː ሰብሯል መስበር መስበሪያ ሰባሪ አሰːባበር"),
    ("ከፈːተ", "A", "ትከፍቻለːሽ ትከፍቺ ክፈች ከፍቼː መክፈቻ ከፋች"), ("ገደːለ", "A", "ገዳይ መግደያ ገድዬː"),
    ("ፈለːገ", "B", "ይፈልːጋል ይፈልːግ ፈልːግ ፈልːጎ መፈለːግ ፈላːጊ አፈːላለግ"), ("ሞከːረ", "B", "ይሞክːራል ሞክːሮ መሞከːር ሞካːሪ"),
    ("ባረːከ", "C", "ይባርːካል ባርኮ መባረክ ባራኪ ባርክ"), ("መሰከːረ", "Q", "ይመሰክːራል ይመስክር መስክሮ መመስከር መስካሪ"),
    ("ደባለːቀ", "F", "ይደባልːቃል ደባልቆ መደባለቅ"), ("ተረጎːመ", "Q", "ይተረጉːማል ተርጉሞ መተርጎም ተርጓሚ"),
    ("ቆረːጠ", "A", "ይቆርጣል ይቁረጥ ቁረጥ ቆርጦ መቁረጥ ቆራጭ"), ("ሰማː", "A", "ሰማːሁ ሰሙː ይሰማል ይስማ ስማ ሰምቶ ሰምቼː መስማት መስሚያ ሰሚ"),
    ("ቀረː", "A", "ቀረːችː ቀሩː ይቀራል ይቅር ቀርቶ መቅረት ቀሪ"), ("ጠጣː", "B", "ይጠጣːል ጠጥːቶ መጠጣːት መጠጫː ጠጪː"),
    ("ዋኘː", "C", "ይዋኛːል ዋኝቶ መዋኘት"), ("ዘነጋː", "Q", "ይዘነጋːል ይዘንጋ ዘንግቶ መዘንጋት"), ("ሄደ", "M", "ሄድኩ ይሄዳል ይሂድ ሂጂ ሄዶ መሄድ"),
    ("ቆመ", "M", "ይቆማል ይቁም ቁም ቆሞ መቆም ቋሚ አቋːቋም"), ("ሳመ", "M", "ይስማል ይሳም ስሞ መሳም"), ("ያዘ", "M", "ይይዛል ይዞ መያዝ ያዥ"),
    ("አለːፈ", "VA", "አለːፍኩ ያልፋል አልፋለːሁ ይለፍ እለፍ አልፎ ማለፍ ማለፊያ አላፊ"),
    ("አሰːበ", "VB", "ያስːባል እናːስːባለːን ያስːብ አስːብ አስːቦ ማሰːብ አሳːቢ"), ("አየː", "VA", "ያያል ይይ እይ አይቶ ማየት"),
    ("ተማረ", "M-t", "ይማːራል ተማር ተምሮ መማːር ተማሪ"), ("ተናገːረ", "C-t", "ይናːገːራል ተናግሮ መናːገር ተናጋሪ"),
    ("ተመለከːተ", "Q-t", "ይመːለከːታል ተመልክቶ መመːልከት ተመልካች"), ("ተባበːረ", "F-T", "ይተːባበːራል ተባብሮ መተːባበር"),
    ("ታገːሰ", "V-T", "ይታːገːሳል ታግːሶ መታːገːስ"), ("ተሳሳተ", "R-t", "ይሳːሳታል ተሳስቶ መሳːሳት"),
    ("ተንቀሳቀːሰ", "F-tn", "ይንቀሳቀːሳል ተንቀሳቅሶ መንቀሳቀስ"), ("አደረːገ", "A-a", "ያደርጋል ያድርግ አድርጎ ማድረግ አድራጊ"),
    ("አገኘː", "A-a", "ያገኛል አግኝቶ ማግኘት"), ("አስቀመːጠ", "A-as", "ያስቀምːጣል አስቀምːጦ ማስቀመːጥ"),
    ("አስተማረ", "M-ast", "ያስተምራል አስተምሮ ማስተማር አስተማሪ"), ("አሸːነːፈ", "B-at", "ያሸːንːፋል አሸːንːፎ ማሸːነፍ አሸːናፊ"),
    ("አዋːሀደ", "C-at", "ያዋːህዳል አዋːህዶ"),
]  # fmt: skip
# root, class, derived stem, forms
DERIVED = [
    ("ሰበːረ", "A", "t", "ተሰበːረ ይሰːበːራል ተሰብሮ መሰːበር ተሰባሪ"), ("ሰማː", "A", "as", "አሰːማː ያሰːማːል አሰːምːቶ"),
    ("ፈለːገ", "B", "t", "ተፈለːገ ይፈːለːጋል ተፈልːጎ"), ("ላከ", "M", "t", "ተላከ ይላːካል ተልኮ"),
    ("ቆመ", "M", "a", "አቆመ ያቆማል ያቁም አቁሞ ማቆም አቋሚ"), ("በላː", "A", "a", "አበላː ያበላል ያብላ አብልቶ ማብላት"),
    ("ነገːረ", "A", "as", "አስነገːረ ያስነግːራል ማስነገːር"), ("አወːቀ", "VA", "t", "ታወːቀ ይታːወːቃል ታውቆ መታːወቅ"),
    ("አሰːበ", "VB", "t", "ታሰːበ ይታːሰːባል ታስːቦ"), ("አለːፈ", "VA", "as", "አሳለːፈ ያሳልːፋል ማሳለːፍ"),
]  # fmt: skip


def stems_of(folder: Path, citation: str, kind: str, voice: str = "-") -> dict[str, tuple[Entry, ...]]:
    """The stems of a table with one verb."""
    (folder / "verbs.tsv").write_text(f"{citation}\t{kind}\tgloss\t{voice}\n", encoding="utf-8")
    roots.cache_clear()
    known: dict[str, tuple[Entry, ...]] = {}
    for root, word, _ in roots(folder / "verbs.tsv"):
        for codes, kinds, cost in stems(root):
            known[bare(codes)] = (*known.get(bare(codes), ()), Entry(codes, kinds, cost, "test", word))
    roots.cache_clear()
    return known


@pytest.mark.parametrize(
    ("citation", "kind", "voice", "forms"), [*((*row[:2], "-", row[2]) for row in PARADIGMS), *DERIVED]
)
def test_each_class_is_geminate_where_it_should_be(
    citation: str, kind: str, voice: str, forms: str, tmp_path: Path
) -> None:
    known = stems_of(tmp_path, citation, kind, voice)
    for form in map(encode_letters, forms.split()):
        assert form in {reading.codes.replace("I", "") for reading in readings(form.replace(":", ""), known)}


@pytest.mark.parametrize(
    ("written", "phones"),
    [
        ("ይላክ", "jɨlːak"),  # is sent, rather than: let him send
        ("ይማር", "jɨmːar"),  # learns, rather than: let him pardon
        ("ይመታል", "jɨmətal"),  # hits, rather than: is hit
        ("ይመጣል", "jɨmətʼal"),  # comes, rather than: absorbs
        ("በልቶ", "bəlto"),  # having eaten, rather than: having cut up
        ("ይጠብቃል", "jɨtʼəbːɨkʼal"),  # waits, rather than: is tight
        ("ስሜ ትልቁ ቀኑ ለውጡ", "sɨme tɨlːɨkʼu kʼənu ləwtʼu"),  # nouns with suffixes, rather than rare forms of verbs
        ("አዲሱ", "adːisu"),  # the new one, rather than the name
        ("እያለ እያሉ", "ɨjːalːə ɨjːalːu"),
    ],
)
def test_the_likelier_of_two_homographs_is_chosen(written: str, phones: str) -> None:
    assert " ".join(map(phonemize, written.split())) == phones


@pytest.mark.parametrize(
    ("written", "phones"),
    [
        ("ያድርግ ያክብር ያቅርብ", "jadrɨɡ jakbɨr jakʼrɨb"),  # ɨ is where the template has it
        ("አድርጎ አቅራቢ ይልካል ይችላል", "adrɨɡo akʼrabi jɨlɨkal jɨt͡ʃɨlal"),
        ("ጥቅምት አጥንት ሳይንስ", "tʼɨkʼɨmt atʼɨnt sajns"),  # elsewhere by syllables
        ("እንሂድ እንነግራለን", "ɨnːɨhid ɨnːɨnəɡralːən"),
        ("የሄደችው የሄደችውን", "jəhedət͡ʃːɨw jəhedət͡ʃːɨwɨn"),
        ("ያልለበሰ አልላኩም", "jalːəbːəsə alːakumː"),  # ል before ል is one long consonant
        ("ሠርቻለሁ ሰብሬያለሁ", "sərɨt͡ʃːalːəhu səbɨrːejalːəhu"),
        ("ጓጓ ጓጉ አታንኳኩ", "ɡwaɡːwa ɡwaɡːu atːankwaku"),  # a labialised consonant is plain before u
        ("ጠይቂያት ስጪያቸው", "tʼəjːɨkʼijat sɨt͡ʃʼijat͡ʃːəw"),
        ("መቆያ መሸኛ ማከማቻ", "məkʼoja məʃəɲːa makːəmat͡ʃa"),  # behind a palatal the instrument ends in -a
        ("አለ አለው የለም አይደለም", "alːə alːəw jəlːəmː ajdəlːəmː"),
    ],
)
def test_forms_of_verbs_have_their_phones(written: str, phones: str) -> None:
    assert " ".join(map(phonemize, written.split())) == phones


def test_equal_radicals_may_be_written_once(tmp_path: Path) -> None:
    known = stems_of(tmp_path, "ዘለːለ", "A")
    for form in map(encode_letters, ("ይዘልላል", "ይዘላːል", "ዘልሎ", "ዘሎː")):
        assert form in {reading.codes for reading in readings(form.replace(":", ""), known)}


def test_there_are_enough_verbs() -> None:
    assert len(rows(TABLE, columns=4)) >= 1_500


def test_every_listed_verb_is_there_once() -> None:
    listed = [row[:2] for row in rows(TABLE, columns=4)]
    assert len(listed) == len(set(listed))


def test_stems_have_no_long_h_or_glottal_stop() -> None:
    assert not [stem for root, _, _ in roots() for stem in stems(root) if "h:" in stem.codes or "H:" in stem.codes]


@pytest.mark.parametrize(
    ("citation", "kind", "reason"),
    [
        ("ሰበረ", "A", "makes sEb:ErE"), ("ሰማː", "Q", "count its radicals"), ("ሰበːረ", "Z", "no such class"),
        ("ሰበːረ", "A-x", "no such stem"), ("ባረːከ", "A", "makes bEr:EkE"),
    ],
)  # fmt: skip
def test_a_verb_that_does_not_fit_its_class_is_refused_with_its_line(
    citation: str, kind: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(TableError, match=rf"verbs\.tsv:1: .*{reason}"):
        stems_of(tmp_path, citation, kind)
