"""Sentences read into a microphone: each take is on disk with its text beside it as soon as it is spoken.

A take is a pair such as ``take-0007.flac`` and ``take-0007.txt`` in the project's recordings, which is how ``sources``
finds the words of a whole recording. So the next preparation makes a clip of it, and no list has to be kept.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from utils.amharic.alphabet import PHONES
from utils.core.errors import AudioError, DataError
from utils.core.paths import Project
from utils.core.storage import file_lock, make_folder, read_text, storage_error, write_atomically
from utils.dataset import prompts
from utils.dataset.lengths import LIMIT, header_seconds
from utils.media import audio
from utils.media.audio import Samples

FOLDER = "takes"
NAME = re.compile(r"take-(\d{4,})\.flac")
SHORTEST = 0.5  # seconds of sound; a cough is shorter
FAINTEST = 0.01  # of full scale: what stays below is a muted microphone
FRAME_SECONDS = 0.02
SOUND = 0.03  # of the loudest frame (-30 dB): where a take begins and ends
FULL_SCALE, MOST_CLIPPED = 0.99, 0.002  # what a preparation sets aside as clipped by default
TOO_LOUD = "The recording is too loud and clipped. Speak more softly or move away from the microphone."
WEIGHED = 500  # texts; more hardly change which sentence adds most


@dataclass(frozen=True, slots=True)
class Take:
    """One sentence as it was read.

    Attributes:
        path: Its sound; the text lies beside it.
        text: What was read.
        seconds: Length of the sound.
        warning: What may be wrong with it, as a sentence; empty when nothing is.
    """

    path: Path
    text: str
    seconds: float
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far somebody has come.

    Attributes:
        takes: Sentences that are recorded.
        seconds: Their length.
        sounds: Different sounds that they hold.
        total: Sounds of the language.
        missing: Sounds that are in none of them.
    """

    takes: int
    seconds: float
    sounds: int
    total: int
    missing: tuple[str, ...]


def folder(project: Project) -> Path:
    """Return where the takes of a project lie."""
    return project.dataset / "recordings" / FOLDER


def save_take(project: Project, sentence: str, samples: Samples, rate: int) -> Take:
    """Keep a take; one in which nothing is heard, or which is too long for a clip, is refused.

    Args:
        project: Whose recordings it joins.
        sentence: What was read.
        samples: Its sound, one channel.
        rate: Samples per second.
    """
    text = " ".join(sentence.split())
    if not text:
        raise DataError("There is no sentence to read.", hint="Select the next one, or enter your own.")
    warning = examine(samples, rate)
    here = folder(project)
    make_folder(here)
    with file_lock(here / ".lock"):
        path = here / f"take-{_last_number(here) + 1:04d}.flac"
        write_atomically(path.with_suffix(".txt"), f"{text}\n")  # first: sound without text would be transcribed
        audio.save(path, samples, rate)
    return Take(path, text, samples.size / rate, warning)


def examine(samples: Samples, rate: int) -> str:
    """Refuse a take of which no clip would come; return a sentence about one that is doubtful."""
    if float(np.abs(samples).max(initial=0.0)) < FAINTEST:
        raise AudioError("The recording is silent.", hint="Check that the right microphone is selected and not muted.")
    seconds = sounding(samples, rate)
    if seconds < SHORTEST:
        raise AudioError("It is too short.", hint="Read the whole sentence, then stop the recording.")
    if seconds > LIMIT:
        raise AudioError(
            f"It lasts {seconds:.1f} s; the maximum is {LIMIT:g} s.", hint="Read faster, or skip this sentence."
        )
    return TOO_LOUD if float(np.mean(np.abs(samples) >= FULL_SCALE)) > MOST_CLIPPED else ""


def sounding(samples: Samples, rate: int) -> float:
    """Return the seconds from the first sound to the last one."""
    size = max(1, round(FRAME_SECONDS * rate))
    frames = samples[: samples.size - samples.size % size].reshape(-1, size)
    levels = np.sqrt(np.einsum("ij,ij->i", frames, frames) / size)
    loud = np.flatnonzero(levels > SOUND * levels.max(initial=0.0))
    return float((loud[-1] - loud[0] + 1) * size / rate) if loud.size else 0.0


def takes(project: Project) -> list[Take]:
    """Return the takes of a project in the order in which they were read."""
    return [Take(path, _text(path), header_seconds(path) or 0.0) for path in _files(folder(project))]


def undo_last(project: Project) -> Take:
    """Remove the newest take; clips that were made of it stay in the dataset."""
    here = folder(project)
    if not (found := takes(project)):
        raise DataError("There is no recording to delete.", hint="Record a sentence first.")
    last = found[-1]
    try:
        with file_lock(here / ".lock"):
            last.path.unlink()  # first: sound without text would be transcribed
            last.path.with_suffix(".txt").unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(last.path, error) from error
    return last


def progress(found: Collection[Take]) -> Progress:
    """Say how many of the sounds of Amharic some takes hold."""
    covered = prompts.coverage(take.text for take in found)
    total = len(PHONES)
    seconds = sum(take.seconds for take in found)
    return Progress(len(found), seconds, total - len(covered.missing), total, covered.missing)


def next_sentence(read: Iterable[str], skipped: Collection[str] = ()) -> str:
    """Return the sentence that adds most to what was read; empty when there is none left.

    Args:
        read: What was recorded already, the newest last; it is not given again.
        skipped: Sentences that somebody did not want to read.
    """
    read = list(dict.fromkeys(read))
    passed = {*skipped, *read}
    left = [sentence for sentence in prompts.shipped() if sentence not in passed]
    return next(iter(prompts.choose(1, left, read[-WEIGHED:])), "") if left else ""


def _files(here: Path) -> list[Path]:
    if not here.is_dir():
        return []
    return sorted((path for path in here.iterdir() if NAME.fullmatch(path.name)), key=_number)


def _last_number(here: Path) -> int:
    return max(map(_number, _files(here)), default=0)


def _number(path: Path) -> int:
    found = NAME.fullmatch(path.name)
    return int(found[1]) if found else 0


def _text(path: Path) -> str:
    beside = path.with_suffix(".txt")
    return read_text(beside).strip() if beside.is_file() else ""
