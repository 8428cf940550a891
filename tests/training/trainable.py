"""Writes datasets that a tiny model learns within seconds: Amharic texts, and sounds that follow their letters."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from utils.dataset.metadata import FILES, HEADER, format_row
from utils.media import audio

RATE = 22_050
WORDS = "ሰላም ዛሬ ጠዋት ገበያ ሄድኩ ልጆቹ ትምህርት ቤት ናቸው ቡና እንጠጣ ውሃው ቀዝቃዛ ነው እናቴ መጣች መጽሐፍ አነበብኩ".split()


def write_dataset(folder: Path, *, train: int = 12, held_back: int = 4, seconds: float = 1.0, seed: int = 0) -> Path:
    """Write lists and sounds in the layout that plain coqui-tts reads; clips last one to two times ``seconds``."""
    (folder / "wavs").mkdir(parents=True)
    random = np.random.default_rng(seed)
    for split, count in (("train", train), ("eval", held_back)):
        lines = [HEADER]
        for number in range(count):
            length = seconds * random.uniform(1, 2)
            words = random.choice(WORDS, max(1, round(length * 1.5)))
            name = f"wavs/{split}{number}.wav"
            audio.save(folder / name, sound(" ".join(words), length, random), RATE)
            lines.append(format_row(name, " ".join(words), "speaker"))
        (folder / FILES[split]).write_text("\n".join([*lines, ""]), encoding="utf-8")  # type: ignore[index]
    (folder / "lang.txt").write_text("am\n")
    return folder


def sound(text: str, seconds: float, random: np.random.Generator) -> npt.NDArray[np.float32]:
    """Give each letter a tone of its own, with a little noise."""
    size = round(seconds * RATE)
    letters = np.array([ord(letter) % 37 for letter in text])
    pitch = 150 + 40 * letters[np.arange(size) * letters.size // size]
    wave = 0.3 * np.sin(2 * np.pi * np.cumsum(pitch) / RATE)
    return np.asarray(wave + 0.01 * random.standard_normal(size), np.float32)
