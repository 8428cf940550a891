"""Language names: every spelling that a person may use, mapped to one code."""

import difflib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from utils.core.errors import UnknownLanguageError

TABLE = Path(__file__).parent / "data" / "languages.toml"


@dataclass(frozen=True)
class Language:
    """A language and its names."""

    code: str  # used in files, flags and language tokens
    name: str
    native_name: str
    aliases: tuple[str, ...] = ()  # in lower case
    whisper_code: str | None = None  # None if Whisper does not know the language and has to guess
    in_xtts: bool = False  # whether the published XTTS v2 speaks it
    samples: tuple[str, ...] = ()  # sentences whose tokens show when the text front end changes

    @property
    def token(self) -> str:
        return f"[{self.code}]"  # starts every text in this language


AMHARIC = Language("am", "Amharic", "አማርኛ", ("amh", "amharinya", "amarigna", "amarinya"), "am")

WHISPER_CODES = frozenset(
    "af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi hr ht hu hy id "
    "is it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc pa pl ps pt ro ru sa sd si "
    "sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo yue zh".split()
)

# A tag such as amh_ET, amh-Ethi or pt-BR: the language, then script, region or variant.
TAG = re.compile(r"([a-z]{2,3})(?:[-_.@][a-z0-9]+)*")


@cache
def known_languages() -> tuple[Language, ...]:
    """Return Amharic, the languages of XTTS, and neighbours of Amharic; any other is known by its code."""
    languages = [AMHARIC]
    for code, row in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        languages.append(Language(code, **values))
    return tuple(languages)


def find(name: str) -> Language:
    """Return the language with this name, code or tag.

    A well-formed code that is not listed (``ff``, ``swe_SE``) is a language of its own, read by the generic language
    pack. Any other unknown name is most likely a typing error.
    """
    wanted = " ".join(name.split()).casefold()
    known = _by_alias()
    if wanted in known:
        return known[wanted]
    if not (tag := TAG.fullmatch(wanted)):
        near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.6)
        similar = dict.fromkeys(f"{known[spelling].name} ({known[spelling].code})" for spelling in near)
        raise UnknownLanguageError(name[:60], tuple(similar) or UnknownLanguageError.suggestions)
    code = tag[1]
    return known.get(code) or Language(code, code, code, (), code if code in WHISPER_CODES else None)


def canonical(name: str) -> str:
    return find(name).code


@cache
def _by_alias() -> dict[str, Language]:
    return {
        spelling.casefold(): language
        for language in known_languages()
        for spelling in (language.code, language.name, language.native_name, *language.aliases)
    }
