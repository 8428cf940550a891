"""Amharic verbs: where each class is geminate, which forms are made, and which of two homographs is kept."""

import re
from pathlib import Path

import pytest

from utils.amharic import verbs
from utils.amharic.tables import TableError, rows
from utils.amharic.verbs import TABLE, all_forms, derive, inflect

# citation, class, forms that the paradigm must hold
PARADIGMS = [
    ("ሰበːረ", "A", "ሰበːርኩ ሰበːርክ ሰበːረችː ሰበːራችːሁ ይሰብር ይሰብራልː ትሰብሪያለːሽ ይስበር ስበር ሰብሮ ሰብሬː ሰብሯልː መስበር መስበሪያ ሰባሪ አሰːባበር"),
    ("ከፈːተ", "A", "ትከፍቻለːሽ ትከፍቺ ክፈች ከፍቼː መክፈቻ ከፋች"),
    ("ገደːለ", "A", "ገዳይ መግደያ ገድዬː"),
    ("ፈለːገ", "B", "ይፈልːጋልː ይፈልːግ ፈልːግ ፈልːጎ መፈለːግ ፈላːጊ አፈːላለግ"),
    ("ሞከːረ", "B", "ይሞክːራልː ሞክːሮ መሞከːር ሞካːሪ"),
    ("ባረːከ", "C", "ይባርካልː ባርኮ መባረክ ባራኪ ባርክ"),
    ("መሰከːረ", "Q", "ይመሰክːራልː ይመስክር መስክሮ መመስከር መስካሪ"),
    ("ደባለːቀ", "F", "ይደባልːቃልː ደባልቆ መደባለቅ"),
    ("ተረጎːመ", "Q", "ይተረጉːማልː ተርጉሞ መተርጎም ተርጓሚ"),
    ("ቆረːጠ", "A", "ይቆርጣልː ይቁረጥ ቁረጥ ቆርጦ መቁረጥ ቆራጭ"),
    ("ሰማː", "A", "ሰማːሁ ሰሙː ይሰማልː ይስማ ስማ ሰምቶ ሰምቼː መስማት መስሚያ ሰሚ"),
    ("ቀረː", "A", "ቀረːችː ቀሩː ይቀራልː ይቅር ቀርቶ መቅረት ቀሪ"),
    ("ጠጣː", "B", "ይጠጣːልː ጠጥːቶ መጠጣːት መጠጫː ጠጪː"),
    ("ዋኘː", "C", "ይዋኛልː ዋኝቶ መዋኘት"),
    ("ዘነጋː", "Q", "ይዘነጋːልː ይዘንጋ ዘንግቶ መዘንጋት"),
    ("ሄደ", "M", "ሄድኩ ይሄዳልː ይሂድ ሂጂ ሄዶ መሄድ"),
    ("ቆመ", "M", "ይቆማልː ይቁም ቁም ቆሞ መቆም ቋሚ አቋːቋም"),
    ("ሳመ", "M", "ይስማልː ይሳም ስሞ መሳም"),
    ("ያዘ", "M", "ይይዛልː ይዞ መያዝ ያዥ"),
    ("አለːፈ", "VA", "አለːፍኩ ያልፋልː አልፋለːሁ ይለፍ እለፍ አልፎ ማለፍ ማለፊያ አላፊ"),
    ("አሰːበ", "VB", "ያስːባልː እናስːባለːን ያስːብ አስːብ አስːቦ ማሰːብ አሳːቢ"),
    ("አየː", "VA", "ያያልː ይይ እይ አይቶ ማየት"),
    ("ተማረ", "M-t", "ይማːራልː ተማር ተምሮ መማːር ተማሪ"),
    ("ተናገːረ", "C-t", "ይናːገːራልː ይናːገር ተናግሮ መናːገር ተናጋሪ"),
    ("ተመለከːተ", "Q-t", "ይመːለከːታልː ተመልክቶ መመːልከት ተመልካች"),
    ("ተባበːረ", "F-T", "ይተːባበːራልː ተባብሮ መተːባበር"),
    ("ታገːሰ", "V-T", "ይታːገːሳልː ታግːሶ መታːገːስ"),
    ("ተሳሳተ", "R-t", "ይሳːሳታልː ተሳስቶ መሳːሳት"),
    ("ተንቀሳቀːሰ", "F-tn", "ይንቀሳቀːሳልː ተንቀሳቅሶ መንቀሳቀስ"),
    ("አደረːገ", "A-a", "ያደርጋልː ያድርግ አድርጎ ማድረግ አድራጊ"),
    ("አገኘː", "A-a", "ያገኛልː አግኝቶ ማግኘት"),
    ("አስቀመːጠ", "A-as", "ያስቀምːጣልː አስቀምːጦ ማስቀመːጥ"),
    ("አስተማረ", "M-ast", "ያስተምራልː አስተምሮ ማስተማር አስተማሪ"),
    ("አሸːነːፈ", "B-at", "ያሸːንːፋልː አሸːንːፎ ማሸːነːፍ አሸːናːፊ"),
    ("አዋːሀደ", "C-at", "ያዋːህዳልː አዋːህዶ"),
]
# root, class, derived stem, forms
DERIVED = [
    ("ሰበːረ", "A", "t", "ተሰበːረ ይሰːበːራልː ይሰːበር ተሰብሮ መሰːበር ተሰባሪ"),
    ("ሰማː", "A", "as", "አሰːማː ያሰːማːልː አሰːምːቶ"),
    ("ፈለːገ", "B", "t", "ተፈለːገ ይፈːለːጋልː ተፈልːጎ መፈːለːግ"),
    ("ላከ", "M", "t", "ተላከ ይላːካልː ተልኮ መላːክ"),
    ("ቆመ", "M", "a", "አቆመ ያቆማልː ያቁም አቁሞ ማቆም አቋሚ"),
    ("በላː", "A", "a", "አበላː ያበላልː ያብላ አብልቶ ማብላት"),
    ("ነገːረ", "A", "as", "አስነገːረ ያስነግːራልː ማስነገːር"),
    ("አወːቀ", "VA", "t", "ታወːቀ ይታːወːቃልː ታውቆ መታːወቅ"),
    ("አሰːበ", "VB", "t", "ታሰːበ ይታːሰːባልː ታስːቦ"),
    ("አለːፈ", "VA", "as", "አሳለːፈ ያሳልːፋልː ማሳለːፍ"),
]


