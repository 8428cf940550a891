"""Speech to learn from: espeak-ng's Amharic voice in variants of pitch, pace and timbre.

espeak-ng is a program of its own, called as one; nothing of it becomes part of this project.
"""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from utils.core.errors import AmharicTtsError
from utils.media.audio import Samples
from utils.media.rates import RATE

PROGRAM = "espeak-ng"
HEADER = 44  # bytes of WAV in front of the samples
PROBE = "ሰላም"
SECONDS = 60.0  # a sentence takes a twentieth of a second


class EspeakError(AmharicTtsError):
    """espeak-ng is missing, or did not speak."""


@dataclass(frozen=True)
class Speaker:
    """One way of speaking of espeak-ng.

    Attributes:
        name: What to call it.
        variant: Timbre, as espeak-ng names it; empty: that of the language itself.
        pitch: 0 to 99.
        pace: Words a minute.
    """

    name: str
    variant: str
    pitch: int
    pace: int

    def varied(self, random: np.random.Generator) -> "Speaker":
        """Return the same voice a little higher or lower and faster or slower, as nobody speaks twice alike."""
        pitch, pace = self.pitch + int(random.integers(-4, 5)), round(self.pace * random.uniform(0.92, 1.08))
        return replace(self, pitch=int(np.clip(pitch, 0, 99)), pace=pace)


SPEAKERS = (
    Speaker("abebe", "", 45, 150),
    Speaker("bekele", "m1", 35, 145),
    Speaker("chala", "m3", 50, 165),
    Speaker("dawit", "m4", 30, 155),
    Speaker("eyob", "m6", 40, 150),
    Speaker("fikre", "m7", 55, 160),
    Speaker("genet", "f1", 60, 150),
    Speaker("hiwot", "f2", 70, 160),
    Speaker("ikram", "f3", 62, 145),
    Speaker("jemila", "f4", 50, 155),
)
# never learnt from, and higher than the men and lower than the women that were: the sample project is recorded in it
HELD_OUT = Speaker("kidist", "f5", 40, 152)


def program() -> str:
    """Return where espeak-ng is, or say how to get it."""
    found = shutil.which(PROGRAM)
    if found is None:
        raise EspeakError(
            f"There is no {PROGRAM}, which speaks what the small voice learns from.",
            hint="Install it (Debian, Ubuntu: sudo apt install espeak-ng; macOS: brew install espeak-ng).",
        )
    return found


def refuse_same_voices(speakers: Sequence[Speaker] = SPEAKERS) -> None:
    """Refuse voices that sound the same: espeak-ng takes its usual one, and says nothing, where it lacks a variant."""
    sounds: dict[bytes, Speaker] = {}
    for speaker in speakers:
        sound = speak(PROBE, replace(speaker, pitch=50, pace=150)).tobytes()
        if sound in sounds:
            raise EspeakError(
                f"{PROGRAM} gives {speaker.name} and {sounds[sound].name} the same voice.",
                hint=f"Its data lack the variant {speaker.variant}: install the package {PROGRAM}-data again.",
            )
        sounds[sound] = speaker


def speak(text: str, speaker: Speaker) -> Samples:
    """Speak a text that is written out in words, at 22 050 Hz and with silence around it."""
    voice = f"am+{speaker.variant}" if speaker.variant else "am"
    way = ["-v", voice, "-p", str(speaker.pitch), "-s", str(speaker.pace)]
    asked = [program(), *way, "-b", "1", "--stdin", "--stdout"]  # -b 1: UTF-8
    try:
        done = subprocess.run(asked, input=text.encode(), capture_output=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise EspeakError(f"{PROGRAM} could not say {text[:60]!r}: {error}.", hint="Try it in a terminal.") from error
    rate = int.from_bytes(done.stdout[24:28], "little")
    if rate != RATE:
        said = done.stderr.decode(errors="replace").strip()
        raise EspeakError(f"{PROGRAM} has no voice {voice}: {said}", hint="Install the package espeak-ng-data.")
    sound: Samples = np.frombuffer(done.stdout[HEADER:], "<i2").astype(np.float32) / np.float32(32768)
    return sound
