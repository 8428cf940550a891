"""The material of the training benchmark: spoken-like clips, their texts and a model with random weights, from a seed.

One folder serves both sides. Plain coqui reads ``dataset/metadata_train.csv`` and the WAV files, ours the manifest and
the same WAV files. ``model`` is laid out as the hub has it: a GPT of the wanted size, DVAE and vocabulary of the
published one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.training_plan import Plan
from utils.dataset.clip import Clip, Source
from utils.dataset.store import Store, load_dataset
from utils.media.audio import Samples
from utils.recognition.spans import Span

RATE = 22_050
SHORTEST, LONGEST = 2.0, 9.0  # seconds
LETTERS_PER_SECOND = 14  # Latin letters of read speech, spaces included
LANGUAGE = "en"  # one that plain coqui knows, so that both sides read the same ids
TEXT_ROWS = 6681  # of the published vocabulary
VOWELS, CONSONANTS = "aeiou", "bdfghklmnprstwyz"
FORMANTS = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410))
WIDTHS = (80, 100, 140)  # Hz, of the formants
TRAIN_LIST, MODEL, DATASET = "metadata_train.csv", "model", "dataset"


@dataclass(frozen=True)
class Material:
    """A folder with everything that both sides read."""

    folder: Path

    @property
    def dataset(self) -> Path:
        """Return the folder of the clips."""
        return self.folder / DATASET

    @property
    def model(self) -> Path:
        """Return the folder of the model."""
        return self.folder / MODEL

    def weights(self, name: str) -> Path:
        """Return the file of weights that a side has saved."""
        return self.folder / f"{name}.pth"

    def clips(self) -> list[Clip]:
        """Read the clips."""
        return load_dataset(self.dataset).kept


def make(folder: Path, plan: Plan) -> Material:
    """Write the clips and the model of a plan into an empty folder."""
    from tools import random_model

    material = Material(folder)
    write_clips(material.dataset, plan.clips, plan.seed)
    sizes = random_model.RandomModelSize(plan.layers, plan.dim, plan.heads, tokens=TEXT_ROWS, dvae=512, codebook=512)
    random_model.build(material.model, plan.seed, sizes)
    return material


def write_clips(dataset: Path, count: int, seed: int) -> None:
    """Write WAV files, coqui's list of them and our manifest."""
    (dataset / "wavs").mkdir(parents=True)
    random = np.random.default_rng(seed)
    lengths = random.permutation(np.linspace(SHORTEST, LONGEST, count))
    rows, made = ["audio_file|text|speaker_name"], []
    for number, seconds in enumerate(lengths.tolist()):
        name, text = f"wavs/clip{number:04d}.wav", sentence(seconds, random)
        soundfile.write(dataset / name, babble(seconds, random), RATE, subtype="PCM_16")
        rows.append(f"{name}|{text}|speaker")
        place = Span(10.0 * number, 10.0 * number + seconds)
        made.append(Clip(f"r-{number}", "r", "r.wav", place, "speaker", text, name, f"c{number:031d}", split="train"))
    (dataset / TRAIN_LIST).write_text("\n".join(rows) + "\n", encoding="utf-8")
    Store(dataset).add(Source("r", "r.wav"), made)


def sentence(seconds: float, random: np.random.Generator) -> str:
    """Make words of open syllables, as many as are read aloud in that time."""
    words = ""
    while len(words) < seconds * LETTERS_PER_SECOND - 1:
        syllables = (random.choice([*CONSONANTS]) + random.choice([*VOWELS]) for _ in range(random.integers(1, 5)))
        words += " " * bool(words) + "".join(syllables)
    return words + "."


def babble(seconds: float, random: np.random.Generator) -> Samples:
    """Say vowels and fricatives in the rhythm of syllables: pulses through formants, as a voice does it."""
    size, pitch = round(seconds * RATE), random.uniform(95, 200)
    parts: list[Samples] = []
    while sum(part.size for part in parts) < size:
        parts.extend(_syllable(pitch, random))
    samples = np.concatenate(parts)[:size]
    return np.asarray(samples / np.abs(samples).max() * 0.4, np.float32)


def _syllable(pitch: float, random: np.random.Generator) -> Iterator[Samples]:
    """Yield a fricative and the vowel behind it, 0.19 s on average."""
    length = round(random.uniform(0.15, 0.23) * RATE)
    onset = round(random.uniform(0.15, 0.3) * length)
    yield np.asarray(np.diff(random.standard_normal(onset), prepend=0) * 0.03, np.float32)
    tone = _vowel(length - onset, pitch * random.uniform(0.9, 1.15), random)
    envelope = 0.25 + 0.75 * np.sin(np.linspace(0.3, np.pi - 0.3, tone.size))
    yield np.asarray(tone * envelope, np.float32)


def _vowel(size: int, pitch: float, random: np.random.Generator) -> Samples:
    """Send the pulses of a voice through three resonances."""
    phase = np.cumsum(pitch * np.linspace(1.05, 0.95, size)) / RATE
    pulses = np.diff(np.floor(phase), prepend=0) + 0.002 * random.standard_normal(size)
    turn = np.exp(-2j * np.pi * np.fft.rfftfreq(size))
    response = 1 / (1 - 0.95 * turn)
    for formant, width in zip(FORMANTS[int(random.integers(len(FORMANTS)))], WIDTHS, strict=True):
        radius = np.exp(-np.pi * width / RATE)
        response = response / (1 - 2 * radius * np.cos(2 * np.pi * formant / RATE) * turn + (radius * turn) ** 2)
    tone = np.fft.irfft(np.fft.rfft(pulses) * response, size)
    return np.asarray(tone / (np.abs(tone).max() + 1e-9), np.float32)