@pytest.mark.parametrize(("citation", "kind", "forms"), PARADIGMS)
def test_each_class_is_geminate_where_it_should_be(citation: str, kind: str, forms: str) -> None:
    assert not set(forms.split()) - set(inflect(citation, kind))


@pytest.mark.parametrize(("citation", "kind", "stem", "forms"), DERIVED)
def test_derived_stems_are_geminate_where_they_should_be(citation: str, kind: str, stem: str, forms: str) -> None:
    assert not set(forms.split()) - set(derive(citation, kind, stem))


def test_equal_radicals_may_be_written_once() -> None:
    forms = set(inflect("ዘለːለ", "A"))
    assert {"ይዘልላልː", "ይዘላːልː", "ዘልሎ", "ዘሎː"} <= forms


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("ይላክ", "ይላːክ"),  # is sent, rather than: let him send
        ("ይማር", "ይማːር"),  # learns, rather than: let him pardon
        ("ይመታል", "ይመታልː"),  # hits, rather than: is hit
        ("ይመጣል", "ይመጣልː"),  # comes, rather than: absorbs
        ("በልቶ", "በልቶ"),  # having eaten, rather than: having cut up
        ("ይጠብቃል", "ይጠብːቃልː"),  # waits, rather than: is tight
    ],
)
def test_the_likelier_of_two_homographs_is_kept(written: str, kept: str) -> None:
    assert all_forms()[written] == kept


def test_there_are_enough_verbs_and_not_too_many_forms() -> None:
    assert len(rows(TABLE, columns=4)) >= 1_500
    assert len(all_forms()) < 125_000


def test_every_listed_verb_is_among_the_forms() -> None:
    assert not {citation.replace("ː", "") for citation, *_ in rows(TABLE, columns=4)} - set(all_forms())


def test_no_verb_is_listed_twice() -> None:
    listed = [row[:2] for row in rows(TABLE, columns=4)]
    assert len(listed) == len(set(listed))


def test_forms_are_fidel_with_single_marks_and_no_geminate_h_or_glottal_stop() -> None:
    wrong = re.compile(r"[^ሀ-ፗː]|ːː|^ː|[ሀ-ሆኸ-ኾአ-ኦ]ː")
    assert not [form for form in all_forms().values() if wrong.search(form)]


@pytest.mark.parametrize(
    ("citation", "kind", "reason"),
    [
        ("ሰበረ", "A", "makes ሰበːረ"),
        ("ሰማː", "Q", "count its radicals"),
        ("ሰበːረ", "Z", "no such class"),
        ("ሰበːረ", "A-x", "no such stem"),
        ("ባረːከ", "A", "makes በረːከ"),
    ],
)
def test_a_verb_that_does_not_fit_its_class_is_refused(citation: str, kind: str, reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        list(inflect(citation, kind))


@pytest.mark.parametrize(
    ("line", "said"), [("ሰበːረ\tZ\tbreak\t-", "no such class: Z"), ("ሰበረ\tA\tbreak\t-", "class A makes")]
)
def test_a_bad_line_of_the_table_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "verbs.tsv"
    path.write_text(f"# comment\n{line}\n", encoding="utf-8")
    with pytest.raises(TableError, match=rf"verbs\.tsv:2: .*{said}"):
        verbs._read_table(path)
