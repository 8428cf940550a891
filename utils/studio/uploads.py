"""The inputs of a project: files that were uploaded into it, and paths, URLs and hub names that were entered.

The list of inputs is a file in the project, so every tab and browser sees the same one. Folders of the project itself
are relative to it, so a copied project reads its own recordings.
"""

import importlib.util
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from utils.config import SEPARATOR
from utils.core.addresses import is_url
from utils.core.errors import AmharicTtsError, FileDamagedError, PathMissingError
from utils.core.fields import Fields, field_values
from utils.core.folders import hash_file
from utils.core.languages import AMHARIC
from utils.core.paths import expand_home, resolve_inside
from utils.core.storage import (
    cached_while_unchanged,
    file_lock,
    link_or_copy_atomically,
    make_folder,
    read_document,
    read_text,
    storage_errors,
    write_document,
)
from utils.core.wording import describe
from utils.dataset import voice_recordings
from utils.dataset.clip import ScanResult
from utils.dataset.readers import subtitle_files, transcripts
from utils.dataset.readers.facts import AudioWithoutText, LayoutFound, NotOnDisk
from utils.dataset.readers.folder import Folder, has_text, is_archive, is_media
from utils.dataset.readers.registry import find_files
from utils.dataset.readers.transcripts import SUFFIXES as TRANSCRIPTS
from utils.dataset.sources import counterparts, find_recordings, is_corpus, is_subtitle, is_transcript
from utils.dataset.subtitles import SUFFIXES as SUBTITLES
from utils.dataset.subtitles import read_cues
from utils.dataset.text_files import count_letters, decode
from utils.media import audio
from utils.studio.facts import InputError
from utils.studio.paths import RECORDINGS, Project

INPUTS = "inputs.json"
EARLIER_INPUTS = "places.txt"  # of version 1.1, one in a line, unsigned
UPLOADS = "uploads"
LISTS = "lists"
TAKES = voice_recordings.FOLDER
MAX_FILES = 20_000  # shown in a preview
MAX_SIZE = 20 << 30  # bytes of one file; it may also fill at most half of the free space
SAMPLE = 8192  # bytes of a text, to judge its script
ENOUGH_LETTERS = 5  # to judge it by


class MediaPair(NamedTuple):
    """A media file and where its text comes from."""

    media: Path
    subtitles: tuple[Path, ...]  # the best one in the language of the dataset is used
    has_transcript: bool  # there is a text file for it


class InputPreview(NamedTuple):
    """What an input holds."""

    pairs: tuple[MediaPair, ...] = ()
    unmatched: tuple[Path, ...] = ()  # subtitle files without a media file
    clips: int = 0  # of an existing dataset
    problems: tuple[str, ...] = ()  # what cannot be used
    is_remote: bool = False  # has to be downloaded first
    has_tables: bool = False  # a dataset whose clips are inside tables, which are not read for a preview


class UploadResult(NamedTuple):
    """The names of the files that were saved, and an error for each of the others."""

    names: tuple[str, ...]
    errors: tuple[AmharicTtsError, ...]


def uploads_folder(project: Project, kind: str) -> Path:
    return project.recordings / kind


def read_inputs(project: Project) -> list[str]:
    """Return the inputs as entered."""
    path = project.recordings / INPUTS
    earlier = project.recordings / EARLIER_INPUTS
    if not path.is_file():
        return list(filter(None, read_text(earlier).splitlines())) if earlier.is_file() else []
    try:
        inputs = read_document(path, may_lack_digest=False)
    except ValueError as error:
        raise FileDamagedError(path) from error
    if not isinstance(inputs, list) or not all(isinstance(each, str) for each in inputs):
        raise FileDamagedError(path)
    return inputs


def split_inputs(text: str) -> list[str]:
    """Split a text at | and line breaks, each input once."""
    parts = (part.strip() for line in text.splitlines() for part in line.split(SEPARATOR))
    return list(dict.fromkeys(part for part in parts if part))


def add_input(project: Project, text: str) -> None:
    """Add inputs that are not there yet."""
    _update(project, lambda current: list(dict.fromkeys([*current, *split_inputs(text)])))


def remove_input(project: Project, name: str) -> None:
    _update(project, lambda current: [other for other in current if other != name])


