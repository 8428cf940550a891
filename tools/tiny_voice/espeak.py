"""Speech of espeak-ng from phones that we choose.

espeak-ng's own Amharic reading knows no gemination and has its own epenthetic vowels. Given our phones, the sound says
exactly what the token ids say. The library keeps one global state, so every process has one ``Espeak``.
"""

import ctypes
import ctypes.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

RATE = 22_050  # samples a second
LIBRARY = "libespeak-ng.so.1"
NEEDED = ("libpcaudio.so.0", "libsonic.so.0")  # by the library
DATA = "espeak-ng-data"
SYNCHRONOUS = 2  # output mode
UTF8, PHONES = 1, 0x100  # flags of espeak_Synth
PARAMETERS = {"pace": 1, "pitch": 3, "range": 4}

# Our phones and espeak's Amharic phonemes. It has no ejective s: its own reading says ts, as many speakers do.
PHONEMES = {
    "t͡ʃʼ": "tS`", "t͡ʃ": "tS", "d͡ʒ": "dZ", "tʼ": "t`", "kʼ": "k`", "pʼ": "p`", "sʼ": "ts", "ə": "@", "ɨ": "y",
    "ʃ": "S", "ʒ": "Z", "ɲ": "n^", "ʔ": "?", "ɡ": "g",
} | {letter: letter for letter in "aeioubdfhjklmnprstvwz"}  # fmt: skip
VOWELS = frozenset("əɨaeiou")
PHONE_PATTERN = re.compile("|".join(sorted(PHONEMES, key=len, reverse=True)) + "|(?P<long>ː)")
CLAUSE = re.compile(r"([.,;:?!]+)\s*")


class EspeakError(Exception):
    """espeak-ng is missing, or did not speak."""


Samples = npt.NDArray[np.float32]


def split_phones(word: str) -> list[str]:
    """Split a word into phones; a geminate consonant is there twice."""
    phones: list[str] = []
    position = 0
    while match := PHONE_PATTERN.match(word, position):
        phones.append(phones[-1] if match["long"] else match[0])
        position = match.end()
    if position < len(word):
        raise EspeakError(f"{word} contains {word[position:]!r}, which espeak-ng has no phoneme for.")
    return phones


def write_phonemes(text: str) -> str:
    """Write phones with punctuation in espeak-ng's notation; the first vowel of a word is stressed."""
    parts = CLAUSE.split(text)
    clauses = zip(parts[::2], [*parts[1::2], ""], strict=True)
    return " ".join(f"[[{' '.join(map(_write_word, clause.split()))}]]{mark}" for clause, mark in clauses if clause)


def _write_word(word: str) -> str:
    phones = split_phones(word)
    first = next((number for number, phone in enumerate(phones) if phone in VOWELS), None)
    return "".join(("'" if number == first else "") + PHONEMES[phone] for number, phone in enumerate(phones))


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


class Espeak:
    """The loaded library.

    Args:
        folder: Folder of the library, of those it needs, and of its data; None for those of the system.
    """

    def __init__(self, folder: Path | None = None) -> None:
        try:
            for name in NEEDED if folder else ():
                ctypes.CDLL(str(folder / name), ctypes.RTLD_GLOBAL)  # type: ignore[operator]
            self._library = ctypes.CDLL(str(folder / LIBRARY) if folder else LIBRARY)
        except OSError as error:
            raise EspeakError("Install espeak-ng (Debian, Ubuntu: sudo apt install espeak-ng).") from error
        data = str(folder).encode() if folder else None
        if self._library.espeak_Initialize(SYNCHRONOUS, 0, data, 0) != RATE:
            raise EspeakError("espeak-ng does not start. Install the package espeak-ng-data again.")
        self._samples: list[Samples] = []
        self._callback = _CALLBACK(self._receive)  # the library keeps no reference
        self._library.espeak_SetSynthCallback(self._callback)

    def speak(self, phones: str, variant: str = "", **parameters: int) -> Samples:
        """Speak phones with a variant of the Amharic voice.

        Args:
            phones: As ``phonemize`` writes them, with punctuation.
            variant: Timbre, as espeak-ng names it.
            parameters: ``pace`` in words a minute, ``pitch`` and ``range`` from 0 to 99.
        """
        voice = f"am+{variant}" if variant else "am"
        if self._library.espeak_SetVoiceByName(voice.encode()):
            raise EspeakError(f"espeak-ng has no voice {voice}. Install the package espeak-ng-data.")
        for name, value in parameters.items():
            self._library.espeak_SetParameter(PARAMETERS[name], value, 0)
        self._samples = []
        text = write_phonemes(phones).encode() + b"\0"
        if self._library.espeak_Synth(text, len(text), 0, 1, 0, UTF8 | PHONES, None, None):
            raise EspeakError(f"espeak-ng could not speak {phones[:60]!r}.")
        return np.concatenate(self._samples) if self._samples else np.zeros(0, np.float32)

    def _receive(self, wave: Any, count: int, _: object) -> int:  # noqa: ANN401  # a pointer
        if wave and count:
            self._samples.append(np.ctypeslib.as_array(wave, (count,)).astype(np.float32) / np.float32(32768))
        return 0
