"""Amharic verbs: where each class is geminate, which forms are made, and which of two homographs is chosen."""

import re
from pathlib import Path

import pytest

from utils.amharic.tables import TableError, rows
from utils.amharic.verbs import TABLE, all_forms

# citation, class, forms that the paradigm must hold
PARADIGMS = [
    ("ሰበːረ", "A", "ሰበːርኩ ሰበːርክ ሰበːረችː ሰበːራችːሁ ይሰብር ይሰብራልː ትሰብሪያለːሽ ይስበር ስበር ሰብሮ ሰብሬː ሰብሯልː መስበር መስበሪያ ሰባሪ አሰːባበር"),
    ("ከፈːተ", "A", "ትከፍቻለːሽ ትከፍቺ ክፈች ከፍቼː መክፈቻ ከፋች"), ("ገደːለ", "A", "ገዳይ መግደያ ገድዬː"),
    ("ፈለːገ", "B", "ይፈልːጋልː ይፈልːግ ፈልːግ ፈልːጎ መፈለːግ ፈላːጊ አፈːላለግ"), ("ሞከːረ", "B", "ይሞክːራልː ሞክːሮ መሞከːር ሞካːሪ"),
    ("ባረːከ", "C", "ይባርካልː ባርኮ መባረክ ባራኪ ባርክ"), ("መሰከːረ", "Q", "ይመሰክːራልː ይመስክር መስክሮ መመስከር መስካሪ"),
    ("ደባለːቀ", "F", "ይደባልːቃልː ደባልቆ መደባለቅ"), ("ተረጎːመ", "Q", "ይተረጉːማልː ተርጉሞ መተርጎም ተርጓሚ"),
    ("ቆረːጠ", "A", "ይቆርጣልː ይቁረጥ ቁረጥ ቆርጦ መቁረጥ ቆራጭ"), ("ሰማː", "A", "ሰማːሁ ሰሙː ይሰማልː ይስማ ስማ ሰምቶ ሰምቼː መስማት መስሚያ ሰሚ"),
    ("ቀረː", "A", "ቀረːችː ቀሩː ይቀራልː ይቅር ቀርቶ መቅረት ቀሪ"), ("ጠጣː", "B", "ይጠጣːልː ጠጥːቶ መጠጣːት መጠጫː ጠጪː"),
    ("ዋኘː", "C", "ይዋኛልː ዋኝቶ መዋኘት"), ("ዘነጋː", "Q", "ይዘነጋːልː ይዘንጋ ዘንግቶ መዘንጋት"), ("ሄደ", "M", "ሄድኩ ይሄዳልː ይሂድ ሂጂ ሄዶ መሄድ"),
    ("ቆመ", "M", "ይቆማልː ይቁም ቁም ቆሞ መቆም ቋሚ አቋːቋም"), ("ሳመ", "M", "ይስማልː ይሳም ስሞ መሳም"), ("ያዘ", "M", "ይይዛልː ይዞ መያዝ ያዥ"),
    ("አለːፈ", "VA", "አለːፍኩ ያልፋልː አልፋለːሁ ይለፍ እለፍ አልፎ ማለፍ ማለፊያ አላፊ"),
    ("አሰːበ", "VB", "ያስːባልː እናስːባለːን ያስːብ አስːብ አስːቦ ማሰːብ አሳːቢ"), ("አየː", "VA", "ያያልː ይይ እይ አይቶ ማየት"),
    ("ተማረ", "M-t", "ይማːራልː ተማር ተምሮ መማːር ተማሪ"), ("ተናገːረ", "C-t", "ይናːገːራልː ተናግሮ መናːገር ተናጋሪ"),
    ("ተመለከːተ", "Q-t", "ይመːለከːታልː ተመልክቶ መመːልከት ተመልካች"), ("ተባበːረ", "F-T", "ይተːባበːራልː ተባብሮ መተːባበር"),
    ("ታገːሰ", "V-T", "ይታːገːሳልː ታግːሶ መታːገːስ"), ("ተሳሳተ", "R-t", "ይሳːሳታልː ተሳስቶ መሳːሳት"),
    ("ተንቀሳቀːሰ", "F-tn", "ይንቀሳቀːሳልː ተንቀሳቅሶ መንቀሳቀስ"), ("አደረːገ", "A-a", "ያደርጋልː ያድርግ አድርጎ ማድረግ አድራጊ"),
    ("አገኘː", "A-a", "ያገኛልː አግኝቶ ማግኘት"), ("አስቀመːጠ", "A-as", "ያስቀምːጣልː አስቀምːጦ ማስቀመːጥ"),
    ("አስተማረ", "M-ast", "ያስተምራልː አስተምሮ ማስተማር አስተማሪ"), ("አሸːነːፈ", "B-at", "ያሸːንːፋልː አሸːንːፎ ማሸːነːፍ አሸːናːፊ"),
    ("አዋːሀደ", "C-at", "ያዋːህዳልː አዋːህዶ"),
]  # fmt: skip
# root, class, derived stem, forms
DERIVED = [
    ("ሰበːረ", "A", "t", "ተሰበːረ ይሰːበːራልː ተሰብሮ መሰːበር ተሰባሪ"), ("ሰማː", "A", "as", "አሰːማː ያሰːማːልː አሰːምːቶ"),
    ("ፈለːገ", "B", "t", "ተፈለːገ ይፈːለːጋልː ተፈልːጎ"), ("ላከ", "M", "t", "ተላከ ይላːካልː ተልኮ"),
    ("ቆመ", "M", "a", "አቆመ ያቆማልː ያቁም አቁሞ ማቆም አቋሚ"), ("በላː", "A", "a", "አበላː ያበላልː ያብላ አብልቶ ማብላት"),
    ("ነገːረ", "A", "as", "አስነገːረ ያስነግːራልː ማስነገːር"), ("አወːቀ", "VA", "t", "ታወːቀ ይታːወːቃልː ታውቆ መታːወቅ"),
    ("አሰːበ", "VB", "t", "ታሰːበ ይታːሰːባልː ታስːቦ"), ("አለːፈ", "VA", "as", "አሳለːፈ ያሳልːፋልː ማሳለːፍ"),
]  # fmt: skip


