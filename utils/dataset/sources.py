"""Find recordings in files, folders, URLs, existing datasets and hub datasets, with their subtitles or transcripts.

Subtitles belong to a recording by name, without suffix and language. What cannot be used becomes a ``Bad``; the
other inputs are still read.
"""

import contextlib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from utils.core.addresses import is_url
from utils.core.errors import AmharicTtsError, AudioError, DataError, UnknownLanguageError
from utils.core.languages import canonical
from utils.dataset.clip import Recording, ScanResult, abbreviate, said
from utils.dataset.corpora import CORPUS, HUB, read_corpus
from utils.dataset.download import DIRECT, Access, download
from utils.dataset.existing_datasets import is_dataset, read_dataset
from utils.dataset.facts import Bad
from utils.dataset.subtitles import SUFFIXES, fit_to_recording, read_cues
from utils.dataset.text_files import is_garbled, name_key, read_any_encoding
from utils.media import audio
from utils.recognition.spans import Cue

MEDIA = frozenset(
    f".{suffix}"
    for suffix in (
        "wav wave mp3 flac ogg oga opus m4a m4b aac wma aif aiff aifc caf amr ac3 eac3 ape wv mka mp2 au snd spx tta "
        "mp4 m4v mkv webm mov avi wmv flv mpg mpeg ts m2ts mts 3gp 3g2 ogv vob mxf"
    ).split()
)
TRANSCRIPTS = (".txt", ".lab")  # the text of a whole recording
ABOUT = re.compile(r"(?i)(?:readme|licen[cs]e|notice|credits)")  # text files that are no transcript
KIND = re.compile(r"(?i)[._-](?:forced|sdh|cc|default|auto|subs?|subtitles?|captions?)$")
LANGUAGE = re.compile(r"(.+)[._-]([A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*|[A-Za-z]{4,12})")
PREFERRED = (".srt", ".vtt", ".ass", ".ssa")
NOT_A_FILE = "This is a pipe or a device, not a file."  # a pipe waits for a writer, a device may never end
MIN_LETTERS = 20  # in a subtitle file, to judge its script


class SubtitleFile(NamedTuple):
    """A subtitle file and the language in its name; empty if it names none."""

    path: Path
    language: str = ""


def find_recordings(
    inputs: Sequence[Path | str],
    *,
    language: str,
    speaker: str = "speaker",
    workspace: Path | None = None,
    on_progress: Callable[[str, float], None] = lambda _name, _share: None,
    access: Access = DIRECT,
    hours: float = 0.0,
) -> ScanResult:
    """Find all recordings in the inputs, with their text where it is known.

    Hub names are ``hf:owner/name`` or ``hf:owner/name:configuration``, corpora ``corpus:fleurs``; of each, this many
    hours are read. Subtitles in other languages than the spoken one are ignored. Downloaded and unpacked files go into
    ``workspace``; without one, such inputs are refused. ``on_progress`` is called with the name of a download and the
    share that has arrived.
    """
    scan = _Scan(canonical(language), speaker, workspace, on_progress, access, hours)
    for name in dict.fromkeys(map(str, inputs)):
        try:
            scan.add(name)
        except AmharicTtsError as error:
            scan.problems.append(Bad(Path(name), error))
    return scan.result()


def is_media(path: Path) -> bool:
    return path.suffix.lower() in MEDIA


