"""Language packs: how the text of a language is prepared for the tokenizer.

Amharic has its own front end, the 17 languages of XTTS use the cleaners of coqui that they were trained with, and any
other language is used as written. coqui and the Amharic tables are loaded on first use.
"""

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from utils.core import languages
from utils.core.errors import TextError

if TYPE_CHECKING:
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

TextMode = Literal["latin", "ipa", "fidel"]
TEXT_MODES: tuple[TextMode, ...] = get_args(TextMode)
Backend = Literal["rules", "epitran"]  # for graphemes, use the text mode fidel

TOKEN_LIMIT = 200  # coqui's max_text_length in training; the upper half of the 402 positions is untrained


class LanguagePack(Protocol):
    """What the tokenizer needs to know about a language."""

    @property
    def name(self) -> str:
        """Return the name of the pack, stored with a model."""

    @property
    def code(self) -> str:
        """Return the canonical code of the language."""

    @property
    def character_limit(self) -> int:
        """Return the maximum characters of a sentence."""

    @property
    def token_limit(self) -> int:
        """Return the maximum tokens of a sentence."""

    @property
    def samples(self) -> tuple[str, ...]:
        """Return sample sentences."""

    def normalise(self, text: str) -> str:
        """Spell out numbers, abbreviations and symbols."""

    def phonemise(self, text: str) -> str:
        """Convert normalised text to IPA, if the pack supports it."""

    def render(self, normalised: str, phones: str, mode: TextMode) -> str:
        """Return the model input in this text mode."""

    def symbols(self, mode: TextMode) -> frozenset[str]:
        """Return every character that ``render`` may output; empty if unknown."""

    def plain(self, symbol: str) -> str | None:
        """Spell a missing character with common ones, or return None where that would be a guess."""

    def resembling(self, token: str) -> str:
        """Spell a new token with Latin letters, to initialise its row."""

    def split(self, text: str) -> list[str]:
        """Split a text into sentences."""


SENTENCE_MARKS = ".,;:?!-"


@dataclass(frozen=True)
class AmharicPack:
    """Amharic, with the front end of ``utils.amharic``.

    Attributes:
        backend: Grapheme-to-phoneme backend.
        overrides: Custom pronunciations by word.
    """

    backend: Backend = "rules"
    overrides: Mapping[str, str] = field(default_factory=dict)
    name: str = "amharic"
    code: str = languages.AMHARIC.code
    character_limit: int = 110  # 200 tokens at 1.7 per letter, measured on 40 sentences
    token_limit: int = TOKEN_LIMIT
    samples: tuple[str, ...] = (
        "ሰላም፣ እንደምን አደራችሁ?",
        "ዛሬ ጠዋት ወደ ገበያ ሄጄ ቡናና ዳቦ ገዛሁ።",
        "በ2016 ዓ.ም. 3,450 ተማሪዎች ፈተናውን አልፈዋል።",
        "ልጆቹ ትምህርት ቤት ውስጥ ጥሩ መጽሐፍ ያነባሉ።",
        "ስብሰባው ከሰዓት በኋላ 8፡30 ላይ ይጀምራል፤ እባክዎ አይዘግዩ!",
        "የጤና ባለሙያዎቹ ስለ ክትባቱ ለሕዝቡ ገለጻ አደረጉ።",
        "ሐኪሙ በቁስሉ ላይ መድኃኒት ቀባ፤ ጓደኛዬም አመሰገነው።",
        "ዝናቡ ሲዘንብ እናቴ ጥቁር ጃንጥላዋን ይዛ ወጣች።",
    )

    def normalise(self, text: str) -> str:
        """Spell out numbers, abbreviations and symbols in Amharic."""
        from utils.amharic import normalize

        return normalize(text)

    def phonemise(self, text: str) -> str:
        """Convert normalised Amharic to IPA."""
        from utils.amharic import phonemize

        try:
            return phonemize(text, backend=self.backend, overrides=self.overrides or None)
        except ValueError as error:
            raise TextError(
                f"Invalid pronunciation: {error}.", hint="Correct the pronunciations of the project."
            ) from error

    def render(self, normalised: str, phones: str, mode: TextMode) -> str:
        """Return Latin letters, phonemes or Ethiopic letters."""
        from utils.amharic import to_latin
        from utils.amharic.phonemes import plain_punctuation

        if mode == "fidel":
            return plain_punctuation(normalised)
        return to_latin(phones) if mode == "latin" else phones

    def symbols(self, mode: TextMode) -> frozenset[str]:
        """Return the letters of this mode and sentence marks."""
        return _amharic_symbols(mode)

    def plain(self, symbol: str) -> str | None:
        """Spell marks only; a letter that the front end left is reported as unknown."""
        return _ascii(symbol) if unicodedata.category(symbol)[0] in "PZC" else None

    def resembling(self, token: str) -> str:
        """Spell a phoneme or subword in Latin letters."""
        from utils.amharic import phonemize, to_latin

        return to_latin(phonemize(token) if _is_ethiopic(token) else token)

    def split(self, text: str) -> list[str]:
        """Split at Ethiopic and Latin sentence ends, but not in abbreviations."""
        from utils.amharic import split_sentences

        return list(split_sentences(text))


