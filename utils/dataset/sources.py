"""Find recordings in files, folders, URLs, archives, existing datasets and hub datasets, with their text.

The files of all inputs are read together by the readers. What cannot be used becomes a ``Bad``; the other inputs are
still read.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from utils.core import integrations
from utils.core.addresses import is_url
from utils.core.errors import AmharicTtsError, FileDamagedError
from utils.core.languages import canonical
from utils.core.storage import read_document
from utils.dataset.clip import ScanResult
from utils.dataset.errors import NothingFoundError
from utils.dataset.facts import Bad
from utils.dataset.readers.columns import parse_columns
from utils.dataset.readers.facts import InputUnusable, NotOnDisk
from utils.dataset.readers.folder import Folder, has_text, is_archive, is_media, possible_names
from utils.dataset.readers.registry import add_files, find_files, find_in_archive, has_sound, may_have_sound, read_files
from utils.dataset.readers.transcripts import SUFFIXES as TRANSCRIPTS
from utils.dataset.subtitles import SUFFIXES as SUBTITLES
from utils.dataset.text_files import name_key
from utils.media.facts import AudioFileError

HUB = "hf:"
CORPUS = "corpus:"
USED_CORPORA = "corpora.json"  # in the dataset folder: what a model card has to name


class Access(NamedTuple):
    """What a site may need besides its address."""

    cookies: str = ""  # file in the format of Netscape, as browsers export it
    proxy: str = ""


DIRECT = Access()


def find_recordings(  # noqa: PLR0913  # the inputs, and all that says how to read them
    inputs: Sequence[Path | str],
    *,
    language: str,
    speaker: str = "speaker",
    workspace: Path | None = None,
    on_progress: Callable[[str, float], None] = lambda _name, _share: None,
    access: Access = DIRECT,
    hours: float = 0.0,
    columns: str = "",
) -> ScanResult:
    """Find all recordings in the inputs, with their text where it is known.

    Hub names are ``hf:owner/name`` or ``hf:owner/name:configuration``, corpora ``corpus:fleurs``; of each, this many
    hours are read. Subtitles in other languages than the spoken one are ignored. Downloaded and unpacked files go into
    ``workspace``; without one, such inputs are refused. ``on_progress`` is called with the name of a download and the
    share that has arrived. ``columns`` names the columns of lists, as in ``audio=Datei,text=Satz``.
    """
    scan = _Scan(canonical(language), speaker, workspace, on_progress, access, hours, parse_columns(columns))
    for name in dict.fromkeys(map(str, inputs)):
        try:
            scan.add(name)
        except AmharicTtsError as error:
            scan.problems.append(Bad(Path(name), error))
    return scan.result()


def require_any(names: Sequence[str]) -> None:
    """Refuse inputs that surely hold no recording, which is known without reading a file."""
    problems = tuple(Bad(Path(name), InputUnusable(fault)) for name in names if (fault := _fault(name)))
    if len(problems) == len(names):
        raise NothingFoundError(problems[:5])


def _fault(name: str) -> Literal["missing", "empty"] | None:
    path = Path(name)
    if is_url(name) or is_corpus(name):
        return None
    if not os.path.exists(path):  # noqa: PTH110  # unlike that of Path, not an error below a folder that is closed
        return "missing"
    return "empty" if path.is_dir() and not may_have_sound(path) else None


def is_corpus(name: str) -> bool:
    return name.startswith((HUB, CORPUS))


def used_corpora(dataset: Path) -> dict[str, list[str]]:
    """Return title, size, licence and note of the corpora in a dataset, by their source."""
    path = dataset / USED_CORPORA
    try:
        used = read_document(path) if path.is_file() else {}
    except ValueError as error:
        raise FileDamagedError(path) from error
    if not isinstance(used, dict) or not all(isinstance(about, list) for about in used.values()):
        raise FileDamagedError(path)
    return {source: list(map(str, about)) for source, about in used.items()}


def is_subtitle(path: Path) -> bool:
    return path.suffix.lower() in SUBTITLES


def is_transcript(path: Path) -> bool:
    return path.suffix.lower() in TRANSCRIPTS


def counterparts(path: Path, siblings: Sequence[Path]) -> list[Path]:
    """Return the texts of a media file, or the media files of a text, among the files of its folder."""
    if is_media(path):
        texts = [other for other in siblings if not is_media(other) and has_text(other, other)]
        return [other for other in texts if _belong(other, path)]
    return [other for other in siblings if is_media(other) and _belong(path, other)]


def _belong(text: Path, media: Path) -> bool:
    return any(name in {name_key(media.stem), name_key(media.name)} for name, _ in possible_names(text))


@dataclass
class _Scan:
    language: str
    speaker: str
    workspace: Path | None
    on_progress: Callable[[str, float], None]
    access: Access
    hours: float
    columns: Mapping[str, str]
    files: dict[Path, Path] = field(default_factory=dict)  # by their places
    nearby: dict[Path, Path] = field(default_factory=dict)  # that a list which is an input may name
    others: list[Path] = field(default_factory=list)  # recordings whatever their suffix: the decoder decides
    datasets: list[ScanResult] = field(default_factory=list)
    problems: list[Bad] = field(default_factory=list)
    siblings: dict[Path, list[Path]] = field(default_factory=dict)

    def add(self, name: str) -> None:
        path = Path(name)
        if is_url(name) or is_corpus(name):
            self._add_remote(name, path)
        elif path.is_dir():
            self._add_folder(path)
        elif not path.exists():
            self.problems.append(Bad(path, InputUnusable("missing")))
        elif not path.is_file():
            self.problems.append(Bad(path, AudioFileError(path, "pipe")))
        else:
            self._add_file(path.absolute())  # with the links in it, unlike resolve

    def result(self) -> ScanResult:
        """Read all files together, because the text of a recording may be another input."""
        real = {place: file.resolve() if file.is_symlink() else file for place, file in self.files.items()}
        first = {file: place for place, file in reversed(real.items())}  # of links and other ways to one file
        files = {place: file for place, file in self.files.items() if first[real[place]] == place}
        folder = Folder(files, self.nearby, language=self.language, workspace=self.workspace, columns=self.columns)
        for path in self.others:
            folder.add_media(path)
        found = [read_files(folder, self.speaker)] if files else []
        return ScanResult.joined([*self.datasets, ScanResult((), tuple(self.problems)), *found])

    def _add_remote(self, name: str, path: Path) -> None:
        if self.workspace is None:
            self.problems.append(Bad(path, NotOnDisk()))
        elif is_url(name):
            files = integrations.require("read_page")(
                name, self.workspace, language=self.language, on_progress=self.on_progress, access=self.access
            )
            self.problems += [Bad(path, warning) for warning in files.warnings]
            add_files(self.files, map(Path.absolute, [*files.media, *files.subtitles]), self.problems)
        else:
            read = integrations.require("read_corpus")
            self.datasets.append(
                read(name, self.workspace, speaker=self.speaker, hours=self.hours, on_progress=self.on_progress)
            )

    def _add_folder(self, root: Path) -> None:
        before = len(self.problems)
        found = find_files(root.absolute(), self.workspace, self.problems)
        self.files |= found
        if not has_sound(found) and before == len(self.problems):
            self.problems.append(Bad(root, InputUnusable("empty")))

    def _add_file(self, path: Path) -> None:
        if is_archive(path):
            self.files |= find_in_archive(path, path.resolve(), self.workspace, self.problems)
            return
        beside = self._siblings(path.parent)
        is_text = not is_media(path) and has_text(path, path)
        if not is_media(path) and not is_text:
            self.others.append(path)
        add_files(self.files, [path], self.problems)
        if is_subtitle(path) or is_media(path):
            add_files(self.files, counterparts(path, beside), self.problems)
        elif is_text and not is_transcript(path):
            self.nearby |= find_files(path.parent, None, [])
        elif is_text:
            add_files(self.nearby, filter(is_media, beside), [])

    def _siblings(self, folder: Path) -> list[Path]:
        if folder not in self.siblings:
            self.siblings[folder] = sorted(path for path in folder.iterdir() if path.is_file())
        return self.siblings[folder]
