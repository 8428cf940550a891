"""Language packs: how the text of a language is prepared for the tokenizer.

Amharic has its own front end, the 17 languages of XTTS use the cleaners of coqui that they were trained with, and any
other language is used as written. coqui and the Amharic tables are loaded on first use.
"""

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from utils.core import languages
from utils.xtts.facts import FrontEndError

if TYPE_CHECKING:
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

TextMode = Literal["latin", "ipa", "fidel"]
TEXT_MODES: tuple[TextMode, ...] = get_args(TextMode)
Backend = Literal["rules", "epitran"]  # for graphemes, use the text mode fidel

TOKEN_LIMIT = 200  # coqui's max_text_length in training; the published model learned no longer sentences
SENTENCE_MARKS = ".,;:?!-"
# A sentence ends at a mark followed by a space, or at a mark that is written without a space.
SENTENCE_END = re.compile(r"(?<=[.!?…؟۔።፧])[\"'”’»)\]]*\s+|(?<=[。！？])|\n+")


class LanguagePack:
    """A language that is used as written, in lower case: any that has no pack of its own.

    In Latin mode, letters missing from the vocabulary are spelled in ASCII; the other modes add them as symbols.
    """

    name = "generic"  # stored with a model
    version = 1  # stored too; a higher one reads the same text otherwise
    token_limit = TOKEN_LIMIT  # of a sentence
    samples: tuple[str, ...] = ()

    def __init__(self, code: str, overrides: Mapping[str, str] | None) -> None:
        self.code = code
        self.overrides = dict(overrides or {})  # custom pronunciations by written form
        self.pronounced: dict[str, str] = {}  # those by word, for ``phonemize``
        self._respelled = {written: spoken for written, spoken in self.overrides.items() if self.is_respelled(written)}
        listed = "|".join(map(re.escape, sorted(self._respelled, key=len, reverse=True)))
        self._written = re.compile(rf"(?<![^\W\u1200-\u139f])(?:{listed})(?![^\W\u1200-\u139f])") if listed else None

    @property
    def character_limit(self) -> int:  # of a sentence
        return 160

    def normalize(self, text: str) -> str:
        """Spell out numbers, abbreviations and symbols where the pack can; otherwise lower-case the text."""
        return self._normalize(self.respell(text))

    def respell(self, text: str) -> str:
        """Replace written forms by their custom pronunciations, except those that ``phonemize`` knows."""
        if self._written is None:
            return text
        return self._written.sub(lambda match: self._respelled[match[0]], unicodedata.normalize("NFC", text))

    def is_respelled(self, written: str) -> bool:  # noqa: ARG002
        """Return whether a custom pronunciation replaces the written form before the text is normalized."""
        return True

    def _normalize(self, text: str) -> str:
        return " ".join(unicodedata.normalize("NFC", text).lower().split())

    def phonemize(self, text: str) -> str:
        """Convert normalized text to IPA, if the pack supports it."""
        return text

    def render(self, normalized: str, phones: str, mode: TextMode) -> str:  # noqa: ARG002  the same in every mode
        """Return the model input in this text mode."""
        return normalized

    def symbols(self, mode: TextMode) -> frozenset[str]:  # noqa: ARG002
        """Return every character that ``render`` may output; empty if the text itself has to show its letters."""
        return frozenset()

    def plain(self, symbol: str) -> str | None:
        """Spell a missing character with common ones, or return None where that would be a guess."""
        return _ascii(symbol)

    def resembling(self, token: str) -> str:
        """Spell a new token with Latin letters, to initialise its row."""
        return "".join(_ascii(symbol) or "" for symbol in token)

    def split(self, text: str) -> list[str]:
        """Split a text into sentences at the sentence ends of any script; coqui would load spaCy."""
        return [sentence for part in SENTENCE_END.split(text) if (sentence := part.strip())]


