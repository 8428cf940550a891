"""Reference clips of a project: uploads and recordings, and the best clips of its dataset."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from utils.config import SEPARATOR, split_values
from utils.core import wording
from utils.core.batching import evenly_spaced
from utils.core.facts import Fact, Unrecognised
from utils.core.folders import hash_file
from utils.core.paths import resolve_inside, validate_name
from utils.core.storage import cached_while_unchanged, link_or_copy_atomically, make_folder
from utils.dataset.metadata import FILES, header_seconds, read_list, write_lists
from utils.media import audio
from utils.studio.facts import InputError
from utils.studio.paths import Project

if TYPE_CHECKING:
    from utils.speech.reference_choice import ReferenceScore

FOLDER = "voices"
AUDIO_FILES = frozenset(".wav .flac .mp3 .ogg .opus .m4a .aac .wma .webm".split())
MIN_SECONDS, MAX_SECONDS = 3.0, 12.0  # of a clip of the dataset
MAX_MEASURED, MAX_SCORED = 400, 24  # clips whose duration is read, and clips that are scored


class ScoredClip(NamedTuple):
    """A clip of the dataset, with its score as a reference from 0 to 1, and the reason."""

    path: Path
    score: float
    reason: Fact
    text: str

    def title(self) -> str:
        return f"{self.score:.0%} · {wording.describe(self.reason)} · {self.text[:40]}"


def add(project: Project, path: Path) -> Path:
    """Copy an audio file into the project; the same content is stored once."""
    if audio.duration(path) <= 0:
        raise InputError("no_sound", path.name)
    folder = project.root / FOLDER
    make_folder(folder)
    stem = re.sub(r"[^\w-]+", "_", path.stem).strip("_")[:40] or "voice"
    target = folder / f"{stem}-{hash_file(path)[:8]}{path.suffix.lower()}"
    if not target.exists():
        link_or_copy_atomically(path, target)
    return target


def named_voices(folder: Path | None) -> dict[str, str]:
    """Map the names of voices to references: each audio file of a folder, and each subfolder of audio files."""
    voices = {}
    for path in sorted(folder.glob("[!.]*")) if folder else []:
        name, files = (path.name, sorted(path.iterdir())) if path.is_dir() else (path.stem, [path])
        usable = [str(file) for file in files if file.suffix.lower() in AUDIO_FILES and file.is_file()]
        if usable and name.isprintable() and SEPARATOR not in "".join(usable):
            voices[name] = SEPARATOR.join(usable)
    return voices


def project_voices(project: Project) -> dict[str, str]:
    return named_voices(project.root / FOLDER)


def save_voice(project: Project, name: str, reference: str) -> str:
    """Save the clips of a voice under a name, by which a script can call it; return its reference."""
    folder = resolve_inside(project.root / FOLDER, validate_name(name))
    paths = [*map(Path, split_values(reference))]
    if not paths or not all(path.is_file() for path in paths):
        raise InputError("no_clips_of_voice")
    make_folder(folder)
    for number, path in enumerate(paths, 1):
        link_or_copy_atomically(path, folder / f"{number}{path.suffix.lower()}")
    return project_voices(project)[folder.name]


def join_reference(paths: Sequence[Path | str]) -> str:
    """Name several clips of one speaker in the format of ``SpeechConfig.reference``."""
    return f" {SEPARATOR} ".join(map(str, paths))


def choices(project: Project, model_voices: Sequence[str]) -> list[tuple[str, str]]:
    """List voices as (label, value): those of the model, then those of the project."""
    return [*((name, name) for name in model_voices), *project_voices(project).items()]


def candidates(project: Project) -> list[tuple[Path, str]]:
    """Return clips of the dataset with their texts: of suitable duration, spread evenly over the dataset."""
    path = project.dataset / FILES["train"]
    write_lists(project.dataset)
    if not path.is_file():
        raise InputError("no_dataset")
    rows = evenly_spaced(read_list(path), MAX_MEASURED)
    durations = [(row, header_seconds(row.path) or 0.0) for row in rows]
    suitable = [row for row, seconds in durations if MIN_SECONDS <= seconds <= MAX_SECONDS]
    readable = suitable or [row for row, seconds in durations if seconds]
    if not readable:
        raise InputError("no_readable_clip")
    return [(row.path.resolve(), row.text) for row in evenly_spaced(readable, MAX_SCORED)]


def score_clips(clips: Sequence[tuple[Path, str]]) -> Iterator[ScoredClip]:
    """Score clips and yield those that can be used."""
    for path, text in clips:
        result = _score(path)
        if result.quality:
            yield ScoredClip(path, result.total, result.quality, text)


def describe(path: Path) -> str:
    """Describe how good a reference a clip is, or why it is none."""
    result = _score(path)
    return wording.describe(result.quality or result.error or Unrecognised(path.name))


@cached_while_unchanged(2048)
def _score(path: Path) -> "ReferenceScore":
    from utils.speech.reference_choice import score

    return score(path)
