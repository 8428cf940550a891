"""Abbreviations with strokes and dots (ት/ቤቶች, ዓ.ም., በመ/ቤቱ), written out with their prefixes and endings."""

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from utils.amharic.alphabet import ETHIOPIC, fold
from utils.amharic.numbers import attach, same_consonant
from utils.amharic.quantities import is_unit, unit_words
from utils.amharic.tables import mapping, rows

CANDIDATE = re.compile(
    rf"(?<![{ETHIOPIC}])[{ETHIOPIC}]{{1,12}}(?:[./][{ETHIOPIC}]{{1,12}}){{1,8}}(?:\.(?![{ETHIOPIC}])|/)?"
    rf"|(?<=[{ETHIOPIC}])\.(?=[{ETHIOPIC}](?![{ETHIOPIC}]))"  # what is left of a longer row of letters
)
SPACED_YEAR = re.compile(rf"(?<![{ETHIOPIC}])([በከለየ]?[ዓዐአኣ])\. (?=[ምዓ]\.)")  # ዓ. ም. is written with a space as well
AFTER_NUMBER = re.compile(r"[0-9]\s?$")
VERSE = re.compile("[0-9][:፥][0-9]")
NO_MINUTE = "(?![0-5][0-9](?![0-9]))"  # ማርቆስ 5:30 is somebody's time of day, ማር. 5:30 a verse
SENTENCE_DOT = re.compile(rf"(?<=[{ETHIOPIC}]{{2}})\.(?=[{ETHIOPIC}]{{2}})")
LETTER_DOT = re.compile(r"\.(?! )")
WORD = re.compile(rf"[{ETHIOPIC}]{{2}}")
DOT = re.compile(r"\.")
BEFORE_DIGIT = re.compile(r"\s?[0-9]")
ENDINGS = re.compile("(?:[ችቹቻውዋንምናስያኛ]|ዎች|ዎቹ|ታችን|ታቸው|ችን|ቸው|ነት){0,3}")
MAX_STROKES = 5
MORE_LETTER_NAMES = ("ደብልዩ", "ደብሊዩ", "ዩ", "ዜድ")
SAINTS = (  # what follows the first part of a name: ገብረ ማርያም, ወልደ ሚካኤል, ኃይለ ሥላሴ
    "ማርያም ሚካኤል ገብርኤል ጊዮርጊስ ሥላሴ መስቀል ሕይወት ዮሐንስ ጻድቅ እግዚአብሔር መድኅን ኢየሱስ ክርስቶስ አማኑኤል ወልድ ሃይማኖት ብርሃን ኪዳን ኪሮስ አረጋዊ ሰንበት ሩፋኤል "
    "ዑራኤል ጴጥሮስ ጻዲቅ ዋህድ መንፈስ ማርቆስ አብ አምላክ ሰማዕት"
)
PREFIXES = ("እስከ", "እንደ", "ስለ", "ወደ", "በየ", "ከየ", "ለየ", "የ", "በ", "ከ", "ለ")


def expand_abbreviations(text: str) -> str:
    if VERSE.search(text):
        text = _chapters().sub(_read_verse, text)
    if "." not in text and "/" not in text:
        return text
    text = SPACED_YEAR.sub(r"\1.", text)
    text = _before_numbers().sub(lambda match: f"{match[1]}{_counted()[match[2]]} ", text)
    return CANDIDATE.sub(_expand_here, text)


def _expand_here(match: re.Match[str]) -> str:
    if match[0] == ".":
        return " "
    counted = AFTER_NUMBER.search(match.string, max(0, match.start() - 2), match.start())
    if counted and is_unit(match[0]):
        return match[0]
    spoken = expand(match[0])
    if BEFORE_DIGIT.match(match.string, match.end()):  # መ/ቁ. 12: the dot belongs to the abbreviation
        spoken = spoken.rstrip(".")
    return f"{spoken} "


def _read_verse(match: re.Match[str]) -> str:
    """Read ዮሐ. 3፥16 as chapter and verse, which would otherwise be a time of day."""
    name = mapping("bible_books.tsv").get(match["book"], match["book"])
    name = name.removeprefix("የ") if match["prefix"] else name
    return f"{match['prefix']}{name}{match['gospel']} ምዕራፍ {match['chapter']} ቁጥር "


@lru_cache(maxsize=1024)  # a text repeats its abbreviations
def expand(written: str) -> str:
    """Write out one candidate; anything else keeps its words, separated by a stop or a space."""
    plain = written.rstrip("./").replace("/", ".")
    if plain.count(".") > MAX_STROKES:
        return _unknown(written, plain)
    for prefix in ("", *(prefix for prefix in PREFIXES if plain.startswith(prefix) and len(plain) > len(prefix))):
        rest = plain[len(prefix) :]
        spoken = _look_up("whole", rest) or _saint(rest) or _whole(rest)
        spoken = spoken or unit_words(rest) or _run_on(rest) or _name(rest)
        if spoken:
            stop = "." if "/" in written and written.endswith(".") else ""  # with strokes, the dot ends the sentence
            return prefix + (spoken.removeprefix("የ") if prefix else spoken) + stop
    return _unknown(written, plain)


