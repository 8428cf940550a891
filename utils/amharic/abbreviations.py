"""Abbreviations with strokes and dots (ት/ቤቶች, ዓ.ም., በመ/ቤቱ), written out with their prefixes and endings."""

import re
from collections.abc import Mapping
from functools import cache

from utils.amharic.letters import ETHIOPIC, fold
from utils.amharic.numbers import attach, same_consonant
from utils.amharic.quantities import is_unit
from utils.amharic.tables import mapping, rows

CANDIDATE = re.compile(
    rf"(?<![{ETHIOPIC}])[{ETHIOPIC}]{{1,12}}(?:[./][{ETHIOPIC}]{{1,12}}){{1,8}}(?:\.(?![{ETHIOPIC}])|/)?"
)
SPACED_YEAR = re.compile(r"([ዓዐአኣ])\. (?=[ምዓ]\.)")  # ዓ. ም. is written with a space as well
BARE = re.compile(rf"(?<![{ETHIOPIC}./])([{ETHIOPIC}]{{0,3}}ወዘተ)\.")
AFTER_NUMBER = re.compile(r"[0-9]\s?$")
ENDINGS = re.compile("(?:[ችቹውዋንምናስያኛ]|ዎች|ዎቹ|ታችን|ታቸው|ቸው|ነት){0,3}")
MOST_STROKES = 5
PREFIXES = ("እስከ", "እንደ", "ስለ", "ወደ", "በየ", "ከየ", "ለየ", "የ", "በ", "ከ", "ለ")


def expand_abbreviations(text: str) -> str:
    """Write out every abbreviation of a text."""
    if "." not in text and "/" not in text:
        return text
    text = SPACED_YEAR.sub(r"\1.", text)
    text = _before_numbers().sub(lambda match: f"{mapping('before_numbers.tsv')[match[1]]} ", text)
    text = CANDIDATE.sub(_expand_here, text)
    return BARE.sub(r"\1 ", text)


def _expand_here(match: re.Match[str]) -> str:
    counted = AFTER_NUMBER.search(match.string, max(0, match.start() - 2), match.start())
    return match[0] if counted and is_unit(match[0]) else f"{expand(match[0])} "


def expand(written: str) -> str:
    """Write out one candidate; what is no abbreviation keeps its words, parted by a stop or a space."""
    plain = written.rstrip("./").replace("/", ".")
    if plain.count(".") > MOST_STROKES:
        return _unknown(written, plain)
    for prefix in ("", *(prefix for prefix in PREFIXES if plain.startswith(prefix) and len(plain) > len(prefix))):
        spoken = _whole(plain[len(prefix) :]) or _name(plain[len(prefix) :])
        if spoken:
            stop = "." if "/" in written and written.endswith(".") else ""  # with strokes, the dot ends the sentence
            return prefix + spoken + stop
    return _unknown(written, plain)


def _whole(plain: str) -> str:
    """Look a whole abbreviation up; its last letter may have changed its order for an ending."""
    exact = _wholes().get(plain) or _folded_wholes().get(fold(plain))
    if exact:
        return exact
    for end in range(len(plain) - 1, 1, -1):
        stems = _stems().get(fold(plain[:end]), ())
        for last, spoken in sorted(stems, key=lambda stem: stem[0] != fold(plain[end])):
            if same_consonant(last, fold(plain[end])) and "." in plain[:end] and ENDINGS.fullmatch(plain[end + 1 :]):
                return (
                    attach(spoken, plain[end:]) if same_consonant(spoken[-1], plain[end]) else spoken + plain[end + 1 :]
                )
    return ""


def _name(plain: str) -> str:
    """Write out ገ/ሚካኤል and the like: a short first part before a word of two letters and more."""
    first, _, rest = plain.partition(".")
    spoken = _firsts().get(first) or _firsts().get(fold(first))
    if not spoken or len(rest) < 2:
        return ""
    return f"{spoken} {_whole(rest) or _name(rest) or rest.replace('.', ' ')}"


def _unknown(written: str, plain: str) -> str:
    parts = plain.split(".")
    if (
        all(len(part) == 1 for part in parts)
        or (len(parts) > 2 and all(len(part) <= 2 for part in parts))
        or "." not in written.rstrip(".")
    ):
        return " ".join(parts) + ("." if "/" in written and written.endswith(".") else "")
    return written.replace("/", " ").replace(".", ". ")


@cache
def _wholes() -> Mapping[str, str]:
    return {written: spoken for written, spoken, kind in rows("abbreviations.tsv", columns=3) if kind == "whole"}


@cache
def _folded_wholes() -> Mapping[str, str]:
    return {fold(written): spoken for written, spoken in reversed(list(_wholes().items()))}


@cache
def _stems() -> Mapping[str, list[tuple[str, str]]]:
    """Map every abbreviation without its last letter to that letter and to what is spoken."""
    found: dict[str, list[tuple[str, str]]] = {}
    for written, spoken in _folded_wholes().items():
        found.setdefault(written[:-1], []).append((written[-1], spoken))
    return found


@cache
def _firsts() -> Mapping[str, str]:
    return {written: spoken for written, spoken, kind in rows("abbreviations.tsv", columns=3) if kind == "before"}


@cache
def _before_numbers() -> re.Pattern[str]:
    known = "|".join(sorted(map(re.escape, mapping("before_numbers.tsv")), key=len, reverse=True))
    return re.compile(rf"(?<![{ETHIOPIC}./])({known})\.\s?(?=[0-9])")