class AmharicPack(LanguagePack):
    """Amharic, with the front end of ``utils.amharic`` and custom pronunciations by word."""

    name = "amharic"
    version = 6  # 2: all readings; 3: voice by subject, object; 4: verbs at the end; 5: class C; 6: -wɨn, yelemm
    character_limit = 110  # 200 tokens at 1.7 per letter, measured on 40 sentences
    samples = (
        "ሰላም፣ እንደምን አደራችሁ?",
        "ዛሬ ጠዋት ወደ ገበያ ሄጄ ቡናና ዳቦ ገዛሁ።",
        "በ2016 ዓ.ም. 3,450 ተማሪዎች ፈተናውን አልፈዋል።",
        "ልጆቹ ትምህርት ቤት ውስጥ ጥሩ መጽሐፍ ያነባሉ።",
        "ስብሰባው ከሰዓት በኋላ 8፡30 ላይ ይጀምራል፤ እባክዎ አይዘግዩ!",
        "የጤና ባለሙያዎቹ ስለ ክትባቱ ለሕዝቡ ገለጻ አደረጉ።",
        "ሐኪሙ በቁስሉ ላይ መድኃኒት ቀባ፤ ጓደኛዬም አመሰገነው።",
        "ዝናቡ ሲዘንብ እናቴ ጥቁር ጃንጥላዋን ይዛ ወጣች።",
    )

    def __init__(self, backend: Backend = "rules", overrides: Mapping[str, str] | None = None) -> None:
        super().__init__(languages.AMHARIC.code, overrides)
        self.backend = backend
        self.pronounced = {written: said for written, said in self.overrides.items() if not self.is_respelled(written)}

    def is_respelled(self, written: str) -> bool:
        """Return whether it is not one Amharic word, which is pronounced, also under its prefixes and suffixes."""
        from utils.amharic.alphabet import WORD

        return not WORD.fullmatch(written)

    def _normalize(self, text: str) -> str:
        from utils.amharic import normalize

        return normalize(text)

    def phonemize(self, text: str) -> str:
        from utils.amharic import phonemize

        try:
            return phonemize(text, backend=self.backend, overrides=self.pronounced or None)
        except ValueError as error:
            raise FrontEndError(self.code, "pronunciation", str(error)) from error

    def render(self, normalized: str, phones: str, mode: TextMode) -> str:
        from utils.amharic import to_latin
        from utils.amharic.phonemes import plain_punctuation

        if mode == "fidel":
            return plain_punctuation(normalized)
        return to_latin(phones) if mode == "latin" else phones

    def symbols(self, mode: TextMode) -> frozenset[str]:
        return _amharic_symbols(mode)

    def plain(self, symbol: str) -> str | None:
        """Spell marks only; a letter that the front end left is reported as unknown."""
        return _ascii(symbol) if unicodedata.category(symbol)[0] in "PZC" else None

    def resembling(self, token: str) -> str:
        from utils.amharic import phonemize, to_latin

        is_ethiopic = any("\u1200" <= letter <= "\u139f" or "\u2d80" <= letter <= "\u2ddf" for letter in token)
        return to_latin(phonemize(token) if is_ethiopic else token)

    def split(self, text: str) -> list[str]:
        """Split at Ethiopic and Latin sentence ends, but not in abbreviations."""
        from utils.amharic import split_sentences

        return list(split_sentences(text))


class CoquiPack(LanguagePack):
    """One of the 17 languages of XTTS, with the cleaners it was trained with."""

    name = "coqui"

    def __init__(self, code: str, overrides: Mapping[str, str] | None) -> None:
        super().__init__(code, overrides)
        self.coqui_code = code.partition("-")[0]  # of coqui's cleaners, such as zh for zh-cn
        self.samples = languages.find(code).samples

    @property
    def character_limit(self) -> int:
        return int(coqui_cleaners().char_limits[self.coqui_code])

    def _normalize(self, text: str) -> str:
        try:
            return str(coqui_cleaners().preprocess_text(text, self.coqui_code))
        except ImportError as error:
            raise FrontEndError(self.code, "package", str(error)) from error
        except (ArithmeticError, LookupError, TypeError, ValueError, NotImplementedError) as error:
            raise FrontEndError(self.code, "cleaner", f"{text[:60]!r}: {str(error)[:240]}") from error

    def resembling(self, token: str) -> str:
        return token  # no rows are added for these languages


def pack_for(language: str, *, backend: Backend = "rules", overrides: Mapping[str, str] | None = None) -> LanguagePack:
    match = languages.find(language)
    if match == languages.AMHARIC:
        return AmharicPack(backend, overrides)
    return CoquiPack(match.code, overrides) if match.in_xtts else LanguagePack(match.code, overrides)


def fingerprint(pack: LanguagePack) -> str:
    """Hash the output of a pack for its samples; it changes when the front end changes."""
    digest = hashlib.sha256(pack.name.encode())
    for sample in pack.samples:
        normalized = pack.normalize(sample)
        phones = pack.phonemize(normalized)
        digest.update("\n".join(pack.render(normalized, phones, mode) for mode in TEXT_MODES).encode())
    return digest.hexdigest()[:16]


@cache
def coqui_cleaners() -> "VoiceBpeTokenizer":
    """Load coqui's cleaners; this imports torch."""
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

    return VoiceBpeTokenizer()


@cache
def _amharic_symbols(mode: TextMode) -> frozenset[str]:
    from utils.amharic import alphabet, normalize

    if mode == "latin":
        letters = "".join(alphabet.LATIN_SYMBOLS)
    elif mode == "ipa":
        letters = "".join(alphabet.PHONES) + "ː"
    else:
        letters = "".join(normalize(chr(code)) for code in range(0x1200, 0x135B) if chr(code).isalpha())
    return frozenset(letters + SENTENCE_MARKS) - {" "}


def _ascii(symbol: str) -> str | None:
    """Spell a character in lower-case ASCII; combining marks are dropped, pictures have no spelling."""
    from anyascii import anyascii

    spelled = anyascii(symbol).lower()
    invisible = unicodedata.category(symbol) in {"Mn", "Mc", "Cf"}
    return spelled if invisible or (spelled and unicodedata.category(symbol) != "So") else None
