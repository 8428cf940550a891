"""Find recordings in files, folders, URLs, existing datasets and hub datasets, with their subtitles or transcripts.

What cannot be used becomes a ``Problem``; the other inputs are still read.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from utils.core.addresses import is_url
from utils.core.errors import AmharicTtsError, AudioError, DataError
from utils.core.languages import canonical
from utils.dataset.clip import Problem, Recording, ScanResult, abbreviate
from utils.dataset.download import download
from utils.dataset.existing_datasets import is_dataset, read_dataset, read_hub
from utils.dataset.pairing import SubtitleFile, by_preference, is_subtitle, name_key, pair, possible_names
from utils.dataset.subtitles import SubtitleCues, fit_to_recording, read_cues
from utils.dataset.text_files import is_garbled, read_any_encoding
from utils.media import audio

MEDIA = frozenset(
    f".{suffix}"
    for suffix in (
        "wav wave mp3 flac ogg oga opus m4a m4b aac wma aif aiff aifc caf amr ac3 eac3 ape wv mka mp2 au snd spx tta "
        "mp4 m4v mkv webm mov avi wmv flv mpg mpeg ts m2ts mts 3gp 3g2 ogv vob mxf"
    ).split()
)
TRANSCRIPTS = (".txt", ".lab")  # the text of a whole recording, in a file of the same name
HUB = "hf:"
MIN_LETTERS = 20  # in a subtitle file, to judge its script


def find_recordings(
    inputs: Sequence[Path | str],
    *,
    language: str,
    speaker: str = "speaker",
    workspace: Path | None = None,
    on_progress: Callable[[str, float], None] = lambda _name, _share: None,
) -> ScanResult:
    """Find all recordings in the inputs, with their text where it is known.

    Args:
        inputs: Files, folders, URLs and hub names (``hf:owner/name`` or ``hf:owner/name:configuration``).
        language: The spoken language; subtitles in other languages are ignored.
        speaker: Name of the speaker where no list gives one.
        workspace: Folder for downloaded and unpacked files; without one such inputs are refused.
        on_progress: Called with the name of a download and the share that has arrived.
    """
    scan = _Scan(canonical(language), speaker, workspace, on_progress)
    for name in dict.fromkeys(map(_normalised, inputs)):
        try:
            scan.add(name)
        except AmharicTtsError as error:
            scan.add_problem(Path(name), str(error))
    return scan.result()


def is_media(path: Path) -> bool:
    """Return whether a path has the suffix of an audio or video file."""
    return path.suffix.lower() in MEDIA


def counterparts(path: Path) -> list[Path]:
    """Return the subtitle files of a media file, or the media files of a subtitle file, in its folder."""
    siblings = [other for other in path.parent.iterdir() if other.is_file()]
    if is_subtitle(path):
        names = {name for name, _ in possible_names(path)}
        return [other for other in siblings if is_media(other) and name_key(other.stem) in names]
    keys = {name_key(path.stem), name_key(path.name)}
    subtitles = (other for other in siblings if is_subtitle(other))
    return [other for other in subtitles if keys & {name for name, _ in possible_names(other)}]


def _normalised(name: Path | str) -> str:
    """Restore the second slash of a URL that became a path."""
    if isinstance(name, str):
        return name.strip() if is_url(name.strip()) else name
    text = name.as_posix()
    for scheme in ("http", "https"):
        if text.startswith(f"{scheme}:/") and not text.startswith(f"{scheme}://"):
            return text.replace(":/", "://", 1)
    return str(name)


class _Scan:
    def __init__(
        self, language: str, speaker: str, workspace: Path | None, on_progress: Callable[[str, float], None]
    ) -> None:
        self.language, self.speaker, self.workspace, self.on_progress = language, speaker, workspace, on_progress
        self.media: dict[Path, None] = {}  # in order, each once
        self.subtitles: dict[Path, None] = {}
        self.datasets: list[ScanResult] = []
        self.problems: list[Problem] = []

    def add(self, name: str) -> None:
        """Scan one input."""
        if is_url(name):
            files = download(name, self._workspace(name), language=self.language, on_progress=self.on_progress)
            self.problems += [Problem(Path(name), warning) for warning in files.warnings]
            self.media.update(dict.fromkeys(path.resolve() for path in files.media))
            self._add_files(*files.subtitles)
        elif name.startswith(HUB):
            self.datasets.append(read_hub(name.removeprefix(HUB), self._workspace(name), speaker=self.speaker))
        elif Path(name).is_dir():
            self._add_folder(Path(name))
        elif not Path(name).exists():
            self.add_problem(Path(name), "No such file or folder. Check the spelling.")
        else:
            self._add_file(Path(name))

    def add_problem(self, path: Path, message: str) -> None:
        """Record that something was not used."""
        self.problems.append(Problem(path, message))

    def result(self) -> ScanResult:
        """Pair media and subtitles."""
        pairs = pair(self.media, self.subtitles)
        recordings = [self._recording(path, pairs.subtitles.get(path, [])) for path in self.media]
        for path in pairs.unmatched:
            self.add_problem(
                path, "No recording has this name. Give both files the same name, such as talk.mp4 and talk.am.srt."
            )
        listed = {recording.path for part in self.datasets for recording in part.recordings}
        others = tuple(recording for recording in recordings if recording.path not in listed)
        return ScanResult.joined([*self.datasets, ScanResult(others, tuple(self.problems))])

    def _workspace(self, name: str) -> Path:
        if self.workspace is None:
            raise DataError(f"{name} must be downloaded, but no folder for it was given.")
        return self.workspace

    def _add_folder(self, root: Path) -> None:
        before = len(self.media) + len(self.datasets)
        for walked, folders, names in os.walk(root, onerror=self._report_unreadable):
            folder = Path(walked)
            if is_dataset(folder):
                self._add_dataset(folder)
                folders.clear()  # the lists name everything that belongs to it
                continue
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            files = [folder / name for name in names if not name.startswith(".")]
            self._add_files(*files)
            if folder != root and is_media(folder) and not folders and not any(map(is_media, files)):
                self.add_problem(folder, "This is a folder without audio, although it is named like a recording.")
        if before == len(self.media) + len(self.datasets):
            self.add_problem(root, "No audio, video or dataset found.")

    def _report_unreadable(self, error: OSError) -> None:
        message = f"The folder cannot be read ({error.strerror}). Check its permissions."
        self.add_problem(Path(str(error.filename)), message)

    def _add_file(self, path: Path) -> None:
        """Add a file and its counterpart in the same folder: subtitles of media, media of subtitles."""
        if is_dataset(path):
            self._add_dataset(path)
            return
        if not is_subtitle(path):
            self.media[path.resolve()] = None  # whatever its suffix: the decoder decides
        self._add_files(path, *counterparts(path))

    def _add_dataset(self, path: Path) -> None:
        try:
            self.datasets.append(read_dataset(path, speaker=self.speaker, workspace=self.workspace))
        except AmharicTtsError as error:
            self.add_problem(path, str(error))

    def _add_files(self, *paths: Path) -> None:
        for path in sorted(paths):
            if is_media(path):
                self.media[path.resolve()] = None
            elif is_subtitle(path):
                self.subtitles[path.resolve()] = None

    def _recording(self, path: Path, subtitles: list[SubtitleFile]) -> Recording:
        foreign = [subtitle for subtitle in subtitles if subtitle.language not in {"", self.language}]
        warnings = [f"{other.path.name} is in another language ({other.language}); ignored." for other in foreign]
        for subtitle in by_preference(subtitles, self.language):
            read = self._read_cues(subtitle.path, path)
            if read.cues:
                if unused := [other.path.name for other in subtitles if other not in (*foreign, subtitle)]:
                    warnings.append(f"{subtitle.path.name} was used instead of: {abbreviate(unused)}.")
                return Recording(path, self.speaker, cues=read.cues, warnings=(*warnings, *read.warnings))
            warnings += read.warnings
        text, more = _read_transcript(path)
        return Recording(path, self.speaker, text, warnings=(*warnings, *more))

    def _read_cues(self, path: Path, media: Path) -> SubtitleCues:
        try:
            read = read_cues(path)
        except DataError as error:
            self.add_problem(path, str(error))
            return SubtitleCues(())
        read = SubtitleCues(read.cues, (*read.warnings, *_script_warnings(read, self.language, path.name)))
        try:
            return fit_to_recording(read, audio.duration(media), path.name)
        except AudioError:  # reported when the audio itself is needed
            return read


def _read_transcript(media: Path) -> tuple[str, tuple[str, ...]]:
    """Read the text of a whole recording from the text file of the same name."""
    for path in map(media.with_suffix, TRANSCRIPTS):
        if not path.is_file():
            continue
        read = read_any_encoding(path)
        if is_garbled(read.text):
            return "", (f"{path.name}: some characters are damaged; its text was ignored.",)
        return " ".join(read.text.split()), tuple(f"{path.name}: {warning}" for warning in read.warnings)
    return "", ()


def _script_warnings(read: SubtitleCues, language: str, name: str) -> list[str]:
    """Warn about Amharic subtitles that are mostly not in Ethiopic script."""
    letters = [letter for cue in read.cues for letter in cue.text if letter.isalpha()]
    ethiopic = sum("\u1200" <= letter <= "\u137f" for letter in letters)
    if language == "am" and len(letters) >= MIN_LETTERS and ethiopic * 2 < len(letters):
        return [f"{name}: only {ethiopic} of {len(letters)} letters are Ethiopic. Are these subtitles in Amharic?"]
    return []
