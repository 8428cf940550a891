"""Numbers in running text: dates, times, telephones, money, ranges, fractions, units, ranks and plain numbers."""

import re
from collections.abc import Mapping
from functools import cache

from utils.amharic.alphabet import ETHIOPIC
from utils.amharic.numbers import (
    HIGHEST_DIGITS,
    attach,
    joined_before,
    joined_behind,
    one_by_one,
    same_consonant,
    say,
    with_ending,
)
from utils.amharic.tables import rows

Match = re.Match[str]
FRACTIONS = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅛": "1/8"}
QUARTERS = {"15": " ከሩብ", "30": " ተኩል"}
SIGN = "(?:(?<![^\\s(])[-−])"
WHOLE = "(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)"
DECIMAL = f"{WHOLE}(?:\\.[0-9]+)?"
SCALE = "(?:\\s?(?:ሺህ|ሺ|ሚሊዮን|ሚልዮን|ቢሊዮን|ቢልዮን|ትሪሊዮን|ትሪልዮን|million|billion))"
SPACED_THOUSANDS = re.compile("(?<![0-9+])(?<![0-9+] )[1-9][0-9]{0,2}(?: [0-9]{3})*? 000(?![ -]?[0-9])")
UNTIL = "\\s?[-–—]\\s?(?=[0-9])"
ROUND = 6  # zeros at the end of a number that is no account
LONGEST_PREFIX = 12
LONGEST_ENDING = 4
NEEDED = re.compile("[0-9፩-፼½⅓⅔¼¾⅕⅛]")
OTHER_DIGIT = re.compile(r"[^\D0-9]")
LETTERS_BEFORE = re.compile(f"[{ETHIOPIC}]+$")


def read_quantities(text: str) -> str:
    text = OTHER_DIGIT.sub(lambda match: str(int(match[0])), text)
    if not NEEDED.search(text):
        return text
    text = SPACED_THOUSANDS.sub(lambda match: match[0].replace(" ", ""), text)
    return _pattern().sub(_read, text)


def _read(match: Match) -> str:
    before = _letters_before(match)
    apart = " " if before and before not in joined_before() else ""
    return apart + READERS[match.lastgroup or ""](match)


def _letters_before(match: Match) -> str:
    if not match.start() or not "\u1200" <= match.string[match.start() - 1] <= "\u135a":
        return ""
    before = LETTERS_BEFORE.search(match.string, max(0, match.start() - LONGEST_PREFIX), match.start())
    return before[0] if before else ""


def _date(match: Match) -> str:
    return " ".join(say(part.lstrip("0") or "0") for part in re.split("[/.-]", match["date"])) + " "


def _clock(match: Match) -> str:
    """Read a time of day as it is said, never moving it by six hours."""
    hour = match["hour"].lstrip("0") or "0"
    minute = match["minute"]
    second = match["second"]
    spoken = f"{say(hour)} ሰዓት"
    if minute in QUARTERS and not second:
        spoken += QUARTERS[minute]
    elif minute != "00":
        spoken += f" ከ{say(minute.lstrip('0'))} ደቂቃ"
    if second:
        spoken += f" ከ{say(second.lstrip('0') or '0')} ሰከንድ"
    return f"{_from(match)}{spoken} እስከ " if match["until"] else f"{spoken} "


def _from(match: Match) -> str:
    """Return the ከ that opens a range, unless the writer has put a prefix there already (በ5-8, ከቀኑ 5-8)."""
    before = match.string[max(0, match.start() - LONGEST_PREFIX) : match.start()]
    prefixed = _letters_before(match) in joined_before() or re.search(rf"(?<![{ETHIOPIC}])ከ[{ETHIOPIC}]*\s?$", before)
    return "" if prefixed else "ከ"


def _telephone(match: Match) -> str:
    return ("ፕላስ " if "+" in match[0] else "") + " ".join(map(one_by_one, re.findall("[0-9]+", match[0]))) + " "


def _account(match: Match) -> str:
    """Read a long row of digits one by one, as people read an account; a round number is a number."""
    digits = match["account"]
    return f"{number(digits) if digits.endswith('0' * ROUND) else one_by_one(digits)} "


def _money(match: Match) -> str:
    name, hundredth = _currencies()[match["sign"] or match["coin"]]
    amount, scale = match["amount"] or match["sum"], (match["scale"] or match["scale_before"] or "").strip()
    ending = match["coin_end"] or ""
    whole, _, cents = amount.replace(",", "").partition(".")
    if match["most"]:
        return f"{_from(match)}{number(amount)} እስከ {number(match['most'])} {scale} {name} "
    if scale or len(cents) not in {0, 2}:
        return f"{number(amount)} {scale} {name}{ending} "
    if not cents.strip("0"):
        return f"{say(whole)} {name}{ending} "
    small = f"{say(cents.lstrip('0'))} {hundredth} "
    return small if whole == "0" else f"{say(whole)} {name} ከ{small}"


