"""Sentences read into a microphone: each take is on disk with its text beside it as soon as it is spoken.

A take is a pair such as ``take-0007.flac`` and ``take-0007.txt`` in the project's recordings, which is how ``sources``
finds the words of a whole recording. So the next preparation makes a clip of it, and no list is needed.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from utils.amharic.alphabet import PHONES
from utils.config import DatasetConfig
from utils.core.storage import file_lock, make_folder, read_text, storage_errors, write_atomically
from utils.dataset import prompts
from utils.dataset.errors import TakeError
from utils.dataset.metadata import header_seconds
from utils.media import audio
from utils.media.audio import Samples
from utils.recognition.levels import FULL_SCALE
from utils.recognition.signal_checks import windows

FOLDER = "takes"
NAME = re.compile(r"take-(\d{4,})\.flac")
MIN_SECONDS = 0.5  # of sound; a cough is shorter
MIN_PEAK = 0.01  # of full scale: what stays below is a muted microphone
FRAME_SECONDS = 0.02
SOUND = 0.03  # of the loudest frame (-30 dB): where a take begins and ends
MAX_COMPARED = 500  # texts; more hardly change which sentence adds most


@dataclass(frozen=True, slots=True)
class RecordedTake:
    """One sentence as it was read; the text is in a file beside the audio."""

    path: Path
    text: str
    seconds: float
    is_too_loud: bool = False


@dataclass(frozen=True, slots=True)
class PhonemeCoverage:
    """How many of the sounds of the language the takes contain."""

    takes: int
    seconds: float
    sounds: int
    total: int
    missing: tuple[str, ...]


def save_take(recordings: Path, sentence: str, samples: Samples, rate: int) -> RecordedTake:
    """Save a take; one that is silent, or too long for a clip, is refused."""
    text = " ".join(sentence.split())
    if not text:
        raise TakeError("no_sentence")
    is_too_loud = _examine(samples, rate)
    parent = recordings / FOLDER
    make_folder(parent)
    with file_lock(parent / ".lock"):
        path = parent / f"take-{max(_files(parent), default=0) + 1:04d}.flac"
        write_atomically(path.with_suffix(".txt"), f"{text}\n")  # first: sound without text would be transcribed
        audio.save(path, samples, rate)
    return RecordedTake(path, text, samples.size / rate, is_too_loud)


def takes(recordings: Path) -> list[RecordedTake]:
    """Return the takes among some recordings in the order in which they were read."""
    saved = []
    for path in _files(recordings / FOLDER).values():
        text = path.with_suffix(".txt")
        saved.append(RecordedTake(path, read_text(text).strip() if text.is_file() else "", header_seconds(path) or 0.0))
    return saved


def undo_last(recordings: Path) -> RecordedTake:
    """Delete the newest take; clips that were made of it stay in the dataset."""
    if not (saved := takes(recordings)):
        raise TakeError("no_take")
    last = saved[-1]
    with storage_errors(last.path), file_lock(last.path.parent / ".lock"):
        last.path.unlink()  # first: sound without text would be transcribed
        last.path.with_suffix(".txt").unlink(missing_ok=True)
    return last


def progress(saved: Collection[RecordedTake]) -> PhonemeCoverage:
    """Return how many of the sounds of Amharic some takes contain."""
    missing = prompts.missing_sounds(take.text for take in saved)
    seconds = sum(take.seconds for take in saved)
    return PhonemeCoverage(len(saved), seconds, len(PHONES) - len(missing), len(PHONES), missing)


def next_sentence(read: Iterable[str], skipped: Collection[str] = ()) -> str:
    """Return the sentence that adds most to what was read, the newest last; empty when there is none left."""
    read = list(dict.fromkeys(read))
    passed = {*skipped, *read}
    left = [sentence for sentence in prompts.shipped() if sentence not in passed]
    return next(iter(prompts.choose(1, left, read[-MAX_COMPARED:])), "") if left else ""


def _examine(samples: Samples, rate: int) -> bool:
    """Refuse a take that would not become a clip; return whether it is too loud."""
    if float(np.abs(samples).max(initial=0.0)) < MIN_PEAK:
        raise TakeError("silent")
    size = max(1, round(FRAME_SECONDS * rate))
    frames = windows(samples, size)
    levels = np.sqrt(np.einsum("ij,ij->i", frames, frames) / size)
    loud = np.flatnonzero(levels > SOUND * levels.max(initial=0.0))
    seconds = float((loud[-1] - loud[0] + 1) * size / rate) if loud.size else 0.0
    if seconds < MIN_SECONDS:
        raise TakeError("too_short")
    if seconds > (longest := DatasetConfig().max_seconds):  # it would be split
        raise TakeError("too_long", seconds, longest)
    return float(np.mean(np.abs(samples) >= FULL_SCALE)) > DatasetConfig().max_clipping


def _files(parent: Path) -> dict[int, Path]:
    """Return the takes by their numbers."""
    paths = ((NAME.fullmatch(path.name), path) for path in parent.glob("take-*.flac"))
    return dict(sorted((int(match[1]), path) for match, path in paths if match))
