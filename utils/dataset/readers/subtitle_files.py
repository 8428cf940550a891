"""Subtitles of the name of their recording, without suffix and language; also Aegisub's."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.core.facts import Fact
from utils.dataset.facts import Bad
from utils.dataset.readers.facts import TextNotUsed, TextRepaired
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Note, Row, matched
from utils.dataset.subtitles import SUFFIXES, read_cues
from utils.dataset.text_files import count_letters
from utils.recognition.spans import Cue

NAME = "subtitles"
IS_LIST = False
PREFERRED = (".srt", ".vtt", ".ass", ".ssa", "")
MIN_LETTERS = 20  # in a subtitle file, to judge its script


def recognise(folder: Folder) -> Match | None:
    """Return those with a recording, sorted by how well they suit: language in the name, then format."""
    languages = {path: folder.partners(path, *SUFFIXES) for path in folder.texts_with(*SUFFIXES)}

    def preference(path: Path) -> tuple[bool, int, str]:
        suffix = path.suffix.lower()
        rank = PREFERRED.index(suffix if suffix in PREFERRED else "")
        return languages[path][1] != folder.language, rank, path.name

    return matched(0.8, sorted((path for path, (media, _) in languages.items() if media), key=preference))


def read(folder: Folder, path: Path) -> Iterator[Item]:
    media, language = folder.partners(path, *SUFFIXES)
    if language not in {"", folder.language}:
        yield Bad(path, TextNotUsed("language", language))
        return
    cues, facts = read_cues(folder.files[path])
    for audio in media:
        for cue in cues:
            yield from (Row(path, audio, cue.text, speaker=name, span=cue.span) for name in cue.speakers or ("",))
    yield from (Note(path, fact) for fact in (*facts, *_check_script(folder, path, cues)))


def _check_script(folder: Folder, path: Path, cues: Sequence[Cue]) -> Iterator[Fact]:
    letters, ethiopic = count_letters("".join(cue.text for cue in cues))
    if folder.language == "am" and letters >= MIN_LETTERS and ethiopic * 2 < letters:
        yield TextRepaired(path.name, "script", ethiopic, str(letters))
