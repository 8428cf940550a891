"""The model that a training starts from: published, small and made up, or one's own.

Whatever it is, the answer is a folder in the hub's layout whose files are whole and belong together.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.core.folders import require_space, symlink_or_copy
from utils.core.paths import LICENCE_CONSENT, MODELS, TINY_MODEL
from utils.core.storage import file_lock, make_folder, read_json, write_atomically
from utils.xtts import random_model
from utils.xtts.files import (
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
    TINY_RANDOM,
    ModelFileError,
    looks_complete,
)
from utils.xtts.hub import HubFile, UnreachableError, download, file_info
from utils.xtts.licence import require_licence
from utils.xtts.model import match_gpt, require_vocoder
from utils.xtts.state_dict import read_state_dict, require_match

ADDED_LATER = (DVAE_FILE, MEL_FILE, SPEAKERS_FILE)  # older versions go with those of the newest
NEWEST = "main"
VERIFIED = "verified.json"
BELONGS = "Put the file there that was saved together with the model."


@dataclass(frozen=True)
class DownloadProgress:
    """How far a download is.

    Attributes:
        part: The file that is being fetched.
        done: Bytes of all files that are there.
        total: Bytes of all files.
    """

    part: str
    done: int
    total: int


@dataclass(frozen=True)
class ModelSource:
    """Where published models come from and are kept.

    Attributes:
        models: Folder that holds one folder a version.
        consent: File that holds the consent to the licence.
        endpoint: Address of the hub; None: the one of HF_ENDPOINT, or the public one.
        on_step: Is told how far a download is.
    """

    models: Path = MODELS
    consent: Path = LICENCE_CONSENT
    endpoint: str | None = None
    on_step: Callable[[DownloadProgress], object] = lambda _: None


def base_folder(version: str, custom_model: str = "", source: ModelSource | None = None) -> Path:
    """Return the folder of the model to start from; what is missing of it is fetched, made or found.

    Args:
        version: A published version, tiny or tiny-random. For a custom model, where its missing parts come from.
        custom_model: A folder or .pth to start from instead.
        source: Where published models come from.
    """
    source = source or ModelSource()
    if custom_model.strip():
        return _custom(Path(custom_model.strip()).expanduser(), version, source)
    return _version(version, HUB_FILES, source)


def _version(version: str, names: Sequence[str], source: ModelSource) -> Path:
    """Return the folder of a version that holds these files at least."""
    folder = source.models / version
    if version == TINY:
        return TINY_MODEL
    if version == TINY_RANDOM:
        return random_model.build(folder)
    make_folder(folder)
    with file_lock(source.models / f".{version}.lock"):
        known = Verified(folder)
        if unsure := [name for name in names if not known.unchanged(name)]:
            _complete(known, version, unsure, source)
    return folder


def _complete(known: "Verified", version: str, names: Sequence[str], source: ModelSource) -> None:
    """Check files against the hub, and fetch those that are not what it has.

    Without a connection, files that somebody put there are taken when they look whole.
    """
    folder, whole = known.folder, all(looks_complete(known.folder / name) for name in names)
    if not whole:
        require_licence(source.consent)
    try:
        found = [_look_up(name, version, source.endpoint) for name in names]
    except UnreachableError as error:
        if whole:
            return
        cure = f"Connect to the internet, or put {', '.join(sorted(names))} into {folder}."
        raise UnreachableError(error.message, hint=cure) from error
    wanted = [file for file in found if not file.is_intact(folder / file.name)]
    known.remember(file for file in found if file not in wanted)
    if wanted:
        require_licence(source.consent)
        require_space(folder / wanted[0].name, sum(file.size for file in wanted))
    for index, file in enumerate(wanted):
        download(file, folder, _Progress(wanted, index, source.on_step))
        known.remember([file])


def _look_up(name: str, version: str, endpoint: str | None) -> HubFile:
    for revision in [version, NEWEST] if name in ADDED_LATER else [version]:
        if found := file_info(name, revision, endpoint):
            return found
    raise ModelFileError(f"The hub has no {name} for {version}.", hint="Choose another version.")


class _Progress:
    """Adds the bytes of one file to those of the files before it."""

    def __init__(self, files: Sequence[HubFile], index: int, on_step: Callable[[DownloadProgress], object]) -> None:
        self.name, self.on_step = files[index].name, on_step
        self.before, self.total = sum(file.size for file in files[:index]), sum(file.size for file in files)

    def __call__(self, done: int) -> None:
        self.on_step(DownloadProgress(self.name, self.before + done, self.total))


class Verified:
    """Which files of a folder had the published hash, and what they looked like then.

    Args:
        folder: The folder, which holds this list too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.files: dict[str, list[object]] = dict(read_json(folder / VERIFIED))
        except (OSError, ValueError, TypeError):  # then everything is checked again
            self.files = {}

    def unchanged(self, name: str) -> bool:
        """Tell whether a file has not been touched since it was verified."""
        path = self.folder / name
        return path.is_file() and self.files.get(name) == _look(path)

    def remember(self, files: Iterable[HubFile]) -> None:
        """Write down how verified files look."""
        self.files |= {file.name: _look(self.folder / file.name) for file in files}
        write_atomically(self.folder / VERIFIED, json.dumps(self.files, indent=2))


def _look(path: Path) -> list[object]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def _custom(path: Path, version: str, source: ModelSource) -> Path:
    """Return a folder for somebody's own model; what it lacks comes from a published version."""
    found = _own_files(path)
    folder = found[MODEL_FILE].parent
    borrowed = [name for name in HUB_FILES if name not in found]
    if borrowed or found[MODEL_FILE].name != MODEL_FILE:
        base = _version(version, borrowed, source)
        key = hashlib.blake2b(f"{path.resolve()} {version}".encode(), digest_size=6).hexdigest()
        folder = source.models / f"custom-{key}"
        _gather(folder, {name: base / name for name in borrowed} | found)
    _check(folder, path)
    return folder


def _own_files(path: Path) -> dict[str, Path]:
    """Map the names of the hub to what somebody's model has of them."""
    folder = path if path.is_dir() else path.parent
    model = (
        path
        if path.is_file()
        else next((folder / name for name in MODEL_FILE_NAMES if (folder / name).is_file()), None)
    )
    if model is None:
        raise ModelFileError(f"{path} holds no {MODEL_FILE}.", hint="Give the folder or the .pth of an XTTS v2 model.")
    if path.is_dir() and (lacking := [name for name in REQUIRED_FILES if not (folder / name).is_file()]):
        raise ModelFileError(f"{path} holds no {' and no '.join(lacking)}.", hint=BELONGS)
    beside = {
        name: folder / name for name in (*HUB_FILES[1:], SETTINGS_FILE, REFERENCE_FILE) if (folder / name).is_file()
    }
    return {MODEL_FILE: model, **beside}


def _gather(folder: Path, files: Mapping[str, Path]) -> None:
    """Bring files from several places together, without copying where the system allows it."""
    make_folder(folder)
    with file_lock(folder.parent / f".{folder.name}.lock"):
        for name in (*HUB_FILES, SETTINGS_FILE, REFERENCE_FILE):
            if name in files:
                symlink_or_copy(files[name], folder / name)
            else:
                (folder / name).unlink(missing_ok=True)


def _check(folder: Path, path: Path) -> None:
    """Refuse a model whose weights are not those of its config, or which cannot speak."""
    require_match(match_gpt(folder), str(path))
    require_vocoder(read_state_dict(folder / MODEL_FILE), path)
