"""Subtitles of the name of their recording, without suffix and language; also Aegisub's."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.core.errors import DataError
from utils.dataset.clip import said
from utils.dataset.facts import Bad
from utils.dataset.readers.facts import TextNotUsed, Unused
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Note, Row, matched
from utils.dataset.subtitles import SUFFIXES, read_cues
from utils.recognition.spans import Cue

NAME = "subtitles"
IS_LIST = False
PREFERRED = (".srt", ".vtt", ".ass", ".ssa")
MIN_LETTERS = 20  # in a subtitle file, to judge its script


def recognise(folder: Folder) -> Match | None:
    files = folder.texts_with(*SUFFIXES)
    partners = folder.partners(files)
    return matched(0.8, [path for path in files if path in partners])


def read(folder: Folder, files: Sequence[Path]) -> Iterator[Item]:
    by_audio: dict[Path, list[tuple[Path, str]]] = defaultdict(list)
    partners = folder.partners(folder.texts_with(*SUFFIXES))
    for path in files:
        media, language = partners[path]
        if language not in {"", folder.language}:
            yield Bad(path, TextNotUsed(Unused.LANGUAGE, language))
            continue
        for audio in media:
            by_audio[audio].append((path, language))
    for audio, found in by_audio.items():
        has_cues = False
        for path, _ in sorted(found, key=lambda each: _preference(folder, *each)):
            try:
                cues, warnings = read_cues(folder.files[path])
            except DataError as error:
                yield Bad(path, error)
                continue
            yield from (Row(path, audio, cue.text, "", cue.span) for cue in cues)
            if not has_cues:  # the others are only compared
                yield from (Note(audio, said(warning)) for warning in [*warnings, *_check_script(folder, path, cues)])
            has_cues = has_cues or bool(cues)


def _preference(folder: Folder, path: Path, language: str) -> tuple[bool, int, str]:
    """Return a key that sorts subtitles by how well they suit: language in the name, then format."""
    suffix = path.suffix.lower()
    rank = PREFERRED.index(suffix) if suffix in PREFERRED else len(PREFERRED)
    return language != folder.language, rank, path.name


def _check_script(folder: Folder, path: Path, cues: Sequence[Cue]) -> Iterator[str]:
    letters = [letter for cue in cues for letter in cue.text if letter.isalpha()]
    ethiopic = sum("\u1200" <= letter <= "\u137f" for letter in letters)
    if folder.language == "am" and len(letters) >= MIN_LETTERS and ethiopic * 2 < len(letters):
        yield (f"{path.name}: only {ethiopic} of {len(letters)} letters are Ethiopic. Are these subtitles in Amharic?")
