"""Reference clips of a project: kept when they are uploaded or recorded, chosen from its dataset by their scores."""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from utils.config import SEPARATOR
from utils.core.errors import AudioError, DataError
from utils.core.folders import hash_file, link_or_copy_atomically
from utils.core.paths import Project
from utils.core.storage import make_folder
from utils.dataset.lengths import header_seconds
from utils.dataset.metadata import FILES, read_list
from utils.media import audio

T = TypeVar("T")

FOLDER = "voices"
SHORTEST, LONGEST = 3.0, 12.0  # seconds of a clip of the dataset that may be a reference
LOOKED_AT, SCORED = 400, 24  # clips whose length is read, and that are listened to
SHOWN_LETTERS = 40


@dataclass(frozen=True)
class Clip:
    """A clip of the dataset as a reference.

    Attributes:
        path: The clip.
        total: From 0 to 1.
        sentence: Why, in words.
        text: What is said in it.
    """

    path: Path
    total: float
    sentence: str
    text: str

    @property
    def title(self) -> str:
        """Describe it in a line."""
        return f"{self.total:.0%} · {self.sentence} · {self.text[:SHOWN_LETTERS]}"


def keep(project: Project, path: Path) -> Path:
    """Copy a sound file into the project; the same sound is kept once, and what is no sound is refused."""
    seconds = audio.duration(path)
    if seconds <= 0:
        raise AudioError(f"{path.name} holds no sound.", hint="Choose another file, or record again.")
    folder = project.root / FOLDER
    make_folder(folder)
    plain = re.sub(r"[^\w-]+", "_", path.stem).strip("_")[:40] or "voice"
    target = folder / f"{plain}-{hash_file(path)[:8]}{path.suffix.lower()}"
    if not target.exists():
        link_or_copy_atomically(path, target)
    return target


def kept(project: Project) -> list[Path]:
    """List what was uploaded and recorded, newest first."""
    folder = project.root / FOLDER
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    return sorted(found, key=lambda path: -path.stat().st_mtime)


def reference(paths: Sequence[Path | str]) -> str:
    """Name several clips of one speaker as the settings do."""
    return f" {SEPARATOR} ".join(map(str, paths))


def choices(project: Project, own: Sequence[str]) -> list[tuple[str, str]]:
    """List voices as (what a person sees, value): those of the model, then those of the project."""
    return [*((name, name) for name in own), *((path.name, str(path)) for path in kept(project))]


def candidates(project: Project) -> list[tuple[Path, str]]:
    """Choose clips of the dataset that are long enough, spread over all, each with its text."""
    path = project.dataset / FILES["train"]
    if not path.is_file():
        raise DataError("This project has no dataset yet.", hint="Create one in the Data tab, or upload a clip.")
    rows = [row for row in read_list(path) if not row.fault]
    looked = _spread(rows, LOOKED_AT)
    lengths = [(row, header_seconds(row.path) or 0.0) for row in looked]
    fitting = [row for row, seconds in lengths if SHORTEST <= seconds <= LONGEST]
    good = fitting or [row for row, seconds in lengths if seconds]
    if not good:
        raise DataError("No clip of the dataset can be read.", hint="Check the dataset in the Data tab.")
    return [(row.path.resolve(), row.text) for row in _spread(good, SCORED)]


def scored(clips: Sequence[tuple[Path, str]]) -> Iterator[Clip]:
    """Listen to clips and yield each that can be used with its score."""
    for path, text in clips:
        total, sentence, fault = _score(path, path.stat().st_mtime_ns)
        if not fault:
            yield Clip(path, total, sentence, text)


def sentence_of(path: Path) -> str:
    """Say how good a reference a clip is."""
    return _score(path, path.stat().st_mtime_ns)[1]


@functools.lru_cache(maxsize=2048)
def _score(path: Path, changed: int) -> tuple[float, str, str]:  # noqa: ARG001  # listened to again after a change
    from utils.speech.reference_choice import score

    found = score(path)
    return found.total, found.sentence, found.fault


def _spread(items: Sequence[T], count: int) -> list[T]:
    if count >= len(items):
        return list(items)
    return [items[place * len(items) // count] for place in range(count)]
