"""What all sides of the training benchmark read, and what they answer.

One folder serves all. Plain coqui reads ``dataset/metadata_train.csv`` and the WAV files, ours the manifest and the
same WAV files. ``model`` is laid out as the hub has it: a GPT of the wanted size, DVAE and vocabulary of the published
one.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from utils.media import audio
from utils.media.rates import RATE

SHORTEST, LONGEST = 2.0, 9.0  # seconds
LETTERS_PER_SECOND = 14  # Latin letters of read speech, spaces included
LETTERS = "aeiou bdfghklmnprstwyz"
LANGUAGE = "en"  # one that plain coqui knows, so that all sides read the same ids
TRAIN_LIST, MODEL, DATASET = "metadata_train.csv", "model", "dataset"


class Round(NamedTuple):
    """What some updates took."""

    seconds: float  # by the clock
    work: float  # seconds of all processors together; other programs on the machine do not count
    waited: float  # seconds for the next clips
    clips: int  # that were learned from
    audio: float  # seconds of them

    @property
    def speed(self) -> float:
        """Return the clips a second."""
        return self.clips / self.seconds


def write_material(folder: Path, options: argparse.Namespace) -> None:
    """Write the clips and the model into an empty folder, from a seed."""
    from testing import random_model
    from utils.dataset.clip import Clip, Source
    from utils.dataset.store import Store
    from utils.recognition.spans import Span

    dataset, random = folder / DATASET, np.random.default_rng(0)
    (dataset / "wavs").mkdir(parents=True)
    rows, clips = ["audio_file|text|speaker_name"], []
    for number, seconds in enumerate(random.permutation(np.linspace(SHORTEST, LONGEST, options.clips)).tolist()):
        name = f"wavs/clip{number:04d}.wav"
        text = "".join(random.choice([*LETTERS], round(seconds * LETTERS_PER_SECOND))).strip()
        audio.save(dataset / name, random_model.synthetic_speech(seconds, number), RATE)
        rows.append(f"{name}|{text}|speaker")
        place = Span(10.0 * number, 10.0 * number + seconds)
        clips.append(Clip(f"r-{number}", "r", "r.wav", place, "speaker", text, name, f"c{number:031d}", split="train"))
    (dataset / TRAIN_LIST).write_text("\n".join(rows) + "\n", encoding="utf-8")
    Store(dataset).add(Source("r", "r.wav"), clips)
    size = replace(random_model.PUBLISHED, layers=options.layers, dim=options.dim, heads=heads(options), views=False)
    random_model.build(folder / MODEL, sizes=size)


def heads(options: argparse.Namespace) -> int:
    """Return the number of heads: 64 wide each, as the published model has them."""
    return max(1, int(options.dim) // 64)