class _AsWritten:
    """Base of packs whose languages are used as written."""

    def phonemise(self, text: str) -> str:
        """Return the text unchanged."""
        return text

    def render(self, normalised: str, phones: str, mode: TextMode) -> str:  # noqa: ARG002  the same in every mode
        """Return the normalised text."""
        return normalised

    def symbols(self, mode: TextMode) -> frozenset[str]:  # noqa: ARG002
        """Return nothing: the vocabulary covers the language, or the text shows its letters."""
        return frozenset()

    def plain(self, symbol: str) -> str | None:
        """Spell a character in ASCII."""
        return _ascii(symbol)

    def split(self, text: str) -> list[str]:
        """Split at the sentence ends of any script; coqui would load spaCy."""
        return split_sentences_of_any_script(text)


@dataclass(frozen=True)
class CoquiPack(_AsWritten):
    """One of the 17 languages of XTTS, with the cleaners it was trained with."""

    code: str
    name: str = "coqui"
    token_limit: int = TOKEN_LIMIT

    @property
    def coqui_code(self) -> str:
        """Return the code of coqui's cleaners, such as zh for zh-cn."""
        return self.code.partition("-")[0]

    @cached_property
    def character_limit(self) -> int:
        """Return coqui's limit for this language."""
        return int(_coqui().char_limits[self.coqui_code])

    @property
    def samples(self) -> tuple[str, ...]:
        """Return sample sentences."""
        return XTTS_SAMPLES[self.code]

    def normalise(self, text: str) -> str:
        """Run coqui's cleaner."""
        try:
            return str(_coqui().preprocess_text(text, self.coqui_code))
        except ImportError as error:
            raise TextError(
                f"{languages.find(self.code).name} text needs a package: {error}.", hint="Install it with pip."
            ) from error
        except (ArithmeticError, LookupError, TypeError, ValueError, NotImplementedError) as error:
            raise TextError(
                f"coqui's cleaner for {self.code} fails on {text[:60]!r}: {error}",
                hint="Write numbers as words.",
            ) from error

    def resembling(self, token: str) -> str:
        """Return the token; no rows are added for these languages."""
        return token


@dataclass(frozen=True)
class GenericPack(_AsWritten):
    """Any other language and script, in lower case.

    In Latin mode, letters missing from the vocabulary are spelled in ASCII; the other modes add them as symbols.
    """

    code: str
    name: str = "generic"
    character_limit: int = 160
    token_limit: int = TOKEN_LIMIT
    samples: tuple[str, ...] = ()

    def normalise(self, text: str) -> str:
        """Compose letters, lower the case and collapse spaces."""
        return " ".join(unicodedata.normalize("NFC", text).lower().split())

    def resembling(self, token: str) -> str:
        """Spell a token in ASCII."""
        return "".join(_ascii(symbol) or "" for symbol in token)


