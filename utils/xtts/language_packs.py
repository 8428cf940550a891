"""Language packs: what the text of a language goes through before the vocabulary sees it.

Amharic has a front end of its own, the 17 languages of XTTS keep coqui's cleaners, which they were trained with, and
every other language is read as it is written. Nothing here loads coqui or the Amharic tables before a text asks for it.
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
Backend = Literal["rules", "epitran"]  # who speaks; a model of the letters themselves has the mode fidel

TOKEN_LIMIT = (
    200  # what coqui's training accepts (max_text_length); 402 positions exist, but the upper half is untrained
)


class LanguagePack(Protocol):
    """What a language has to know about itself."""

    @property
    def name(self) -> str:
        """Return the name of the pack, which is stored with a model."""

    @property
    def code(self) -> str:
        """Return the canonical code of the language."""

    @property
    def character_limit(self) -> int:
        """Return how many written characters one sentence may have."""

    @property
    def token_limit(self) -> int:
        """Return how many tokens one sentence may have."""

    @property
    def samples(self) -> tuple[str, ...]:
        """Return a few sentences to try a model with."""

    def normalise(self, text: str) -> str:
        """Write numbers, abbreviations and signs out in words."""

    def phonemise(self, text: str) -> str:
        """Turn normalised text into the IPA; packs that know no sounds return it as it is."""

    def render(self, normalised: str, phones: str, mode: TextMode) -> str:
        """Return what the model reads in this text mode."""

    def symbols(self, mode: TextMode) -> frozenset[str]:
        """Return every character that ``render`` may need; empty when the text itself decides."""

    def plain(self, symbol: str) -> str | None:
        """Spell a character that the vocabulary lacks with commoner ones, or say None where that would be a guess."""

    def resembling(self, token: str) -> str:
        """Spell a new token with letters a Latin-reading model knows, to start its row from."""

    def split(self, text: str) -> list[str]:
        """Cut a text into sentences."""


SENTENCE_MARKS = ".,;:?!-"


@dataclass(frozen=True)
class AmharicPack:
    """Amharic through ``utils.amharic``.

    Attributes:
        backend: Which grapheme-to-phoneme system speaks.
        overrides: Pronunciations of a project's own words, by their written form.
    """

    backend: Backend = "rules"
    overrides: Mapping[str, str] = field(default_factory=dict)
    name: str = "amharic"
    code: str = languages.AMHARIC.code
    character_limit: int = 110  # 200 tokens at 1.7 a letter: the mean of tests/data/amharic_sentences.txt, no merges
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
        """Write numbers, abbreviations and signs out in Amharic words."""
        from utils.amharic import normalize

        return normalize(text)

    def phonemise(self, text: str) -> str:
        """Turn normalised Amharic into the IPA."""
        from utils.amharic import phonemize

        try:
            return phonemize(text, backend=self.backend, overrides=self.overrides or None)
        except ValueError as error:
            raise TextError(f"A pronunciation cannot be used: {error}.", hint="Correct the project's list.") from error

    def render(self, normalised: str, phones: str, mode: TextMode) -> str:
        """Return Latin letters, phonemes or Ethiopic letters."""
        from utils.amharic import to_latin
        from utils.amharic.phonemes import plain_punctuation

        if mode == "fidel":
            return plain_punctuation(normalised)
        return to_latin(phones) if mode == "latin" else phones

    def symbols(self, mode: TextMode) -> frozenset[str]:
        """Return the letters of this mode, and the marks of a sentence."""
        return _amharic_symbols(mode)

    def plain(self, symbol: str) -> str | None:
        """Spell marks only: a letter that the front end left over has to be reported, not guessed."""
        return _ascii(symbol) if unicodedata.category(symbol)[0] in "PZC" else None

    def resembling(self, token: str) -> str:
        """Spell a phoneme or a piece of a word in Latin letters."""
        from utils.amharic import phonemize, to_latin

        return to_latin(phonemize(token) if _is_ethiopic(token) else token)

    def split(self, text: str) -> list[str]:
        """Cut at Ethiopic and Latin sentence ends, never inside an abbreviation."""
        from utils.amharic import split_sentences

        return list(split_sentences(text))


class _AsWritten:
    """What packs share whose languages are read as they are written."""

    def phonemise(self, text: str) -> str:
        """Return the text: nothing is known about its sounds, or nothing need be."""
        return text

    def render(self, normalised: str, phones: str, mode: TextMode) -> str:  # noqa: ARG002  every mode reads the letters
        """Return the letters as they are."""
        return normalised

    def symbols(self, mode: TextMode) -> frozenset[str]:  # noqa: ARG002
        """Return nothing: the vocabulary was made for the language, or the text itself shows its letters."""
        return frozenset()

    def plain(self, symbol: str) -> str | None:
        """Spell a letter or mark in ASCII."""
        return _ascii(symbol)

    def split(self, text: str) -> list[str]:
        """Cut at the sentence ends of any script; for its own languages coqui would load spaCy."""
        return split_anywhere(text)


@dataclass(frozen=True)
class CoquiPack(_AsWritten):
    """One of the 17 languages of XTTS, through the cleaners that it was trained with."""

    code: str
    name: str = "coqui"
    token_limit: int = TOKEN_LIMIT

    @property
    def coqui_code(self) -> str:
        """Return the code coqui's cleaners use: zh for zh-cn."""
        return self.code.partition("-")[0]

    @cached_property
    def character_limit(self) -> int:
        """Return coqui's own limit for this language."""
        return int(_coqui().char_limits[self.coqui_code])

    @property
    def samples(self) -> tuple[str, ...]:
        """Return sentences of this language."""
        return XTTS_SAMPLES[self.code]

    def normalise(self, text: str) -> str:
        """Run coqui's cleaner of this language."""
        try:
            return str(_coqui().preprocess_text(text, self.coqui_code))
        except ImportError as error:
            raise TextError(
                f"{languages.find(self.code).name} text needs a package: {error}.", hint="Install it with pip."
            ) from error
        except (ArithmeticError, LookupError, TypeError, ValueError, NotImplementedError) as error:
            raise TextError(
                f"coqui's cleaner for {self.code} fails on {text[:60]!r}: {error}",
                hint="Write its numbers out in words.",
            ) from error

    def resembling(self, token: str) -> str:
        """Return the token: no rows are added for these languages."""
        return token


