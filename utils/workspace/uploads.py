"""Where the recordings of a project come from: uploads that are kept in it, and places that somebody named.

The places are lines of a file in the project, so that a reload, a second tab and another browser see the same list.
What lies in the project itself is noted relative to it: a project that is copied or moved reads its own recordings.
"""

import importlib.util
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.config import SEPARATOR
from utils.core.errors import AmharicTtsError, DataError
from utils.core.folders import hash_file, link_or_copy_atomically
from utils.core.paths import Project, resolve_inside
from utils.core.storage import file_lock, make_folder, read_text, storage_error, write_atomically
from utils.dataset import existing, pairing, voice_recordings
from utils.dataset.download import is_url
from utils.dataset.list_files import read_listing
from utils.dataset.sources import HUB, MEDIA, TRANSCRIPTS
from utils.dataset.subtitles import read_cues
from utils.media import audio

RECORDINGS, PLACES = "recordings", "places.txt"
UPLOADS, LISTS = "uploads", "lists"
TAKES = voice_recordings.FOLDER
MOST_FILES = 20_000  # that a look goes through; more than anybody reads
TABLES = frozenset({".parquet", ".arrow"})


@dataclass(frozen=True)
class Pair:
    """A file with sound and where its words come from.

    Attributes:
        media: The file.
        subtitles: Those that go with it, each with its language; the first one in the asked language is read.
        text: Whether a text file of its name lies beside it.
    """

    media: Path
    subtitles: tuple[pairing.Subtitle, ...] = ()
    text: bool = False


@dataclass(frozen=True)
class Look:
    """What a look at a place found.

    Attributes:
        pairs: Its files with sound.
        alone: Subtitles that belong to none of them.
        clips: Lines of an existing dataset.
        faults: What cannot be used, as sentences.
        remote: Whether it has to be fetched first.
        tables: Whether it is a dataset whose clips lie inside tables.
    """

    pairs: tuple[Pair, ...] = ()
    alone: tuple[Path, ...] = ()
    clips: int = 0
    faults: tuple[str, ...] = ()
    remote: bool = False
    tables: bool = False


@dataclass(frozen=True)
class Kept:
    """What became of some uploads: names that are in the project now, and what is wrong with each that is not."""

    names: tuple[str, ...] = ()
    faults: tuple[AmharicTtsError, ...] = ()


def folder(project: Project, kind: str) -> Path:
    """Return where the project keeps recordings of one kind."""
    return project.dataset / RECORDINGS / kind


def read(project: Project) -> list[str]:
    """Return the places that were named, as a person sees them."""
    path = project.dataset / RECORDINGS / PLACES
    return [line for line in read_text(path).splitlines() if line] if path.is_file() else []


def divided(text: str) -> list[str]:
    """Return the places of a text, divided by | or line breaks, each once."""
    parts = (part.strip() for line in text.splitlines() for part in line.split(SEPARATOR))
    return list(dict.fromkeys(part for part in parts if part))


def write(project: Project, text: str, shown: str | None = None) -> list[str]:
    """Keep the places of a text.

    Args:
        project: Whose they are.
        text: What somebody made of it.
        shown: What he was shown before: what others have added and dropped since then stays so. None for nothing.
    """
    named = divided(text)
    if shown is None:
        return _change(project, lambda _: named)
    before = divided(shown)

    def edited(there: list[str]) -> list[str]:
        mine = [place for place in named if place in there or place not in before]
        return [*mine, *(place for place in there if place not in [*before, *named])]

    return _change(project, edited)


def add(project: Project, place: str) -> list[str]:
    """Add a place to those that are there."""
    return _change(project, lambda there: [*there, *(one for one in divided(place) if one not in there)])


def drop(project: Project, place: str) -> list[str]:
    """Take a place off the list."""
    return _change(project, lambda there: [other for other in there if other != place])


def _change(project: Project, change: Callable[[list[str]], list[str]]) -> list[str]:
    """Change the list, one change at a time; where nothing changes, nothing is made."""
    there = read(project)
    if change(there) == there:
        return there
    here = project.dataset / RECORDINGS
    make_folder(here)
    with file_lock(here / ".lock"):
        places = change(read(project))
        write_atomically(here / PLACES, "".join(f"{place}\n" for place in places))
    return places


def joined(places: Iterable[str]) -> str:
    """Write places as the setting of a preparation has them."""
    return f" {SEPARATOR} ".join(places)


def own(kind: str) -> str:
    """Name a folder of the project itself."""
    return f"{RECORDINGS}/{kind}"


def absolute(project: Project, place: str) -> str:
    """Name a place so that it means the same from the folder in which a run works."""
    if is_remote(place):
        return place
    mine = project.dataset / place
    if place in {own(UPLOADS), own(LISTS), own(TAKES)}:
        return str(mine.resolve())
    return str(Path(place).expanduser().resolve())


def is_remote(place: str) -> bool:
    """Tell whether a place has to be fetched."""
    return is_url(place) or place.startswith(HUB)


