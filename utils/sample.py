"""A small project to try everything with: a recording that sounds like speech, and its subtitles.

The sound is computed from the sentences: vowels have their formants, consonants are hisses and hums.
It is no speech, but its lengths, pauses and loudness are those of speech, and its words are where the subtitles say.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from utils import audio
from utils.amharic import fidel
from utils.audio import Samples
from utils.paths import OUTPUT, Project, project
from utils.storage import make_folder, write_atomically

NAME = "sample"
SOUND, SUBTITLES = "sample.wav", "sample.am.srt"
RECORDINGS = Path("recordings", "uploads")  # below the dataset folder, where uploads lie
RATE = 24_000
SENTENCES = (
    "ሰላም፣ እንዴት ናችሁ?",
    "ዛሬ አዲስ አበባ ውስጥ ዝናብ ጣለ።",
    "እናቴ ጠዋት ቡና አፈላች።",
    "ልጆቹ ወደ ትምህርት ቤት ሄዱ።",
    "መጽሐፉን ጠረጴዛው ላይ አስቀምጥ።",
    "ገበያ ሄጄ ሽንኩርትና ቲማቲም ገዛሁ።",
    "ፀሐይ ከተራራው ጀርባ ወጣች።",
    "ነገ ከጓደኞቼ ጋር እንገናኛለን።",
    "እባክህ በሩን ቀስ ብለህ ዝጋ።",
    "ወንድሜ መኪና መንዳት ይማራል።",
    "ውሻው ከቤቱ ፊት ለፊት ተኝቷል።",
    "ይህ የሙከራ ድምፅ ነው፤ እውነተኛ ንግግር አይደለም።",
)
PAUSE, GAP = 0.7, 0.04  # seconds of silence after a sentence and after a word
VOWEL, CONSONANT = 0.13, 0.07  # seconds
FORMANTS = {
    "E": (550, 1500), "u": (320, 800), "i": (280, 2250), "a": (750, 1300), "e": (450, 1950), "I": (380, 1550),
    "o": (480, 900),
}  # fmt: skip  # Hz
HUMMED = frozenset("mnNlrwybdgJvzZ")
HARMONICS = np.arange(1, 26)


def create(output: Path = OUTPUT) -> Project:
    """Make the project, or complete the one that is there; return it."""
    place = project(NAME, output)
    folder = place.dataset / RECORDINGS
    make_folder(folder)
    if not ((folder / SOUND).is_file() and (folder / SUBTITLES).is_file()):
        sound, cues = record(SENTENCES)
        audio.save(folder / SOUND, sound, RATE)
        write_atomically(folder / SUBTITLES, subtitles(cues))
    return place


def record(sentences: tuple[str, ...]) -> tuple[Samples, list[tuple[float, float, str]]]:
    """Make the sound of some sentences; return it with beginning, end and words of each."""
    random = np.random.default_rng(0)
    parts: list[Samples] = [_silence(PAUSE)]
    cues, at = [], PAUSE
    for sentence in sentences:
        spoken = np.concatenate(list(_syllables(sentence, random)))
        cues.append((at, at + len(spoken) / RATE, sentence))
        parts += [spoken, _silence(PAUSE)]
        at += len(spoken) / RATE + PAUSE
    return np.concatenate(parts), cues


def subtitles(cues: list[tuple[float, float, str]]) -> str:
    """Write what is said when, as an SRT file."""
    blocks = (f"{n}\n{_time(begin)} --> {_time(end)}\n{text}\n" for n, (begin, end, text) in enumerate(cues, 1))
    return "\n".join(blocks)


def _time(seconds: float) -> str:
    whole, thousandths = divmod(round(seconds * 1000), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02},{thousandths:03}"


def _syllables(sentence: str, random: np.random.Generator) -> Iterator[Samples]:
    """Make the sounds of a sentence one after the other; its pitch falls, as in speech."""
    codes = [code for code in fidel.read(sentence) if code == " " or code.isalpha()]
    for number, code in enumerate(codes):
        pitch = 150 - 45 * number / len(codes) + random.normal(0, 4)
        if code == " ":
            yield _silence(GAP)
        elif code in FORMANTS:
            yield 0.5 * _voiced(pitch, FORMANTS[code], VOWEL * random.uniform(0.85, 1.2))
        elif code in HUMMED:
            yield 0.3 * _voiced(pitch, (250, 1100), CONSONANT)
        else:
            yield 0.06 * _shaped(random.standard_normal(round(CONSONANT * RATE)))


def _voiced(pitch: float, formants: tuple[int, int], seconds: float) -> Samples:
    """Add up the harmonics of a voice, the loudest ones at the formants."""
    times = np.arange(round(seconds * RATE)) / RATE
    frequencies = HARMONICS * pitch
    loudness = sum(1 / (1 + ((frequencies - formant) / 90) ** 2) for formant in formants) + 0.5 / HARMONICS
    waves = np.sin(2 * np.pi * frequencies[:, None] * times)
    return _shaped(loudness @ waves / loudness.sum())


def _shaped(sound: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Samples:
    """Let a sound swell and fade."""
    shaped: Samples = (sound * np.sin(np.linspace(0, np.pi, len(sound))) ** 0.5).astype(np.float32)
    return shaped


def _silence(seconds: float) -> Samples:
    return np.zeros(round(seconds * RATE), np.float32)