@dataclass(frozen=True)
class GenericPack(_AsWritten):
    """Any other language and script, read as it is written in lower case.

    In the latin mode letters that the vocabulary lacks are spelled in ASCII; the other modes add them as symbols.
    """

    code: str
    name: str = "generic"
    character_limit: int = 160
    token_limit: int = TOKEN_LIMIT
    samples: tuple[str, ...] = ()

    def normalise(self, text: str) -> str:
        """Compose the letters, lower the case and tidy the spaces."""
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
    """Return the pack of a language, by any of its names."""
    found = languages.find(language)
    if found == languages.AMHARIC:
        return AmharicPack(backend, overrides or {})
    return CoquiPack(found.code) if found.in_xtts else GenericPack(found.code)


def fingerprint(pack: LanguagePack) -> str:
    """Hash what a pack makes of its samples: it changes when, and only when, the front end reads them differently."""
    digest = hashlib.sha256(pack.name.encode())
    for sample in pack.samples:
        normalised = pack.normalise(sample)
        phones = pack.phonemise(normalised)
        digest.update("\n".join(pack.render(normalised, phones, mode) for mode in TEXT_MODES).encode())
    return digest.hexdigest()[:16]


# A sentence ends at a mark followed by a space, or at one of the marks that are written without a space behind them.
SENTENCE_END = re.compile(r"(?<=[.!?…؟۔।።፧])[\"'”’»)\]]*\s+|(?<=[。！？])|\n+")


def split_anywhere(text: str) -> list[str]:
    """Cut a text of any script into sentences."""
    return [sentence for piece in SENTENCE_END.split(text) if (sentence := piece.strip())]


@cache
def _coqui() -> "VoiceBpeTokenizer":
    """Load coqui's cleaners once; this imports torch."""
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

    return VoiceBpeTokenizer()


@cache
def _amharic_symbols(mode: TextMode) -> frozenset[str]:
    """Collect the characters of a mode: its letters, and the marks of a sentence."""
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
    """Spell one character in lower-case ASCII; marks on a letter fall away, pictures have no spelling."""
    from anyascii import anyascii

    spelled = anyascii(symbol).lower()
    invisible = unicodedata.category(symbol) in {"Mn", "Mc", "Cf"}
    return spelled if invisible or (spelled and unicodedata.category(symbol) != "So") else None
