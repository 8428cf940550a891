"""Language names: every spelling that a person may use, mapped to one code."""

import difflib
import re
from dataclasses import dataclass
from functools import cache

from utils.core.errors import UnknownLanguageError


@dataclass(frozen=True)
class Language:
    """A language and its names."""

    code: str  # used in files, flags and language tokens
    name: str
    native_name: str
    aliases: tuple[str, ...] = ()  # in lower case
    whisper_code: str | None = None  # None if Whisper does not know the language and has to guess
    in_xtts: bool = False  # whether the published XTTS v2 speaks it

    @property
    def token(self) -> str:
        return f"[{self.code}]"  # starts every text in this language


AMHARIC = Language("am", "Amharic", "አማርኛ", ("amh", "amharinya", "amarigna", "amarinya"), "am")

XTTS_LANGUAGES = (
    Language("en", "English", "English", ("eng",), "en", in_xtts=True),
    Language("es", "Spanish", "español", ("spa", "castilian"), "es", in_xtts=True),
    Language("fr", "French", "français", ("fra", "fre"), "fr", in_xtts=True),
    Language("de", "German", "Deutsch", ("deu", "ger"), "de", in_xtts=True),
    Language("it", "Italian", "italiano", ("ita",), "it", in_xtts=True),
    Language("pt", "Portuguese", "português", ("por",), "pt", in_xtts=True),
    Language("pl", "Polish", "polski", ("pol",), "pl", in_xtts=True),
    Language("tr", "Turkish", "Türkçe", ("tur",), "tr", in_xtts=True),
    Language("ru", "Russian", "русский", ("rus",), "ru", in_xtts=True),
    Language("nl", "Dutch", "Nederlands", ("nld", "dut"), "nl", in_xtts=True),
    Language("cs", "Czech", "čeština", ("ces", "cze"), "cs", in_xtts=True),
    Language("ar", "Arabic", "العربية", ("ara", "arb"), "ar", in_xtts=True),
    Language("zh-cn", "Chinese", "中文", ("zh", "zho", "chi", "cmn", "mandarin"), "zh", in_xtts=True),
    Language("ja", "Japanese", "日本語", ("jpn",), "ja", in_xtts=True),
    Language("hu", "Hungarian", "magyar", ("hun",), "hu", in_xtts=True),
    Language("ko", "Korean", "한국어", ("kor",), "ko", in_xtts=True),
    Language("hi", "Hindi", "हिन्दी", ("hin",), "hi", in_xtts=True),
)

# Neighbours of Amharic that users are likely to name in full; any other language is known by its code.
OTHER_LANGUAGES = (
    Language("ti", "Tigrinya", "ትግርኛ", ("tir", "tigrigna")),
    Language("om", "Oromo", "Afaan Oromoo", ("orm", "gaz", "afan oromo")),
    Language("so", "Somali", "Soomaali", ("som",), "so"),
    Language("sw", "Swahili", "Kiswahili", ("swa", "swh"), "sw"),
    Language("gez", "Ge'ez", "ግዕዝ", ("geez",)),
)

WHISPER_CODES = frozenset(
    "af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi hr ht hu hy id "
    "is it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc pa pl ps pt ro ru sa sd si "
    "sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo yue zh".split()
)

# A tag such as amh_ET, amh-Ethi or pt-BR: the language, then script, region or variant.
TAG = re.compile(r"([a-z]{2,3})(?:[-_.@][a-z0-9]+)*")


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
        names = dict.fromkeys(f"{known[spelling].name} ({known[spelling].code})" for spelling in near)
        meant = f"Did you mean {' or '.join(names)}? " if names else ""
        hint = f"{meant}Give a name such as Amharic or a code such as am."
        raise UnknownLanguageError(f"Unknown language {name!r}.", hint=hint)
    code = tag[1]
    return known.get(code) or Language(code, code, code, (), code if code in WHISPER_CODES else None)


def canonical(name: str) -> str:
    return find(name).code


@cache
def _by_alias() -> dict[str, Language]:
    return {
        spelling.casefold(): language
        for language in (AMHARIC, *XTTS_LANGUAGES, *OTHER_LANGUAGES)
        for spelling in (language.code, language.name, language.native_name, *language.aliases)
    }
