"""From places to recordings: files, folders, subtitles beside them, existing datasets, addresses and hub names.

What cannot be used becomes a Problem; the other places are read all the same.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from utils.core.errors import AmharicTtsError, AudioError, DataError
from utils.core.languages import canonical
from utils.dataset import download, existing
from utils.dataset.clip import Problem, Recording, ScanResult, abbreviate
from utils.dataset.encodings import is_garbled, read_any
from utils.dataset.pairing import Subtitle, by_preference, is_subtitle, key, pair, readings
from utils.dataset.sound_tables import read_hub
from utils.dataset.subtitles import Cues, fit, read_cues
from utils.media import audio

__all__ = ["Problem", "Recording", "ScanResult", "find"]

MEDIA = frozenset(
    f".{ending}"
    for ending in (
        "wav wave mp3 flac ogg oga opus m4a m4b aac wma aif aiff aifc caf amr ac3 eac3 ape wv mka mp2 au snd spx tta "
        "mp4 m4v mkv webm mov avi wmv flv mpg mpeg ts m2ts mts 3gp 3g2 ogv vob mxf"
    ).split()
)
TRANSCRIPTS = (".txt", ".lab")  # the words of a whole recording, in a file of its name
HUB = "hf:"
LETTERS_NEEDED = 20  # of a subtitle, before its script says something of its language


def find(
    places: Sequence[Path | str],
    *,
    language: str,
    speaker: str = "speaker",
    workspace: Path | None = None,
    tell: Callable[[str, float], None] = download.quiet,
) -> ScanResult:
    """Find every recording in some places, with the words that came with it.

    Args:
        places: Files, folders, addresses (http, https) and hub names (``hf:owner/name`` or ``hf:owner/name:part``).
        language: What is spoken; subtitles in any other language are left alone.
        speaker: Who speaks, where no list tells.
        workspace: Folder for what has to be fetched or unpacked; without one such places are refused.
        tell: Hears the share of a download that is done.
    """
    search = _Search(canonical(language), speaker, workspace, tell)
    for place in dict.fromkeys(map(_as_written, places)):
        try:
            search.look_at(place)
        except AmharicTtsError as error:
            search.problem(Path(place), str(error))
    return search.found()


def _as_written(place: Path | str) -> str:
    """Give an address that became a path its second slash back."""
    text = str(place).replace("\\", "/") if isinstance(place, Path) else place.strip()
    for scheme in ("http", "https"):
        if isinstance(place, Path) and text.startswith(f"{scheme}:/") and not text.startswith(f"{scheme}://"):
            return text.replace(":/", "://", 1)
    return text if download.is_url(text) else str(place)


@dataclass
class _Search:
    """What was found so far."""

    language: str
    speaker: str
    workspace: Path | None
    tell: Callable[[str, float], None]
    media: dict[Path, None] = field(default_factory=dict)  # in order, each once
    subtitles: dict[Path, None] = field(default_factory=dict)
    parts: list[ScanResult] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def look_at(self, place: str) -> None:
        """Take in one place."""
        if download.is_url(place):
            fetched = download.fetch(place, self._workspace(place), language=self.language, tell=self.tell)
            self.problems += [Problem(Path(place), warning) for warning in fetched.warnings]
            self.media.update(dict.fromkeys(path.resolve() for path in fetched.media))
            self._take(*fetched.subtitles)
        elif place.startswith(HUB):
            self.parts.append(read_hub(place.removeprefix(HUB), self._workspace(place), speaker=self.speaker))
        elif Path(place).is_dir():
            self._walk(Path(place))
        elif not Path(place).exists():
            self.problem(Path(place), "There is nothing of this name. Check the spelling and the folder.")
        else:
            self._file(Path(place))

    def problem(self, path: Path, sentence: str) -> None:
        """Note that something was not used."""
        self.problems.append(Problem(path, sentence))

    def found(self) -> ScanResult:
        """Pair what was collected."""
        pairs = pair(self.media, self.subtitles)
        recordings = [self._recording(path, pairs.of.get(path, [])) for path in self.media]
        for path in pairs.alone:
            self.problem(
                path, "No recording goes by the name of these subtitles. Name both alike: talk.mp4, talk.am.srt."
            )
        known = [recording for part in self.parts for recording in part.recordings]
        seen = {recording.path for recording in known}
        new = [recording for recording in recordings if recording.path not in seen]
        return ScanResult.joined([*self.parts, ScanResult(tuple(new), tuple(self.problems))])

    def _workspace(self, place: str) -> Path:
        if self.workspace is None:
            raise DataError(f"{place} has to be fetched, and no folder to fetch into was given.")
        return self.workspace

    def _walk(self, folder: Path) -> None:
        before = len(self.media) + len(self.parts)
        for here, names in _folders(folder, self._unreadable):
            if existing.is_dataset(here):
                self._read_dataset(here)
                names.folders.clear()  # the lists say what belongs to it
            else:
                self._take(*(here / name for name in names.files))
                if here != folder and _is_media(here) and not _holds_media(names):
                    self.problem(here, "It is a folder without sound, although its name is that of a recording.")
        if before == len(self.media) + len(self.parts):
            self.problem(folder, "It holds no sound, no video and no dataset.")

    def _unreadable(self, error: OSError) -> None:
        self.problem(Path(str(error.filename)), f"The folder cannot be read ({error.strerror}). Check your rights.")

    def _file(self, path: Path) -> None:
        if existing.is_dataset(path):
            self._read_dataset(path)
            return
        siblings = [other for other in path.parent.iterdir() if other.is_file()]
        if is_subtitle(path):
            names = {name for name, _ in readings(path)}
            self._take(path, *(other for other in siblings if _is_media(other) and key(other.stem) in names))
        else:
            own = {key(path.stem), key(path.name)}
            company = (
                other for other in siblings if is_subtitle(other) and own & {name for name, _ in readings(other)}
            )
            self.media[path.resolve()] = None  # whatever its ending: the decoder has the last word
            self._take(*company)

    def _read_dataset(self, path: Path) -> None:
        try:
            self.parts.append(existing.read(path, speaker=self.speaker, workspace=self.workspace))
        except AmharicTtsError as error:
            self.problem(path, str(error))

    def _take(self, *paths: Path) -> None:
        for path in sorted(paths):
            if _is_media(path):
                self.media[path.resolve()] = None
            elif is_subtitle(path):
                self.subtitles[path.resolve()] = None

    def _recording(self, path: Path, subtitles: list[Subtitle]) -> Recording:
        others = [subtitle for subtitle in subtitles if subtitle.language not in {"", self.language}]
        warnings = [
            f"{other.path.name} is in another language ({other.language}) and was left alone." for other in others
        ]
        for subtitle in by_preference(subtitles, self.language):
            cues = self._cues(subtitle.path, path)
            if cues.cues:
                unread = [other.path.name for other in subtitles if other not in (*others, subtitle)]
                if unread:
                    warnings.append(
                        f"{subtitle.path.name} was read; of the same language and not read: {abbreviate(unread)}."
                    )
                return Recording(path, self.speaker, cues=cues.cues, warnings=(*warnings, *cues.warnings))
            warnings += cues.warnings
        text, more = _transcript(path)
        return Recording(path, self.speaker, text, warnings=(*warnings, *more))

    def _cues(self, path: Path, media: Path) -> Cues:
        try:
            cues = read_cues(path)
        except DataError as error:
            self.problem(path, str(error))
            return Cues(())
        cues = Cues(cues.cues, cues.warnings + tuple(_other_script(cues, self.language, path.name)))
        try:
            return fit(cues, audio.duration(media), path.name)
        except AudioError:  # it is told when the sound itself is needed, and only once
            return cues


@dataclass(frozen=True, slots=True)
class _Names:
    files: list[str]
    folders: list[str]


def _folders(root: Path, onerror: Callable[[OSError], None]) -> Iterator[tuple[Path, _Names]]:
    """Yield a folder and all below it in order; a visitor clears the list of folders to go no deeper."""
    for here, folders, files in os.walk(root, onerror=onerror):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield Path(here), _Names([name for name in files if not name.startswith(".")], folders)


def _is_media(path: Path) -> bool:
    return path.suffix.lower() in MEDIA


def _holds_media(names: _Names) -> bool:
    """Tell whether sound may lie in a folder or below it."""
    return bool(names.folders) or any(_is_media(Path(name)) for name in names.files)


def _transcript(media: Path) -> tuple[str, tuple[str, ...]]:
    """Read the words of a whole recording from the text file of its name."""
    for suffix in TRANSCRIPTS:
        path = media.with_suffix(suffix)
        if not path.is_file():
            continue
        read = read_any(path)
        if is_garbled(read.text):
            return "", (f"{path.name}: letters are lost for good; its text was left out.",)
        return " ".join(read.text.split()), tuple(f"{path.name}: {warning}" for warning in read.warnings)
    return "", ()


def _other_script(cues: Cues, language: str, name: str) -> Iterator[str]:
    """Doubt Amharic subtitles that are hardly written in Ethiopic letters."""
    letters = [letter for cue in cues.cues for letter in cue.text if letter.isalpha()]
    ethiopic = sum("\u1200" <= letter <= "\u137f" for letter in letters)
    if language == "am" and len(letters) >= LETTERS_NEEDED and ethiopic * 2 < len(letters):
        yield f"{name}: only {ethiopic} of {len(letters)} letters are Ethiopic. Are these subtitles in Amharic?"
