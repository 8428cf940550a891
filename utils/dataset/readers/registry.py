"""All readers, and how a folder is read: whatever brought the files here, they are read in the same way."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from utils.core.errors import AmharicTtsError
from utils.dataset.clip import ScanResult
from utils.dataset.facts import Bad
from utils.dataset.readers import (
    arrow_tables,
    audacity,
    books,
    ctm,
    elan,
    festvox,
    fleurs,
    kaldi,
    label_studio,
    librispeech,
    libritts,
    numbered_lines,
    praat,
    subtitle_files,
    tables,
    transcripts,
    vctk,
    whisper_json,
)
from utils.dataset.readers.archives import unpack
from utils.dataset.readers.collection import Collection
from utils.dataset.readers.facts import InputUnusable, NotOnDisk
from utils.dataset.readers.folder import TABLES, Folder, is_archive, is_media
from utils.media.facts import AudioFileError

if TYPE_CHECKING:
    from utils.dataset.readers.protocol import Reader

READERS = cast(
    "tuple[Reader, ...]",
    (
        kaldi,
        fleurs,
        librispeech,
        libritts,
        vctk,
        festvox,
        label_studio,
        praat,
        elan,
        ctm,
        audacity,
        arrow_tables,
        subtitle_files,
        whisper_json,
        tables,
        numbered_lines,
        transcripts,
        books,
    ),
)
DEPTH = 3  # of archives inside archives


def read_files(folder: Folder, speaker: str) -> ScanResult:
    """Read files with the reader that is surest of each."""
    collection = Collection(folder, speaker)
    found = [(reader, match) for reader in READERS if (match := reader.recognise(folder))]
    for reader, match in sorted(found, key=lambda pair: -pair[1].confidence):
        collection.add_match(reader, match)
    return collection.result()


def read_folder(root: Path, speaker: str) -> ScanResult:
    """Read all files below a folder."""
    problems: list[Bad] = []
    scan = read_files(Folder(find_files(root, None, problems)), speaker)
    return ScanResult(scan.recordings, (*problems, *scan.problems), scan.notes)


def read_table(path: Path, workspace: Path, speaker: str) -> Iterator[ScanResult]:
    """Read a table of a published dataset a few rows at a time, so that the caller can stop."""
    folder = Folder({path: path}, workspace=workspace)
    for batch in arrow_tables.batches(path):
        collection = Collection(folder, speaker)
        collection.used.add(path)
        for item in arrow_tables.read_batches(folder, path, [batch]):
            collection.add(item)
        yield collection.result()


def find_files(root: Path, workspace: Path | None, problems: list[Bad], depth: int = DEPTH) -> dict[Path, Path]:
    """Return the files below a folder by their places, and those in its archives; linked folders belong to it."""
    found: dict[Path, Path] = {}
    unreadable: list[OSError] = []
    for folder, has_folders, files in _walk(root, unreadable):
        if folder != root and is_media(folder) and not has_folders and not any(map(is_media, files)):
            problems.append(Bad(folder, InputUnusable("named_as_audio")))
        add_files(found, files, problems)
    problems += [
        Bad(Path(str(error.filename)), InputUnusable("unreadable", str(error.strerror))) for error in unreadable
    ]
    for path in [path for path in found if is_archive(path)]:
        found |= find_in_archive(path, found.pop(path), workspace, problems, depth)
    return found


def has_sound(paths: Iterable[Path]) -> bool:
    """Return whether some files are recordings, or tables that may hold some."""
    return any(is_media(path) or path.suffix.lower() in TABLES for path in paths)


def may_have_sound(root: Path) -> bool:
    """Return whether it is worth reading a folder: what cannot be opened now may hold sound."""
    unreadable: list[OSError] = []
    found = any(has_sound(files) or any(map(is_archive, files)) for _, _, files in _walk(root, unreadable))
    return found or bool(unreadable)


def _walk(root: Path, unreadable: list[OSError]) -> Iterator[tuple[Path, bool, list[Path]]]:
    """Yield each folder below a root, whether it has folders, and its files; hidden ones are left out."""
    seen = {root.resolve(), *root.resolve().parents}
    for walked, folders, names in os.walk(root, onerror=unreadable.append, followlinks=True):
        folder = Path(walked)
        folders[:] = [
            name
            for name in sorted(folders)
            if not name.startswith(".") and name != "__MACOSX" and _is_new(folder / name, seen)
        ]
        yield folder, bool(folders), sorted(folder / name for name in names if not name.startswith("."))


def _is_new(folder: Path, seen: set[Path]) -> bool:
    """Return whether a folder has not been walked yet: links may lead back to one that has."""
    if folder.is_symlink():
        folder = folder.resolve()
        if folder in seen:
            return False
        seen.add(folder)
    return True


def add_files(found: dict[Path, Path], paths: Iterable[Path], problems: list[Bad]) -> None:
    """Add files by their places; a pipe waits for a writer, and a device may never end.

    A link stands for its file, but keeps its own name where the file has another, such as a hash in a cache of the hub.
    """
    for path in paths:
        if path.is_file():
            file = path.resolve()
            found[path] = file if file.name == path.name else path
        elif path.exists() and (is_media(path) or path.suffix):
            problems.append(Bad(path, AudioFileError(path, "pipe")))
        elif not path.exists():
            problems.append(Bad(path, InputUnusable("missing")))


def find_in_archive(
    place: Path, file: Path, workspace: Path | None, problems: list[Bad], depth: int = DEPTH
) -> dict[Path, Path]:
    """Unpack an archive, and return its files below its own place."""
    if workspace is None or not depth:
        problems.append(Bad(place, NotOnDisk()))
        return {}
    try:
        unpacked = unpack(file, workspace)
    except AmharicTtsError as error:
        problems.append(Bad(place, error))
        return {}
    inside = find_files(unpacked, workspace, problems, depth - 1)
    return {place / path.relative_to(unpacked): real for path, real in inside.items()}
