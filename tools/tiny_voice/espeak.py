"""Speech of espeak-ng from phones that we choose, with the time of each.

espeak-ng's own Amharic reading knows no gemination and has its own epenthetic vowels. Given our phones, the sound says
exactly what the token ids say. The library keeps one global state, so every process has one ``Espeak``.
"""

import ctypes
import ctypes.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

RATE = 22_050  # samples a second
LIBRARY = "libespeak-ng.so.1"
NEEDED = ("libpcaudio.so.0", "libsonic.so.0")  # by the library
DATA = "espeak-ng-data"
SYNCHRONOUS, PHONE_EVENTS = 2, 1 | 2  # output mode; events with IPA names
UTF8, PHONES = 1, 0x100  # flags of espeak_Synth
END, PHONE = 0, 7  # kinds of events
PARAMETERS = {"pace": 1, "pitch": 3, "range": 4}

# Our phones and espeak's Amharic phonemes. It has no ejective s: its own reading says ts, as many speakers do.
PHONEMES = {
    "t͡ʃʼ": "tS`", "t͡ʃ": "tS", "d͡ʒ": "dZ", "tʼ": "t`", "kʼ": "k`", "pʼ": "p`", "sʼ": "ts", "ə": "@", "ɨ": "y",
    "ʃ": "S", "ʒ": "Z", "ɲ": "n^", "ʔ": "?", "ɡ": "g",
} | {letter: letter for letter in "aeioubdfhjklmnprstvwz"}  # fmt: skip
VOWELS = frozenset("əɨaeiou")
PHONE_PATTERN = re.compile("|".join(sorted(PHONEMES, key=len, reverse=True)) + "|(?P<long>ː)")
CLAUSE = re.compile(r"([.,;:?!]+)\s*")
EVENT_NAMES = {"β": "b", "t`": "tʼ", "k`": "kʼ", "p`": "pʼ", "tʃ`": "t͡ʃʼ", "tʃ": "t͡ʃ", "dʒ": "d͡ʒ"}


class EspeakError(Exception):
    """espeak-ng is missing, or did not speak."""


Samples = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Phone:
    """A phone as espeak-ng spoke it; a geminate is two."""

    name: str
    start: float  # seconds
    end: float


@dataclass(frozen=True)
class Speech:
    """Sound, and when each phone is spoken."""

    samples: Samples
    phones: list[Phone]


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


class _EventId(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _EventId),
    )


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


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
        if self._library.espeak_Initialize(SYNCHRONOUS, 0, data, PHONE_EVENTS) != RATE:
            raise EspeakError("espeak-ng does not start. Install the package espeak-ng-data again.")
        self._samples: list[Samples] = []
        self._events: list[tuple[str, int]] = []
        self._callback = _CALLBACK(self._receive)  # the library keeps no reference
        self._library.espeak_SetSynthCallback(self._callback)

    def speak(self, phones: str, variant: str = "", **parameters: int) -> Speech:
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
        self._samples, self._events = [], []
        text = write_phonemes(phones).encode() + b"\0"
        if self._library.espeak_Synth(text, len(text), 0, 1, 0, UTF8 | PHONES, None, None):
            raise EspeakError(f"espeak-ng could not speak {phones[:60]!r}.")
        samples = np.concatenate(self._samples) if self._samples else np.zeros(0, np.float32)
        return Speech(samples, _phones(self._events, samples.size))

    def _receive(self, wave: Any, count: int, events: Any) -> int:  # noqa: ANN401  # pointers
        if wave and count:
            self._samples.append(np.ctypeslib.as_array(wave, (count,)).astype(np.float32) / np.float32(32768))
        number = 0
        while events[number].type != END:
            if events[number].type == PHONE:
                self._events.append((events[number].id.string.decode(), events[number].sample))
            number += 1
        return 0


def _phones(events: Sequence[tuple[str, int]], size: int) -> list[Phone]:
    ends = [start for _, start in events[1:]] + [size]
    return [
        Phone(EVENT_NAMES.get(name, name), start / RATE, end / RATE)
        for (name, start), end in zip(events, ends, strict=True)
        if name
    ]