def can_fetch() -> bool:
    """Tell whether the package that fetches from addresses is installed."""
    return importlib.util.find_spec("yt_dlp") is not None


def keep(project: Project, paths: Sequence[str], kind: str = UPLOADS) -> Kept:
    """Take uploads into the project; what cannot be used is refused, each with its error."""
    here = folder(project, kind)
    make_folder(here)
    names, faults = [], []
    for path in map(Path, paths):
        try:
            check(path, kind)
            names.append(_take(path, here).name)
        except AmharicTtsError as error:
            what, cure = (said.replace(str(path), path.name) for said in (error.message, error.hint))
            faults.append(AmharicTtsError(what, hint=cure))  # where gradio keeps it is nobody's concern
    if names:
        add(project, own(kind))
    return Kept(tuple(names), tuple(faults))


def check(path: Path, kind: str) -> None:
    """Refuse a file of which nothing would come."""
    ending = path.suffix.lower()
    if not path.stat().st_size:
        raise DataError(f"{path.name} is empty.", hint="Copy it again.")
    if ending in MEDIA:
        audio.probe(path)
    elif pairing.is_subtitle(path):
        read_cues(path)
    elif kind == LISTS and existing.is_dataset(path):
        if ending not in TABLES:
            read_listing(path)
    elif ending in TRANSCRIPTS and not existing.is_dataset(path):
        return
    elif existing.is_dataset(path):
        raise DataError(f"{path.name} is a list of clips.", hint="Upload it under Existing dataset, with its sound.")
    else:
        raise DataError(
            f"{path.name} is neither sound nor video nor subtitles.",
            hint="Use a common ending such as .wav, .mp3, .mp4 or .srt.",
        )


def kept(project: Project, kind: str = UPLOADS) -> list[Path]:
    """Return the files that the project keeps."""
    here = folder(project, kind)
    return sorted(path for path in here.iterdir() if _counts(path)) if here.is_dir() else []


def remove(project: Project, names: Iterable[str], kind: str = UPLOADS) -> None:
    """Remove files that were uploaded; clips that were made of them stay."""
    here = folder(project, kind)
    for name in names:
        path = resolve_inside(here, name)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(path, error) from error
    if not kept(project, kind):
        drop(project, own(kind))


def look(place: str) -> Look:
    """Say what a place holds, without decoding any sound."""
    if is_remote(place):
        return Look(remote=True)
    path = Path(place).expanduser()
    if SEPARATOR in place:
        raise DataError(f"{place!r} has a | in its name.", hint="Rename it, or name the folder that it lies in.")
    if not path.exists():
        raise DataError(f"There is nothing of the name {place}.", hint="Check the spelling and the folder.")
    if existing.is_dataset(path):
        return _dataset(path)
    found = _below(path) if path.is_dir() else [path, *path.parent.iterdir()]
    looked = paired(found)
    if not path.is_dir():
        mine = [pair for pair in looked.pairs if pair.media == path or path in {one.path for one in pair.subtitles}]
        return Look(tuple(mine), (path,) if not mine and pairing.is_subtitle(path) else ())
    if not looked.pairs:
        raise DataError(f"{place} holds no sound and no video.", hint="Choose another folder.")
    return looked


def paired(files: Iterable[Path]) -> Look:
    """Find which subtitles go with which sound, as a preparation does."""
    files = list(files)
    media = [path for path in files if path.suffix.lower() in MEDIA]
    subtitles = [path for path in files if pairing.is_subtitle(path)]
    found = pairing.pair(media, subtitles)
    names = set(files)
    pairs = (
        Pair(path, tuple(found.of.get(path, ())), any(path.with_suffix(ending) in names for ending in TRANSCRIPTS))
        for path in media
    )
    return Look(tuple(pairs), found.alone)


def _dataset(path: Path) -> Look:
    """Count the lines of an existing dataset; what lies inside tables is only counted when it is read."""
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]
    if not any(existing.is_dataset(file) and file.suffix.lower() not in TABLES for file in files):
        return Look(tables=True)
    found = existing.read(path)
    faults = tuple(f"{problem.path.name}: {problem.sentence}" for problem in found.problems)
    return Look(clips=len(found.recordings), faults=faults)


def _below(root: Path) -> list[Path]:
    found: list[Path] = []
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(here, name) for name in sorted(names) if not name.startswith(".")]
        if len(found) > MOST_FILES:
            break
    return found[:MOST_FILES]


def _take(path: Path, here: Path) -> Path:
    """Put a file into a folder under its own name, or under the next one that is free; the same file comes in once."""
    with file_lock(here / ".lock"):
        target = resolve_inside(here, path.name)
        number = 2
        while target.exists():
            if _same(path, target):
                return target
            target = resolve_inside(here, f"{path.stem}-{number}{path.suffix}")
            number += 1
        link_or_copy_atomically(path, target)
    return target


def _same(one: Path, other: Path) -> bool:
    return one.stat().st_size == other.stat().st_size and hash_file(one) == hash_file(other)


def _counts(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".")
