"""The base model of a training: a published version, a built-in model, or a custom one.

Every base model is returned as a folder in the layout of the hub, with files that are complete and belong together.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.core.facts import Progress, Report, ShouldStop, ignore, never_stop, raise_if_stopped
from utils.core.folders import hash_once
from utils.core.paths import TINY_MODEL, expand_home
from utils.core.storage import (
    file_lock,
    file_version,
    hash_text,
    make_folder,
    read_object,
    require_space,
    symlink_or_copy,
    write_document,
)
from utils.xtts.facts import ModelFileError, UnreachableError
from utils.xtts.files import (
    ABOUT_FILE,
    DVAE_FILE,
    HUB_FILES,
    MEL_FILE,
    MODEL_FILE,
    MODEL_FILE_NAMES,
    REFERENCE_FILE,
    REQUIRED_FILES,
    SETTINGS_FILE,
    SPEAKERS_FILE,
    TINY,
    looks_complete,
)
from utils.xtts.hub import HubFile, download, file_info, require_licence
from utils.xtts.model import match_gpt, read_state_dict, require_match, require_vocoder

ADDED_LATER = (DVAE_FILE, MEL_FILE, SPEAKERS_FILE)  # older versions use those of the newest
OTHER_FILES = (*HUB_FILES[1:], SETTINGS_FILE, REFERENCE_FILE, ABOUT_FILE)  # besides the weights
NEWEST = "main"
VERIFIED_FILE = "verified.json"
PROGRESS_SECONDS = 0.5  # between two reports


@dataclass(frozen=True)
class ModelSource:
    """Where published models are downloaded from and stored."""

    models: Path  # has one subfolder for each version
    consent: Path  # file with the consent to the licence
    endpoint: str | None = None  # address of the hub; None: HF_ENDPOINT, or the public hub
    report: Report = ignore
    should_stop: ShouldStop = never_stop


def base_folder(version: str, source: ModelSource, custom_model: str = "") -> Path:
    """Return the folder of a base model; missing files are downloaded or linked.

    ``version`` is a published one, or tiny. A custom model is a folder or .pth, whose missing files come from it.
    """
    if custom_model.strip():
        return _custom_folder(expand_home(custom_model.strip()), version, source)
    return _version_folder(version, HUB_FILES, source)


def _version_folder(version: str, names: Sequence[str], source: ModelSource) -> Path:
    folder = source.models / version
    if version == TINY:
        return TINY_MODEL
    make_folder(folder)
    with file_lock(source.models / f".{version}.lock"):
        verified = VerifiedFiles(folder)
        if unverified := [name for name in names if not verified.is_unchanged(name)]:
            _verify_or_download(verified, version, unverified, source)
    return folder


def _verify_or_download(verified: "VerifiedFiles", version: str, names: Sequence[str], source: ModelSource) -> None:
    """Download files that differ from the hub; offline, existing files that look complete are used."""
    folder = verified.folder
    complete = all(looks_complete(folder / name) for name in names)
    if not complete:
        require_licence(source.consent)
    try:
        files = [_hub_file(name, version, source.endpoint) for name in names]
    except UnreachableError:
        if complete:
            return
        raise
    needed = [file for file in files if not file.is_intact(folder / file.name)]
    verified.add(file for file in files if file not in needed)
    total = sum(file.size for file in needed)
    if needed:
        require_licence(source.consent)
        require_space(folder / needed[0].name, total)
    done = 0
    for file in needed:
        download(file, folder, _follow(file.name, done, total, source))
        verified.add([file])
        done += file.size


def _follow(name: str, done: int, total: int, source: ModelSource) -> Callable[[int], None]:
    """Return what is told the bytes of one file: it reports now and then, and stops on request."""
    reported = 0.0
    begun: tuple[float, int] | None = None  # when, and with how many bytes

    def follow(size: int) -> None:
        nonlocal reported, begun
        raise_if_stopped(source.should_stop)  # what has been downloaded is on disk
        now = time.monotonic()
        if now - reported > PROGRESS_SECONDS or done + size == total:
            reported = now
            begun = begun or (now, size)
            arrived = size - begun[1]
            left = round((now - begun[0]) * (total - done - size) / arrived, 1) if arrived > 0 else None
            source.report(Progress(done + size, total, name, seconds_left=left))

    return follow


def _hub_file(name: str, version: str, endpoint: str | None) -> HubFile:
    for revision in [version, NEWEST] if name in ADDED_LATER else [version]:
        if file := file_info(name, revision, endpoint):
            return file
    raise ModelFileError(Path(name), "not_published", version)


class VerifiedFiles:
    """Remembers which files of a folder had the published hash, by size and time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = read_object(folder / VERIFIED_FILE)  # if it is damaged, everything is verified again

    def is_unchanged(self, name: str) -> bool:
        return (self.folder / name).is_file() and self.files.get(name) == self._size_and_time(name)

    def add(self, files: Iterable[HubFile]) -> None:
        self.files |= {file.name: self._size_and_time(file.name) for file in files}
        write_document(self.folder / VERIFIED_FILE, self.files)

    def _size_and_time(self, name: str) -> list[object]:
        path = self.folder / name
        # the tensors have checksums, which are compared when they are read
        return [*file_version(path), "" if path.suffix == ".pth" else hash_once(path)]


def _custom_folder(path: Path, version: str, source: ModelSource) -> Path:
    """Return a folder for a custom model; what it lacks comes from a published version."""
    files = find_files(path)
    if path.is_dir() and (lacking := [name for name in REQUIRED_FILES if name not in files]):
        raise ModelFileError(path, "lacks", ", ".join(lacking))
    folder = files[MODEL_FILE].parent
    missing = [name for name in HUB_FILES if name not in files]
    if missing or files[MODEL_FILE].name != MODEL_FILE:
        base = _version_folder(version, missing, source)
        files |= {name: base / name for name in missing}
        key = hash_text(f"{path.resolve()} {version}", 6)
        folder = link_files(source.models / f"custom-{key}", files)
    require_match(match_gpt(folder), path)
    require_vocoder(read_state_dict(folder / MODEL_FILE), path)
    return folder


def find_files(path: Path) -> dict[str, Path]:
    """Return the files of a model, given its folder or its weights, by their usual names."""
    folder = path if path.is_dir() else path.parent
    candidates = [path] if path.is_file() else [folder / name for name in MODEL_FILE_NAMES]
    model = next((candidate for candidate in candidates if candidate.is_file()), None)
    if model is None:
        raise ModelFileError(path, "lacks", MODEL_FILE)
    return {MODEL_FILE: model, **{name: folder / name for name in OTHER_FILES if (folder / name).is_file()}}


def link_files(folder: Path, files: Mapping[str, Path]) -> Path:
    """Make a folder of links to the files of a model, under their usual names."""
    make_folder(folder)
    with file_lock(folder.with_name(f".{folder.name}.lock")):
        for name in (MODEL_FILE, *OTHER_FILES):
            if name in files:
                symlink_or_copy(files[name], folder / name)
            else:
                (folder / name).unlink(missing_ok=True)
    return folder
