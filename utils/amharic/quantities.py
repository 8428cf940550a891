"""Numbers in running text: dates, times, telephones, money, ranges, fractions, units, ranks and plain numbers."""

import re
from collections.abc import Callable, Mapping
from functools import cache

from utils.amharic.letters import ETHIOPIC
from utils.amharic.numbers import attach, geez_to_digits, one_by_one, same_consonant, say, with_ending
from utils.amharic.tables import rows

Found = re.Match[str]

FRACTIONS = {
    "½": ("1", "2"),
    "⅓": ("1", "3"),
    "⅔": ("2", "3"),
    "¼": ("1", "4"),
    "¾": ("3", "4"),
    "⅕": ("1", "5"),
    "⅛": ("1", "8"),
}
SIGN = "(?:(?<![^\\s(])[-−])"
WHOLE = "(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)"
DECIMAL = f"{WHOLE}(?:\\.[0-9]+)?"
SCALE = "(?:\\s?(?:ሺህ|ሺ|ሚሊዮን|ሚልዮን|ቢሊዮን|ቢልዮን|ትሪሊዮን|ትሪልዮን|million|billion))"
LONGEST_PREFIX = 12
NEEDED = re.compile("[0-9፩-፼½⅓⅔¼¾⅕⅛]")
OTHER_DIGIT = re.compile(r"[^\D0-9]")
LETTERS_BEFORE = re.compile(f"[{ETHIOPIC}]+$")


def read_quantities(text: str) -> str:
    """Write every number of a text in words, with all that belongs to it."""
    text = OTHER_DIGIT.sub(lambda match: str(int(match[0])), text)
    if not NEEDED.search(text):
        return text
    return _pattern().sub(_read, geez_to_digits(text))


def _read(match: re.Match[str]) -> str:
    before = _letters_before(match)
    apart = " " if before and before not in _prefixes() else ""
    return apart + READERS[match.lastgroup or ""](match)


def _letters_before(match: re.Match[str]) -> str:
    if not match.start() or not "\u1200" <= match.string[match.start() - 1] <= "\u135a":
        return ""
    before = LETTERS_BEFORE.search(match.string, max(0, match.start() - LONGEST_PREFIX), match.start())
    return before[0] if before else ""


def _date(found: Found) -> str:
    return " ".join(say(part.lstrip("0") or "0") for part in re.split("[/.-]", found["date"])) + " "


def _clock(found: Found) -> str:
    """Read a time of day as it is said, never moving it by six hours."""
    hour, minute, second = found["hour"].lstrip("0") or "0", found["minute"], found["second"]
    spoken = f"{say(hour)} ሰዓት"
    if minute == "30" and not second:
        return f"{spoken} ተኩል "
    if minute == "15" and not second:
        return f"{spoken} ከሩብ "
    if minute != "00":
        spoken += f" ከ{say(minute.lstrip('0'))} ደቂቃ"
    return f"{spoken} ከ{say(second.lstrip('0') or '0')} ሰከንድ " if second else f"{spoken} "


def _telephone(found: Found) -> str:
    written = found[0]
    groups = re.findall("[0-9]+", written)
    return ("ፕላስ " if written.startswith("+") else "") + " ".join(one_by_one(group) for group in groups) + " "


def _money(found: Found) -> str:
    name, hundredth = _currencies()[found["sign"] or found["coin"]]
    amount, scale = found["amount"] or found["sum"], (found["scale"] or found["scale_before"] or "").strip()
    ending = found["coin_end"] or ""
    whole, _, cents = amount.replace(",", "").partition(".")
    if scale or len(cents) not in {0, 2}:
        return f"{number(amount)} {scale} {name}{ending} "
    if cents.strip("0") and whole != "0":
        return f"{say(whole)} {name} ከ{say(cents.lstrip('0'))} {hundredth} "
    return f"{say(cents.lstrip('0'))} {hundredth} " if cents.strip("0") else f"{say(whole)} {name}{ending} "


def _mixed(found: Found) -> str:
    whole, sign = found["mixed_whole"], found["mixed"]
    over, under = FRACTIONS[sign] if sign in FRACTIONS else sign.split("/")
    if not whole:
        return f"{fraction(over, under)} "
    return f"{say(whole)} ተኩል " if (over, under) == ("1", "2") else f"{say(whole)} ከ{fraction(over, under)} "


def fraction(over: str, under: str) -> str:
    """Say a fraction; what is no proper one is said as two numbers."""
    if (over, under) == ("1", "2"):
        return "ግማሽ"
    proper = len(under) <= 3 and 0 < int(over) < int(under)
    return f"{say(over)} {with_ending(under, 'ኛ')}" if proper else f"{say(over)} {say(under)}"


def _range(found: Found) -> str:
    low, high = found["low"], found["high"]
    if len(low) < 3 and float(low) >= float(high.replace(",", "")):
        return f"{number(low)} ለ{number(high)} "  # a score
    start = "" if _letters_before(found) in _prefixes() else "ከ"
    return f"{start}{number(low)} እስከ {number(high)}{_unit(found['range_unit'])} "


def _score(found: Found) -> str:
    return f"{say(found['ours'])} ለ{say(found['theirs'])} "


def _percent(found: Found) -> str:
    spoken = "መቶ" if found["share"] == "100" else number(found["share"])
    return f"{spoken} በመቶ{found['share_end']} "


def _measure(found: Found) -> str:
    return f"{number(found['measure'])}{_unit(found['unit'])} "


