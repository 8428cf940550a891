"""A text file of the name of its recording; or the only text, beside the only recording."""

from collections.abc import Iterator
from pathlib import Path

from utils.dataset.facts import Bad
from utils.dataset.readers.facts import TextNotUsed
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched
from utils.dataset.text_files import is_garbled

NAME = "transcripts"
IS_LIST = False
SUFFIXES = (".txt", ".lab", ".trn")  # the text of a whole recording


def recognise(folder: Folder) -> Match | None:
    return matched(0.4, [path for path in folder.texts_with(*SUFFIXES) if folder.partners(path, *SUFFIXES)[0]])


def read(folder: Folder, path: Path) -> Iterator[Item]:
    media, language = folder.partners(path, *SUFFIXES)
    text = folder.text(path)
    if language not in {"", folder.language}:
        yield Bad(path, TextNotUsed("language", language))
    elif is_garbled(text):
        yield Bad(path, TextNotUsed("garbled"))
    else:
        yield from (Row(path, audio, text) for audio in media)
