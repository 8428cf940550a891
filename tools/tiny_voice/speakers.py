"""The speakers of the corpus: variants of espeak-ng's Amharic voice with their own pitch, pace and intonation."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tools.tiny_voice.espeak import Espeak
from utils.core.languages import AMHARIC
from utils.media.audio import Samples, resample
from utils.media.rates import RATE
from utils.xtts.language_packs import pack_for


@dataclass(frozen=True)
class Speaker:
    """One way in which espeak-ng speaks."""

    name: str
    variant: str  # timbre, as espeak-ng names it; empty: that of the language itself
    pitch: int  # 0 to 99
    pace: int  # words a minute
    range: int = 50  # of the intonation, 0 to 99
    warp: float = 1.0  # factor of all frequencies: a smaller or larger person

    def varied(self, random: np.random.Generator) -> "Speaker":
        """Return the speaker as in another recording: slightly different pitch, pace and intonation."""
        pitch = int(np.clip(self.pitch + random.integers(-4, 5), 0, 99))
        pace = round(self.pace * random.uniform(0.9, 1.12))
        return replace(self, pitch=pitch, pace=pace, range=int(np.clip(self.range + random.integers(-15, 16), 0, 99)))


SPEAKERS = (
    Speaker("abebe", "", 45, 150, 45),
    Speaker("bekele", "m1", 30, 145, 55),
    Speaker("chala", "m3", 62, 165, 60),
    Speaker("dawit", "m4", 25, 155, 45),
    Speaker("eyob", "Alex", 68, 150, 70),
    Speaker("fikre", "m7", 50, 160, 40),
    Speaker("girma", "Mike", 38, 140, 50),
    Speaker("haile", "pablo", 56, 170, 55),
    Speaker("kassa", "paul", 48, 148, 40),
    Speaker("kebede", "max", 14, 158, 60),
    Speaker("genet", "f1", 60, 150, 50),
    Speaker("hiwot", "f2", 70, 160, 45),
    Speaker("ikram", "f3", 55, 145, 45),
    Speaker("jemila", "f4", 42, 155, 65),
    Speaker("lulit", "Alicia", 35, 165, 60),
    Speaker("meron", "Annie", 40, 152, 45),
    Speaker("nardos", "belinda", 46, 148, 60),
    Speaker("rahel", "linda", 56, 158, 65),
    Speaker("sara", "shelby", 58, 170, 45),
    Speaker("tigist", "aunty", 52, 142, 75),
)
# Chosen before any training and never learnt from: between the men and the women, a man and a woman.
HELD_OUT = (
    Speaker("kidist", "f5", 40, 152, 55),
    Speaker("lema", "Gene2", 55, 150, 50),
    Speaker("marta", "Andrea", 45, 125, 60),
)
WARPS = (0.8, 0.9, 1.1, 1.2)
OTHERS_SEED = 6


def _other_speakers() -> tuple[Speaker, ...]:
    """Return voices that are only learned from: with many of them, a model learns to imitate its reference."""
    random = np.random.default_rng(OTHERS_SEED)
    return tuple(
        Speaker(
            f"{speaker.name}-{number}",
            speaker.variant,
            int(np.clip(speaker.pitch + random.integers(-20, 21), 0, 99)),
            int(random.integers(135, 181)),
            int(random.integers(30, 81)),
            warp,
        )
        for speaker in SPEAKERS
        for number, warp in enumerate(WARPS, 1)
    )


OTHERS = _other_speakers()
JUDGED = ("abebe", "fikre", "genet", "ikram")  # fixed before any of them was heard: two men and two women
BY_NAME = {speaker.name: speaker for speaker in (*SPEAKERS, *HELD_OUT, *OTHERS)}


@cache
def _espeak() -> Espeak:
    return Espeak()


def say(text: str, speaker: Speaker) -> Samples:
    """Speak a text as our front end reads it."""
    pack = pack_for(AMHARIC.code)
    phones, pace = pack.phonemize(pack.normalize(text)), round(speaker.pace / speaker.warp)
    speech = _espeak().speak(phones, speaker.variant, pitch=speaker.pitch, pace=pace, range=speaker.range)
    return resample(speech, round(RATE * speaker.warp), RATE) if speaker.warp != 1 else speech