def _update(project: Project, change: Callable[[list[str]], list[str]]) -> None:
    """Change the list under a lock; if nothing changes, no file is written."""
    current = read_inputs(project)
    if change(current) == current:
        return
    folder = project.recordings
    make_folder(folder)
    with file_lock(folder / ".lock"):
        write_document(folder / INPUTS, change(read_inputs(project)))


def project_input(kind: str) -> str:
    """Return the input that names a folder of the project itself."""
    return f"{RECORDINGS}/{kind}"


def absolute_input(project: Project, name: str) -> str:
    """Return an input that does not depend on the current folder."""
    if is_remote(name):
        return name
    if name in {project_input(UPLOADS), project_input(LISTS), project_input(TAKES)}:
        return str((project.dataset / name).resolve())
    return str(expand_home(name).resolve())


def is_remote(name: str) -> bool:
    return is_url(name) or is_corpus(name)


def kind_of(name: str) -> str:
    """Return how an input is interpreted: as a link, recording, subtitles, list of clips, folder or text."""
    path = expand_home(name)
    if is_remote(name):
        return "link"
    if is_media(path):
        return "recording"
    if is_subtitle(path):
        return "subtitles"
    if path.is_dir():
        return "folder"
    return "list" if is_list(path) else "text"


def is_list(path: Path) -> bool:
    """Return whether a file is a list, an archive or another text that is read with the files beside it."""
    may_be_list = path.is_file() and (has_text(path, path) or is_archive(path))
    return may_be_list and not is_subtitle(path) and not is_transcript(path)


def can_download() -> bool:
    """Return whether the package that downloads from web addresses is installed."""
    return importlib.util.find_spec("yt_dlp") is not None


def save_uploads(project: Project, paths: Sequence[str], kind: str = UPLOADS) -> UploadResult:
    """Save uploads in the project and add their folder to the inputs."""
    folder = uploads_folder(project, kind)
    make_folder(folder)
    names = []
    errors = []
    for path in map(Path, paths):
        try:
            check_upload(path, kind)
            names.append(_save_file(path, folder).name)
        except AmharicTtsError as error:
            _name_only(error, path)
            errors.append(error)
    if kind == LISTS and not any(is_media(Path(name)) for name in names):
        refused = {name: problem for name in names if (problem := _list_problem(folder / name))}
        remove_uploads(project, refused, kind)
        errors += refused.values()
        names = [name for name in names if name not in refused]
    if names:
        add_input(project, project_input(kind))
    return UploadResult(tuple(names), tuple(errors))


def _name_only(error: AmharicTtsError, path: Path) -> None:
    """Leave gradio's temporary folder out of an error about a file in it."""
    for name, value in field_values(error).items():
        if str(value) == str(path):
            setattr(error, name, path.name)
    error.args = tuple(str(value).replace(str(path), path.name) for value in error.args)


def check_upload(path: Path, kind: str) -> None:
    """Refuse a file that cannot be used."""
    if not path.stat().st_size:
        raise InputError("empty_file", path.name)
    if is_media(path):
        audio.probe(path)
    elif is_subtitle(path):
        read_cues(path)
    elif is_list(path):
        if kind != LISTS and not is_archive(path):
            raise InputError("list_alone", path.name)
    elif not is_transcript(path):
        raise InputError("not_media", path.name)


def _list_problem(path: Path) -> AmharicTtsError | None:
    """Return why a list cannot be used: it cannot be read, or has no audio beside it and brings none."""
    try:
        found = preview(str(path))
    except AmharicTtsError as error:
        return error
    return None if found.clips or found.has_tables else InputError("list_alone", path.name)


def list_uploads(project: Project, kind: str = UPLOADS) -> list[Path]:
    return sorted(path for path in uploads_folder(project, kind).glob("[!.]*") if path.is_file())


def remove_uploads(project: Project, names: Iterable[str], kind: str = UPLOADS) -> None:
    """Remove uploaded files; clips made from them stay."""
    folder = uploads_folder(project, kind)
    for name in names:
        path = resolve_inside(folder, name)
        with storage_errors(path):
            path.unlink(missing_ok=True)
    if not list_uploads(project, kind):
        remove_input(project, project_input(kind))