def _unit(written: str | None) -> str:
    """Say a unit, and after a stroke the time for which it counts."""
    if not written:
        return ""
    plain = written.strip().rstrip(".")
    if plain.replace("/", ".") not in _units() and plain not in _units():
        plain, _, per = plain.rpartition("/")
        return f"{_unit(plain)} በ{_units().get(per, per)}"
    return " " + (_units().get(plain) or _units()[plain.replace("/", ".")])


def is_unit(written: str) -> bool:
    """Tell whether letters with dots or strokes are a unit, alone or for each of something."""
    plain = written.rstrip(".")
    return plain.replace("/", ".") in _units() or plain.rpartition("/")[0].replace("/", ".") in _units()


def _plain(found: Found) -> str:
    digits, ending = found["plain"], found["ending"]
    if not ending:
        return f"{number(digits)} "
    spoken = number(digits)
    if ending in _endings() and "." not in digits:
        return with_ending(digits.replace(",", ""), ending)
    if len(ending) <= 4 and same_consonant(spoken[-1], ending[0]) and ending[0] not in "ሚመ":
        return attach(spoken, ending)
    return f"{spoken} {ending}"


def number(written: str) -> str:
    """Say a number with its sign, separators and decimals."""
    minus = written[0] in "-−"
    whole, _, decimals = written.lstrip("-−").replace(",", "").partition(".")
    spoken = say(whole) + (f" ነጥብ {one_by_one(decimals)}" if decimals else "")
    return f"ነጌቲቭ {spoken}" if minus else spoken


READERS: Mapping[str, Callable[[Found], str]] = {
    "is_date": _date,
    "is_clock": _clock,
    "is_telephone": _telephone,
    "is_money": _money,
    "is_mixed": _mixed,
    "is_range": _range,
    "is_score": _score,
    "is_percent": _percent,
    "is_measure": _measure,
    "is_plain": _plain,
}


@cache
def _pattern() -> re.Pattern[str]:
    """Join all shapes into one expression, read once from left to right; the first shape that fits wins."""
    coins, units = _any_of(_currencies()), _any_of(_units())
    unit = rf"(?:{units})(?:/(?:{units}|[{ETHIOPIC}]+))?\.?(?![A-Za-z{ETHIOPIC}])"
    end = f"(?![{ETHIOPIC}])"
    shapes = {
        "is_date": r"(?P<date>(?<![0-9])[0-9]{1,4}(?P<cut>[/.-])[0-9]{1,2}(?P=cut)[0-9]{1,4}(?![0-9/]))",
        "is_clock": r"(?P<hour>(?<![0-9:])[0-9]{1,2})(?::|\.(?=[0-5][0-9]\s?ሰዓት))(?P<minute>[0-5][0-9])"
        rf"(?::(?P<second>[0-5][0-9]))?(?![0-9:])(?:\s?ሰዓት{end})?",
        "is_telephone": r"\+[0-9](?:[ -]?[0-9]){6,14}(?![0-9])|(?<![0-9])0[0-9]{2,3}(?:[ -][0-9]{2,4}){2,4}(?![0-9])"
        "|(?<![0-9])0[0-9]{8,9}(?![0-9])",
        "is_money": rf"(?P<sign>{coins})\s?(?P<amount>{DECIMAL})(?P<scale>{SCALE}?)"
        rf"|(?P<sum>{DECIMAL})(?P<scale_before>{SCALE}?)\s?(?P<coin>{coins})(?:(?P<coin_end>[{ETHIOPIC}]{{0,6}})|(?![A-Za-z]))",
        "is_mixed": r"(?:(?P<mixed_whole>[0-9]+)(?:\s(?=[0-9])|\s?(?=[½-⅞¼¾])))?"
        "(?P<mixed>[½⅓⅔¼¾⅕⅛]|(?<![0-9/])[0-9]{1,6}/[0-9]{1,6}(?![0-9/]))",
        "is_range": rf"(?P<low>{DECIMAL})\s?[-–—−]\s?(?P<high>{DECIMAL})"
        rf"(?P<range_unit>\s?{unit})?(?![-0-9–{ETHIOPIC}])",
        "is_score": rf"(?P<ours>[0-9]+)\s?ለ\s?(?P<theirs>[0-9]+){end}",
        "is_percent": rf"(?P<share>{SIGN}?{DECIMAL})\s?[%％](?P<share_end>[{ETHIOPIC}]{{0,4}})",
        "is_measure": rf"(?P<measure>{SIGN}?{DECIMAL})\s?(?P<unit>{unit})",
        "is_plain": rf"(?P<plain>{SIGN}?{DECIMAL})(?P<ending>[{ETHIOPIC}]*)",
    }
    return re.compile("|".join(f"(?:{shape})(?P<{name}>)" for name, shape in shapes.items()))


def _any_of(table: Mapping[str, object]) -> str:
    return "|".join(re.escape(written).replace("\\.", "[./]") for written in sorted(table, key=len, reverse=True))


@cache
def _currencies() -> Mapping[str, tuple[str, str]]:
    return {written: (spoken, hundredth) for written, spoken, hundredth in rows("currencies.tsv", columns=3)}


@cache
def _units() -> Mapping[str, str]:
    return {written: spoken for written, spoken in rows("units.tsv", columns=2) if written != "%"}


@cache
def _prefixes() -> frozenset[str]:
    return frozenset(prefix for prefix, _ in rows("number_prefixes.tsv", columns=2))


@cache
def _endings() -> frozenset[str]:
    return frozenset(ending for ending, _ in rows("number_suffixes.tsv", columns=2))