XTTS_SAMPLES = {
    "en": ("The children walked home along the quiet river.", "Dr. Lee paid $20 for 3 books."),
    "es": ("Los niños volvieron a casa por la orilla del río.",),
    "fr": ("Les enfants sont rentrés chez eux le long de la rivière.",),
    "de": ("Die Kinder gingen am stillen Fluss entlang nach Hause.",),
    "it": ("I bambini tornarono a casa lungo il fiume tranquillo.",),
    "pt": ("As crianças voltaram para casa pela margem do rio.",),
    "pl": ("Dzieci wróciły do domu wzdłuż spokojnej rzeki.",),
    "tr": ("Çocuklar sakin nehir boyunca eve yürüdüler.",),
    "ru": ("Дети шли домой вдоль тихой реки.",),
    "nl": ("De kinderen liepen langs de stille rivier naar huis.",),
    "cs": ("Děti šly domů podél tiché řeky.",),
    "ar": ("عاد الأطفال إلى البيت على ضفة النهر الهادئ.",),
    "zh-cn": ("孩子们沿着安静的河边走回家。",),
    "ja": ("子供たちは静かな川に沿って家に帰りました。",),
    "hu": ("A gyerekek a csendes folyó mentén sétáltak haza.",),
    "ko": ("아이들은 조용한 강을 따라 집으로 걸어갔다.",),
    "hi": ("बच्चे शांत नदी के किनारे घर लौटे।",),
}


def pack_for(language: str, *, backend: Backend = "rules", overrides: Mapping[str, str] | None = None) -> LanguagePack:
    """Return the pack of a language, by any name."""
    match = languages.find(language)
    if match == languages.AMHARIC:
        return AmharicPack(backend, overrides or {})
    return CoquiPack(match.code) if match.in_xtts else GenericPack(match.code)


def fingerprint(pack: LanguagePack) -> str:
    """Hash the output of a pack for its samples; it changes when the front end changes."""
    digest = hashlib.sha256(pack.name.encode())
    for sample in pack.samples:
        normalised = pack.normalise(sample)
        phones = pack.phonemise(normalised)
        digest.update("\n".join(pack.render(normalised, phones, mode) for mode in TEXT_MODES).encode())
    return digest.hexdigest()[:16]


# A sentence ends at a mark followed by a space, or at a mark that is written without a space.
SENTENCE_END = re.compile(r"(?<=[.!?…؟۔।።፧])[\"'”’»)\]]*\s+|(?<=[。！？])|\n+")


def split_sentences_of_any_script(text: str) -> list[str]:
    """Split a text of any script into sentences."""
    return [sentence for part in SENTENCE_END.split(text) if (sentence := part.strip())]


@cache
def _coqui() -> "VoiceBpeTokenizer":
    """Load coqui's cleaners; this imports torch."""
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

    return VoiceBpeTokenizer()


@cache
def _amharic_symbols(mode: TextMode) -> frozenset[str]:
    """Return letters and sentence marks of a mode."""
    from utils.amharic import alphabet, normalize
    from utils.amharic.latin import SYMBOLS

    if mode == "latin":
        letters = "".join(SYMBOLS)
    elif mode == "ipa":
        letters = "".join(alphabet.PHONES) + "ː"
    else:
        letters = "".join(normalize(chr(code)) for code in range(0x1200, 0x135B) if chr(code).isalpha())
    return frozenset(letters + SENTENCE_MARKS) - {" "}


def _is_ethiopic(text: str) -> bool:
    return any("\u1200" <= letter <= "\u139f" or "\u2d80" <= letter <= "\u2ddf" for letter in text)


def _ascii(symbol: str) -> str | None:
    """Spell a character in lower-case ASCII; combining marks are dropped, pictures have no spelling."""
    from anyascii import anyascii

    spelled = anyascii(symbol).lower()
    invisible = unicodedata.category(symbol) in {"Mn", "Mc", "Cf"}
    return spelled if invisible or (spelled and unicodedata.category(symbol) != "So") else None