def forms_of(folder: Path, citation: str, kind: str, stem: str = "-") -> set[str]:
    """The forms of a table with one verb."""
    (folder / "verbs.tsv").write_text(f"{citation}\t{kind}\tgloss\t{stem}\n", encoding="utf-8")
    all_forms.cache_clear()
    return set(all_forms(folder / "verbs.tsv").values())


@pytest.mark.parametrize(
    ("citation", "kind", "stem", "forms"), [*((*row[:2], "-", row[2]) for row in PARADIGMS), *DERIVED]
)
def test_each_class_is_geminate_where_it_should_be(
    citation: str, kind: str, stem: str, forms: str, tmp_path: Path
) -> None:
    assert set(forms.split()) - forms_of(tmp_path, citation, kind, stem) == set()


@pytest.mark.parametrize(
    ("written", "chosen"),
    [
        ("ይላክ", "ይላːክ"),  # is sent, rather than: let him send
        ("ይማር", "ይማːር"),  # learns, rather than: let him pardon
        ("ይመታል", "ይመታልː"),  # hits, rather than: is hit
        ("ይመጣል", "ይመጣልː"),  # comes, rather than: absorbs
        ("በልቶ", "በልቶ"),  # having eaten, rather than: having cut up
        ("ይጠብቃል", "ይጠብːቃልː"),  # waits, rather than: is tight
    ],
)
def test_the_likelier_of_two_homographs_is_chosen(written: str, chosen: str) -> None:
    assert all_forms()[written] == chosen


def test_equal_radicals_may_be_written_once(tmp_path: Path) -> None:
    assert {"ይዘልላልː", "ይዘላːልː", "ዘልሎ", "ዘሎː"} <= forms_of(tmp_path, "ዘለːለ", "A")


def test_there_are_enough_verbs_and_not_too_many_forms() -> None:
    assert len(rows(TABLE, columns=4)) >= 1_500
    assert len(all_forms()) < 125_000


def test_every_listed_verb_is_among_the_forms_and_there_once() -> None:
    listed = [row[:2] for row in rows(TABLE, columns=4)]
    assert not {citation.replace("ː", "") for citation, _ in listed} - set(all_forms())
    assert len(listed) == len(set(listed))


def test_forms_are_fidel_with_single_marks_and_no_geminate_h_or_glottal_stop() -> None:
    wrong = re.compile(r"[^ሀ-ፗː]|ːː|^ː|[ሀ-ሆኸ-ኾአ-ኦ]ː")
    assert not [form for form in all_forms().values() if wrong.search(form)]


@pytest.mark.parametrize(
    ("citation", "kind", "reason"),
    [
        ("ሰበረ", "A", "makes ሰበːረ"), ("ሰማː", "Q", "count its radicals"), ("ሰበːረ", "Z", "no such class"),
        ("ሰበːረ", "A-x", "no such stem"), ("ባረːከ", "A", "makes በረːከ"),
    ],
)  # fmt: skip
def test_a_verb_that_does_not_fit_its_class_is_refused_with_its_line(
    citation: str, kind: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(TableError, match=rf"verbs\.tsv:1: .*{reason}"):
        forms_of(tmp_path, citation, kind)