def _whole(plain: str) -> str:
    """Look a whole abbreviation up; its last letter may have changed its order for an ending."""
    if exact := _look_up("whole", plain):
        return exact
    for end in range(len(plain) - 1, 1, -1):
        stems = _stems().get(fold(plain[:end]), ())
        for last, spoken in sorted(stems, key=lambda stem: stem[0] != fold(plain[end])):
            is_stem = same_consonant(last, fold(plain[end])) and "." in plain[:end]
            if is_stem and (ended := _with_ending(spoken, plain[end:])):
                return ended
    return ""


def _with_ending(spoken: str, written: str) -> str:
    """Join an ending, written from the abbreviation's last letter on: (ዶክተር, ሮች) and (ጠቅላይ ሚኒስትር, ሚሩ)."""
    if len(written) > 1 and same_consonant(spoken[-1], written[1]) and ENDINGS.fullmatch(written[2:]):
        return attach(spoken, written[1:])
    if not ENDINGS.fullmatch(written[1:]):
        return ""
    return attach(spoken, written) if same_consonant(spoken[-1], written[0]) else spoken + written[1:]


def _run_on(plain: str) -> str:
    """Write out an abbreviation with dots and what follows it without a space (ዓ.ም.የተሠራ, ጠ/ሚ/ጽ/ቤት)."""
    for head, tail in reversed(_cuts(plain)):
        if "." in head and len(tail) > 1 and (spoken := _whole(head)):
            return f"{spoken} {expand(tail)}"
    return ""


def _cuts(plain: str) -> list[tuple[str, str]]:
    """Part letters with dots in two at every dot."""
    return [(plain[: dot.start()], plain[dot.end() :]) for dot in DOT.finditer(plain)][:MAX_STROKES]


def _name(plain: str) -> str:
    """Write out ገ/ሚካኤል and the like: a short first part before a word of two letters and more."""
    first, _, rest = plain.partition(".")
    spoken = _look_up("before", first)
    if not spoken or len(rest.rpartition(".")[2]) < 2:
        return ""
    return f"{spoken} {_whole(rest) or _name(rest) or rest.replace('.', ' ')}"


def _saint(plain: str) -> str:
    """Write out ገ/ማርያም: before the name of a saint, a letter stands for the first part of a person's name."""
    first, _, rest = plain.partition(".")
    return _name(plain) if fold(rest).startswith(_saints()) and _look_up("before", first) else ""


@cache
def _saints() -> tuple[str, ...]:
    return tuple(fold(name) for name in SAINTS.split())


def _unknown(written: str, plain: str) -> str:
    """Read what is on no list: by strokes into pieces, a piece with dots as an acronym or as separate sentences."""
    stop = "." if "/" in written and written.endswith(".") else ""
    for head, tail in _cuts(plain):
        known = (_whole(tail) or _run_on(tail)) if "." in tail and WORD.search(plain) else ""
        if known:  # የካ/ክ/ከተማ; letters alone are an acronym
            return f"{_acronym(head)}{' ' if '/' in written else '. '}{known}{stop}"
    return " ".join(_acronym(piece) for piece in written.rstrip("./").split("/")) + stop


def _acronym(dotted: str) -> str:
    """Read ቢ.ቢ.ሲ letter by letter, ኢ.ሕ.አ.ፓ as a word; a dot between longer parts ends a sentence."""
    parts = dotted.split(".")
    longest = max(map(len, parts))
    letter_names = {*mapping("letter_names.tsv").values(), *MORE_LETTER_NAMES}
    if letter_names.issuperset(parts) or (len(parts) > 2 and longest == 2):
        return " ".join(parts)
    if longest == 1:
        return ("" if len(parts) > 2 else " ").join(parts)
    return LETTER_DOT.sub(" ", SENTENCE_DOT.sub(". ", dotted))


@cache
def _table(kind: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the abbreviations of a kind (whole, before a name) as they are written, and with folded letters."""
    exact = {written: spoken for written, spoken, each in rows("abbreviations.tsv", columns=3) if each == kind}
    return exact, {fold(written): spoken for written, spoken in reversed(exact.items())}


def _look_up(kind: str, written: str) -> str:
    exact, folded = _table(kind)
    return exact.get(written) or folded.get(fold(written)) or ""


@cache
def _stems() -> Mapping[str, list[tuple[str, str]]]:
    """Map every abbreviation without its last letter to that letter and to what is spoken."""
    stems: dict[str, list[tuple[str, str]]] = {}
    for written, spoken in _table("whole")[1].items():
        stems.setdefault(written[:-1], []).append((written[-1], spoken))
    return stems


@cache
def _before_numbers() -> re.Pattern[str]:
    return re.compile(rf"(?<![{ETHIOPIC}./])([በከለየ]?)({_any_of(_counted())})\.\s?(?=[0-9])")


@cache
def _chapters() -> re.Pattern[str]:
    books = mapping("bible_books.tsv")
    return re.compile(
        rf"(?<![{ETHIOPIC}./])(?P<prefix>[በከለየ]?)(?P<book>{_any_of({*books, *books.values()})})(?P<gospel>(?: ወንጌል)?)"
        rf"(?P<dot>\. ?)?(?(dot)| )(?P<chapter>[0-9]{{1,3}})(?:፥|:(?(dot)|{NO_MINUTE}))(?=[0-9])"
    )


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


@cache
def _counted() -> Mapping[str, str]:
    return {**mapping("bible_books.tsv"), **mapping("before_numbers.tsv")}
