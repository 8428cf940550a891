"""A small dataset for the tiny model: computed sounds, a dataset, and clips that a person approved."""

from pathlib import Path

from utils.core.storage import make_folder
from utils.dataset import editor
from utils.dataset.clip import Clip, Scores, Source, Span
from utils.dataset.metadata import WAVS, write_lists
from utils.dataset.store import Store
from utils.media import audio
from utils.media.rates import RATE
from utils.workspace import sample_project
from utils.xtts import random_model

CLIPS, HELD_BACK = 12, 9  # those from the second number on are for judging
GOOD = ["r-1", "r-2"]  # clips that a person approved
REASON = "noisy to my ear"  # why a person sets clips aside


def write_dataset(folder: Path, seconds: float = 1.5) -> list[Clip]:
    """Write the dataset with its audio; return the clips."""
    make_folder(folder / WAVS)
    clips = [_clip(number, text, seconds) for number, text in enumerate(sample_project.sentences()[:CLIPS])]
    for number, clip in enumerate(clips):
        audio.save(folder / clip.audio, random_model.synthetic_speech(seconds, number), RATE)
    length = len(clips) * (seconds + 1)
    Store(folder).add(Source("r", "in.wav", 1000, 1_700_000_000_000_000_000, length, warnings=("a", "b")), clips)
    write_lists(folder, "am")
    editor.approve(folder, GOOD)
    return clips


def _clip(number: int, text: str, seconds: float) -> Clip:
    start = number * (seconds + 1)
    return Clip(
        *(f"r-{number}", "r", "in.wav", Span(start, start + seconds), "speaker", text),
        audio=f"{WAVS}/r-{number}.wav",
        content=f"{number:016x}",
        scores=Scores(0.9, 30.0, 0.0, -20.0, 12.5, 0.9),
        split="eval" if number >= HELD_BACK else "train",
    )
