"""The text of a book with its reading: one recording, or one for each chapter or line."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from utils.dataset.documents import read_document
from utils.dataset.facts import Bad
from utils.dataset.readers.facts import TextNotUsed, TextRepaired
from utils.dataset.readers.folder import Folder, is_media
from utils.dataset.readers.protocol import Item, Match, Row, matched

NAME = "text in the order of the recordings"
IS_LIST = False
HEADING = re.compile(r"(?m)^# *")


def recognise(folder: Folder) -> Match | None:
    """Return documents, and texts that are the only one in their folder and below it."""
    below = Counter(parent for path in folder.texts for parent in path.parents)
    texts = [path for path in folder.texts_with(".txt", ".md") if below[path.parent] == 1]
    return matched(0.3, [*folder.texts_with(".epub", ".docx"), *texts])


def read(folder: Folder, path: Path) -> Iterator[Item]:
    media = folder.partners(path)[0]
    beside = (other for other in folder.media if other.is_relative_to(path.parent) and is_media(other))
    media = media or sorted(beside, key=_place)
    text = read_document(folder.files[path])
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    chapters = [" ".join(part.split()) for part in HEADING.split(text) if part.strip()]
    if len(media) == 1:
        yield Row(path, media[0], " ".join(chapters))
    elif len(media) == len(chapters):
        yield from (Row(path, audio, chapter) for audio, chapter in zip(media, chapters, strict=True))
    elif len(media) == len(lines):
        yield from (Row(path, audio, line) for audio, line in zip(media, lines, strict=True))
        yield TextRepaired(path.name, "paired", len(lines), f"{media[0].name} … {media[-1].name}")
    else:
        yield Bad(path, TextNotUsed("chapters", f"{len(lines)}/{len(chapters)}/{len(media)}"))


def _place(path: Path) -> list[tuple[int, str]]:
    """Return a sort key that orders numbers by value: 2.wav before 10.wav."""
    parts = re.findall(r"\d+|\D+", str(path))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