def _mixed(match: Match) -> str:
    whole, sign = match["mixed_whole"], match["mixed"]
    over, under = FRACTIONS.get(sign, sign).split("/")
    half = (over, under) == ("1", "2")
    if half and not whole and (match["mixed_end"] or "").startswith("ኛ"):
        return f"አንድ ሁለተ{match['mixed_end']} "
    spoken = fraction(over, under) if not whole else say(whole) + (" ተኩል" if half else f" ከ{fraction(over, under)}")
    end = match["mixed_end"] or ""
    if spoken.endswith("ኛ"):  # the ኛ of 1/3ኛ is already said
        end = end.removeprefix("ኛ")
    return f"{spoken}{_unit(match['mixed_unit'])}{'' if len(end) < LONGEST_ENDING else ' '}{end} "


def fraction(over: str, under: str) -> str:
    """Say a fraction; an improper one is said as two numbers."""
    if (over, under) == ("1", "2"):
        return "ግማሽ"
    proper = len(under) <= 3 and 0 < int(over) < int(under)
    return f"{say(over)} {with_ending(under, 'ኛ')}" if proper else f"{say(over)} {say(under)}"


def _range(match: Match) -> str:
    low, high = match["low"], match["high"]
    is_score = low == "0" and _from(match) and not match["range_unit"]
    if is_score or (len(low) < 3 and float(low) >= float(high.replace(",", ""))):
        return f"{number(low)} ለ{number(high)} "  # a score
    return f"{_from(match)}{number(low)} እስከ {number(high)}{_unit(match['range_unit'])} "


def _ranks(match: Match) -> str:
    return f"{_from(match)}{with_ending(match['rank'], 'ኛ')} እስከ "


def _score(match: Match) -> str:
    return f"{say(match['ours'])} ለ{say(match['theirs'])} "


def _percent(match: Match) -> str:
    spoken, until = "መቶ" if match["share"] == "100" else number(match["share"]), match["share_until"]
    return f"{spoken} በመቶ{match['share_end']} {'እስከ ' if until else ''}"


def _measure(match: Match) -> str:
    scale = f" {match['thousands'].strip()}" if match["thousands"] else ""
    until = "እስከ " if match["unit_until"] else ""
    return f"{number(match['measure'])}{scale}{_unit(match['unit'])} {until}"


def _unit(written: str | None) -> str:
    """Say a unit, and after a stroke the time for which it counts."""
    if not written:
        return ""
    plain = written.strip().rstrip(".")
    if plain.replace("/", ".") not in _units() and plain not in _units():
        plain, _, per = plain.rpartition("/")
        return f"{_unit(plain)} በ{_units().get(per, per)}"
    return " " + (_units().get(plain) or _units()[plain.replace("/", ".")])


def unit_words(written: str) -> str:
    """Say a unit that stands without a number (በካ.ሜ); empty for anything else."""
    return _unit(written).strip() if "." in written and is_unit(written) else ""


def is_unit(written: str) -> bool:
    """Return whether letters with dots or strokes are a unit, alone or for each of something."""
    plain = written.rstrip(".")
    each, _, per = plain.rpartition("/")
    return plain.replace("/", ".") in _units() or (each.replace("/", ".") in _units() and "." not in per)


def _plain(match: Match) -> str:
    digits, ending = match["plain"], match["ending"]
    if not ending:
        return f"{number(digits)} "
    spoken = number(digits)
    if ending in joined_behind() and "." not in digits:
        return with_ending(digits.replace(",", "").lstrip("-−"), ending)  # no rank is negative: the sign is a dash
    if len(ending) <= 4 and same_consonant(spoken[-1], ending[0]) and ending[0] not in "ሚመ":
        return attach(spoken, ending)
    return f"{spoken} {ending}"


def number(written: str) -> str:
    """Say a number with its sign, separators and decimals."""
    minus = written[0] in "-−"
    whole, _, decimals = written.lstrip("-−").replace(",", "").partition(".")
    spoken = say(whole) + (f" ነጥብ {one_by_one(decimals)}" if decimals else "")
    return f"ነጌቲቭ {spoken}" if minus else spoken


# By the name of the group that a shape below ends with: is_date, is_clock, ...
READERS = {
    f"is{reader.__name__}": reader
    for reader in (
        _date,
        _clock,
        _telephone,
        _money,
        _account,
        _mixed,
        _ranks,
        _range,
        _score,
        _percent,
        _measure,
        _plain,
    )
}


