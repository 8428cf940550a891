"""The text of a book with its reading: one recording, or one for each chapter."""

import re
from collections.abc import Iterator
from pathlib import Path

from utils.dataset.documents import read_document
from utils.dataset.facts import Bad
from utils.dataset.readers.facts import TextNotUsed
from utils.dataset.readers.folder import Folder, is_media
from utils.dataset.readers.protocol import Item, Match, Row, matched

NAME = "audio book"
IS_LIST = False
HEADING = re.compile(r"(?m)^# *")


def recognise(folder: Folder) -> Match | None:
    """Return documents, and the only text beside several recordings: the chapters of a book."""
    texts = folder.texts_with(".txt", ".md") if len(folder.texts) == 1 else []
    return matched(0.3, [*folder.texts_with(".epub", ".docx"), *texts])


def read(folder: Folder, path: Path) -> Iterator[Item]:
    media = folder.partners(path)[0]
    media = media or sorted(other for other in folder.media if other.is_relative_to(path.parent) and is_media(other))
    text = read_document(folder.files[path])
    chapters = [" ".join(part.split()) for part in HEADING.split(text) if part.strip()]
    if len(media) == 1:
        yield Row(path, media[0], " ".join(chapters))
    elif len(media) == len(chapters):
        yield from (Row(path, audio, chapter) for audio, chapter in zip(media, chapters, strict=True))
    else:
        yield Bad(path, TextNotUsed("chapters", f"{len(chapters)}/{len(media)}"))