def is_subtitle(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def is_transcript(path: Path) -> bool:
    return path.suffix.lower() in TRANSCRIPTS and not ABOUT.match(path.name)


def transcript_of(path: Path, media: Sized, texts: Iterable[Path]) -> Path | None:
    """Return the text file of a recording: that of its name, or the only one if there is only one recording."""
    for named in map(path.with_suffix, TRANSCRIPTS):
        if named.is_file():
            return named
    texts = list(texts) if len(media) == 1 else []
    return texts[0] if len(texts) == 1 else None


def counterparts(path: Path) -> list[Path]:
    """Return the subtitle files of a media file, or the media files of a subtitle file, in its folder."""
    siblings = [other for other in path.parent.iterdir() if other.is_file()]
    if is_subtitle(path):
        names = {name for name, _ in _possible_names(path)}
        return [other for other in siblings if is_media(other) and name_key(other.stem) in names]
    keys = {name_key(path.stem), name_key(path.name)}
    subtitles = (other for other in siblings if is_subtitle(other))
    return [other for other in subtitles if keys & {name for name, _ in _possible_names(other)}]


def pair(media: Iterable[Path], subtitles: Iterable[Path]) -> tuple[dict[Path, list[SubtitleFile]], list[Path]]:
    """Find the recording of each subtitle file: in its folder, or the only one of that name elsewhere.

    One recording and one subtitle file belong together whatever their names. The second list is of those without one.
    """
    media, subtitles = list(media), list(subtitles)
    by_folder: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    by_name: dict[str, list[Path]] = defaultdict(list)
    for path in media:
        for name in {name_key(path.stem), name_key(path.name)}:
            by_folder[path.parent, name].append(path)
            by_name[name].append(path)
    pairs: dict[Path, list[SubtitleFile]] = defaultdict(list)
    unmatched = []
    for path in subtitles:
        names = list(_possible_names(path))
        matches = [(files, code) for name, code in names if (files := by_folder.get((path.parent, name)))]
        matches += [(files, code) for name, code in names if len(files := by_name.get(name, [])) == 1]
        if not matches:
            unmatched.append(path)
            continue
        files, language = matches[0]
        for file in files:
            pairs[file].append(SubtitleFile(path, language))
    if len(media) == len(subtitles) == len(unmatched) == 1:
        return {media[0]: [SubtitleFile(unmatched[0])]}, []
    return dict(pairs), unmatched


def _possible_names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names that the recording of a subtitle file may have, each with the language left over."""
    plain = KIND.sub("", path.stem)
    for stem in dict.fromkeys((path.stem, plain)):
        yield name_key(stem), ""
    if match := LANGUAGE.fullmatch(plain):
        try:
            yield name_key(KIND.sub("", match[1])), canonical(match[2])
        except UnknownLanguageError:
            return


@dataclass
class _Scan:
    language: str
    speaker: str
    workspace: Path | None
    on_progress: Callable[[str, float], None]
    access: Access
    hours: float
    media: dict[Path, None] = field(default_factory=dict)  # in order, each once
    subtitles: dict[Path, None] = field(default_factory=dict)
    texts: dict[Path, None] = field(default_factory=dict)  # of whole recordings
    given: set[Path] = field(default_factory=set)  # those that are inputs themselves
    datasets: list[ScanResult] = field(default_factory=list)
    problems: list[Bad] = field(default_factory=list)

    def add(self, name: str) -> None:
        path = Path(name)
        if is_url(name):
            more: dict[str, Any] = {"on_progress": self.on_progress, "access": self.access}
            files = download(name, self._workspace(name), language=self.language, **more)
            self.problems += [Bad(path, warning) for warning in files.warnings]
            self.media.update(dict.fromkeys(file.resolve() for file in files.media))
            self._add_files(files.subtitles)
        elif name.startswith((HUB, CORPUS)):
            options: dict[str, Any] = {"speaker": self.speaker, "hours": self.hours, "on_progress": self.on_progress}
            self.datasets.append(read_corpus(name, self._workspace(name), **options))
        elif path.is_dir():
            self._add_folder(path)
        elif not path.exists():
            self.problems.append(Bad(path, "No such file or folder. Check the spelling."))
        elif not path.is_file():
            self.problems.append(Bad(path, NOT_A_FILE))
        elif is_dataset(path):
            self._add_dataset(path)
        else:
            if is_transcript(path):
                self.given.add(path.resolve())
            elif not is_subtitle(path):
                self.media[path.resolve()] = None  # whatever its suffix: the decoder decides
            self._add_files([path, *counterparts(path)])

    def result(self) -> ScanResult:
        """Pair media and subtitles."""
        pairs, unmatched = pair(self.media, self.subtitles)
        unmatched += self.given - {transcript_of(path, self.media, self.texts) for path in self.media}
        recordings = [self._recording(path, pairs.get(path, [])) for path in self.media]
        message = "No recording has this name. Give both files the same name, such as talk.mp4 and talk.am.srt."
        self.problems += [Bad(path, message) for path in unmatched]
        listed = {recording.path for part in self.datasets for recording in part.recordings}
        others = tuple(recording for recording in recordings if recording.path not in listed)
        return ScanResult.joined([*self.datasets, ScanResult(others, tuple(self.problems))])

    def _workspace(self, name: str) -> Path:
        if self.workspace is None:
            raise DataError(f"{name} must be downloaded, but no folder for it was given.")
        return self.workspace

    def _add_folder(self, root: Path) -> None:
        before = len(self.media) + len(self.datasets)
        unreadable: list[OSError] = []
        for walked, folders, names in os.walk(root, onerror=unreadable.append):
            folder = Path(walked)
            if is_dataset(folder):
                self._add_dataset(folder)
                folders.clear()  # the lists name everything that belongs to it
                continue
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            files = [folder / name for name in names if not name.startswith(".")]
            self._add_files(files)
            if folder != root and is_media(folder) and not folders and not any(map(is_media, files)):
                message = "This is a folder without audio, although it is named like a recording."
                self.problems.append(Bad(folder, message))
        for error in unreadable:
            message = f"The folder cannot be read ({error.strerror}). Check its permissions."
            self.problems.append(Bad(Path(str(error.filename)), message))
        if before == len(self.media) + len(self.datasets):
            self.problems.append(Bad(root, "No audio, video or dataset found."))

    def _add_dataset(self, path: Path) -> None:
        try:
            self.datasets.append(read_dataset(path, speaker=self.speaker, workspace=self.workspace))
        except AmharicTtsError as error:
            self.problems.append(Bad(path, error))

    def _add_files(self, paths: Iterable[Path]) -> None:
        for path in sorted(paths):
            if (is_media(path) or is_subtitle(path)) and path.exists() and not path.is_file():
                self.problems.append(Bad(path, NOT_A_FILE))
            elif is_media(path):
                self.media[path.resolve()] = None
            elif is_subtitle(path):
                self.subtitles[path.resolve()] = None
            elif is_transcript(path):
                self.texts[path.resolve()] = None

    def _recording(self, path: Path, subtitles: list[SubtitleFile]) -> Recording:
        foreign = [subtitle for subtitle in subtitles if subtitle.language not in {"", self.language}]
        warnings = [f"{other.path.name} is in another language ({other.language}); ignored." for other in foreign]
        usable = [subtitle for subtitle in subtitles if subtitle not in foreign]
        for subtitle in sorted(usable, key=self._preference):
            cues, more = self._read_cues(subtitle.path, path)
            if cues:
                if unused := [other.path.name for other in usable if other != subtitle]:
                    warnings.append(f"{subtitle.path.name} was used instead of: {abbreviate(unused)}.")
                return Recording(
                    path, self.speaker, cues=tuple(cues), warnings=(*map(said, warnings), *map(said, more))
                )
            warnings += more
        text, more = _read_transcript(transcript_of(path, self.media, self.texts))
        return Recording(path, self.speaker, text, warnings=tuple(map(said, [*warnings, *more])))

    def _preference(self, subtitle: SubtitleFile) -> tuple[bool, int, str]:
        """Return a key that sorts subtitles by how well they suit: language in the name, then format."""
        suffix = subtitle.path.suffix.lower()
        rank = PREFERRED.index(suffix) if suffix in PREFERRED else len(PREFERRED)
        return subtitle.language != self.language, rank, subtitle.path.name

    def _read_cues(self, path: Path, media: Path) -> tuple[list[Cue], list[str]]:
        try:
            cues, warnings = read_cues(path)
        except DataError as error:
            self.problems.append(Bad(path, error))
            return [], []
        letters = [letter for cue in cues for letter in cue.text if letter.isalpha()]
        ethiopic = sum("\u1200" <= letter <= "\u137f" for letter in letters)
        if self.language == "am" and len(letters) >= MIN_LETTERS and ethiopic * 2 < len(letters):
            script = f"only {ethiopic} of {len(letters)} letters are Ethiopic. Are these subtitles in Amharic?"
            warnings.append(f"{path.name}: {script}")
        with contextlib.suppress(AudioError):  # reported when the audio itself is needed
            cues, more = fit_to_recording(cues, audio.duration(media))
            warnings += [f"{path.name}: {warning}" for warning in more]
        return cues, warnings


def _read_transcript(path: Path | None) -> tuple[str, list[str]]:
    """Read the text of a whole recording; return it with warnings."""
    if path is None:
        return "", []
    text, warnings = read_any_encoding(path)
    if is_garbled(text):
        return "", [f"{path.name}: some characters are damaged; its text was ignored."]
    return " ".join(text.split()), [f"{path.name}: {warning}" for warning in warnings]