# From the kind of input that is quickest to look at to the slowest.
def preview(name: str, *, spoken: str = AMHARIC.code) -> InputPreview:
    """Look at an input without decoding any audio."""
    if is_remote(name):
        if is_url(name) and not can_download():
            raise InputError("no_package", "yt-dlp")
        return InputPreview(is_remote=True)
    path = expand_home(name)
    if SEPARATOR in name:
        raise InputError("separator_in_name", name)
    if not path.exists():
        raise PathMissingError(name)
    if path.is_file() and (is_media(path) or is_subtitle(path) or is_transcript(path)):
        siblings = sorted(other for other in path.parent.iterdir() if other.is_file())
        return pair_files([path, *counterparts(path, siblings)])
    return _preview_dataset(name, spoken)


def _preview_dataset(name: str, spoken: str) -> InputPreview:
    """Read a folder or a list as a preparation would."""
    path = expand_home(name)
    scan = find_recordings([path], language=spoken)
    layouts = {note.layout for note in scan.notes if isinstance(note, LayoutFound)}
    # in archives or tables, which are unpacked when the input is prepared
    is_packed = any(isinstance(problem.reason, NotOnDisk) for problem in scan.problems)
    if layouts <= {subtitle_files.NAME, transcripts.NAME} and path.is_dir() and not is_packed:
        content = pair_files(list(find_files(path, None, []))[:MAX_FILES])
        if not content.pairs:
            raise InputError("no_media", name)
        return content
    clips = sum(bool(recording.text or recording.cues) for recording in scan.recordings)
    return InputPreview(clips=clips, problems=tuple(_problems(scan)), has_tables=is_packed)


def _problems(scan: ScanResult) -> Iterator[str]:
    for note in scan.notes:
        if not isinstance(note, LayoutFound | AudioWithoutText):
            yield describe(note)
    for problem in scan.problems:
        if not isinstance(problem.reason, NotOnDisk):
            reason = problem.reason
            said = describe(reason) if isinstance(reason, Fields) else reason
            yield f"{problem.path.name}: {said}"


def max_size(folder: Path) -> int:
    """Return the bytes that an uploaded file may have."""
    return min(MAX_SIZE, shutil.disk_usage(folder).free // 2)


def ethiopic_share(project: Project) -> float | None:
    """Return the share of Ethiopic letters in the beginnings of the uploaded texts; None with hardly any."""
    found = [_count_letters(path) for kind in (UPLOADS, LISTS) for path in list_uploads(project, kind)]
    total = sum(letters for letters, _ in found)
    return sum(ethiopic for _, ethiopic in found) / total if total >= ENOUGH_LETTERS else None


@cached_while_unchanged(1024)
def _count_letters(path: Path) -> tuple[int, int]:
    """Return how many letters the beginning of a text has, and how many of them are Ethiopic."""
    if is_media(path) or is_archive(path):
        return 0, 0
    with storage_errors(path), path.open("rb") as file:
        return count_letters(decode(file.read(SAMPLE)))


def pair_files(files: Iterable[Path]) -> InputPreview:
    """Pair media and subtitles as a preparation does."""
    folder = Folder({path: path for path in files})
    subtitles, texts = (
        {path: folder.partners(path, *suffixes)[0] for path in folder.texts_with(*suffixes)}
        for suffixes in (SUBTITLES, TRANSCRIPTS)
    )
    with_text = {audio for media in texts.values() for audio in media}
    pairs = [
        MediaPair(path, tuple(text for text, media in subtitles.items() if path in media), path in with_text)
        for path in folder.media
    ]
    return InputPreview(tuple(pairs), tuple(path for path, media in subtitles.items() if not media))


@cached_while_unchanged(1024)
def length_of(path: Path) -> float:
    """Return the seconds of a media file from its header; 0 when it cannot be read."""
    try:
        return audio.probe(path).seconds
    except AmharicTtsError:
        return 0.0


@cached_while_unchanged(1024)
def count_lines(path: Path) -> int:
    """Return the number of lines of a subtitle file; 0 when it cannot be read."""
    try:
        return len(read_cues(path)[0])
    except AmharicTtsError:
        return 0


def _save_file(path: Path, folder: Path) -> Path:
    """Store a file under its name, or under the next free one; the same file is stored once."""
    with file_lock(folder / ".lock"):
        target = resolve_inside(folder, path.name)
        number = 2
        while target.exists():
            if path.stat().st_size == target.stat().st_size and hash_file(path) == hash_file(target):
                return target
            target = resolve_inside(folder, f"{path.stem}-{number}{path.suffix}")
            number += 1
        link_or_copy_atomically(path, target)
    return target