# Long because it is one table of shapes, which are tried in this order.
@cache
def _pattern() -> re.Pattern[str]:
    """Join all shapes into one expression, read once from left to right; the first shape that fits wins."""
    coins = "|".join(map(_written, sorted(_currencies(), key=len, reverse=True)))
    units = "|".join(map(_not_begun, sorted(_units(), key=len, reverse=True)))
    unit = rf"(?:{units})(?:/(?:{units}|[{ETHIOPIC}]+))?\.?(?![A-Za-z{ETHIOPIC}])"
    end = f"(?![{ETHIOPIC}])"
    shapes = {
        "is_date": r"(?P<date>(?<![0-9])[0-9]{1,4}(?P<cut>[/.-])[0-9]{1,2}(?P=cut)[0-9]{1,4}(?![0-9/]|-[0-9]))",
        "is_clock": r"(?P<hour>(?<![0-9:])[0-9]{1,2})(?::|\.(?=[0-5][0-9]\s?ሰዓት))(?P<minute>[0-5][0-9])"
        rf"(?::(?P<second>[0-5][0-9]))?(?![0-9:])(?:\s?ሰዓት{end})?"
        r"(?P<until>\s?[-–—]\s?(?=[0-9]{1,2}:[0-5][0-9]))?",
        "is_telephone": r"\(?\+[0-9]{1,3}\)?(?:[ -]?[0-9]){6,12}(?![0-9])"
        r"|(?<![0-9])0(?=(?:[ /-]?[0-9]){8,9}(?![0-9]))[0-9]{1,3}(?:[ /-][0-9]{2,6}){1,4}(?![0-9])"
        "|(?<![0-9])0[0-9]{8,9}(?![0-9])"
        r"|(?<![0-9])251(?=(?:[ -]?[0-9]){9}(?![0-9]))(?:[ -]?[0-9]{1,9}){1,4}(?![0-9])"
        r"|\(0[0-9]{1,3}\)(?:[ -]?[0-9]{2,4}){2,4}(?![0-9])",
        "is_money": rf"(?P<sign>{coins})\s?(?P<amount>{DECIMAL})(?:\s?[-–—]\s?(?P<most>{DECIMAL}))?(?P<scale>{SCALE}?)"
        rf"|(?P<sum>{DECIMAL})(?P<scale_before>{SCALE}?)\s?(?P<coin>{coins})(?:(?P<coin_end>[{ETHIOPIC}]{{0,6}})|(?![A-Za-z]))",
        "is_account": rf"(?P<account>(?<=ቁጥር )[0-9]{{6,9}}|(?<![0-9.,])[0-9]{{10,{HIGHEST_DIGITS}}})"
        rf"(?![0-9.,%]|\s?(?:{SCALE}|{unit}))",
        "is_mixed": r"(?:(?P<mixed_whole>[0-9]+)(?:\s(?=[0-9])|\s?(?=[½-⅞¼¾])))?"
        "(?P<mixed>[½⅓⅔¼¾⅕⅛]|(?<![0-9/])[0-9]{1,6}/[0-9]{1,6}(?![0-9/]))"
        rf"(?:(?P<mixed_unit>\s?{unit})|(?P<mixed_end>[{ETHIOPIC}]{{0,6}}))",
        "is_ranks": rf"(?P<rank>[0-9]+)ኛ?{UNTIL}(?=[0-9]+[ኛኞ])",
        "is_range": rf"(?P<low>(?<![A-Za-z]-){DECIMAL})\s?[-–—−]\s?(?P<high>{DECIMAL})"
        rf"(?P<range_unit>\s?{unit})?(?![-0-9–{ETHIOPIC}])",
        "is_score": rf"(?P<ours>[0-9]+)\s?ለ\s?(?P<theirs>[0-9]+){end}",
        "is_percent": rf"(?P<share>{SIGN}?{DECIMAL})\s?[%％](?P<share_end>[{ETHIOPIC}]{{0,4}})"
        rf"(?P<share_until>{UNTIL})?",
        "is_measure": rf"(?P<measure>{SIGN}?{DECIMAL})(?P<thousands>{SCALE}?)\s?(?P<unit>{unit})"
        rf"(?P<unit_until>{UNTIL})?",
        "is_plain": rf"(?P<plain>{SIGN}?{DECIMAL})(?P<ending>[{ETHIOPIC}]*)",
    }
    begins = "".join({re.escape(coin[0]) for coin in _currencies()})
    joined = "|".join(f"(?:{shape})(?P<{name}>)" for name, shape in shapes.items())
    return re.compile(f"(?=[0-9(+−½⅓⅔¼¾⅕⅛{begins}-])(?:{joined})")  # most letters begin no shape: one look is enough


def _written(form: str) -> str:
    return re.escape(form).replace("\\.", "[./]")


def _not_begun(unit: str) -> str:
    """Match a unit where it is not the first word of one that is written out, as ሚሊ is in ሚሊ ሜትር."""
    rest = {spoken.removeprefix(f"{unit} ") for spoken in _units().values() if spoken.startswith(f"{unit} ")}
    return _written(unit) + (rf"(?!\s(?:{'|'.join(sorted(rest))}))" if rest else "")


@cache
def _currencies() -> Mapping[str, tuple[str, str]]:
    return {written: (spoken, hundredth) for written, spoken, hundredth in rows("currencies.tsv", columns=3)}


@cache
def _units() -> Mapping[str, str]:
    return {written: spoken for written, spoken in rows("units.tsv", columns=2) if written != "%"}
