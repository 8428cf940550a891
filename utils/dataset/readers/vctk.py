"""VCTK: txt/p225/p225_001.txt, and the same sentence by two microphones, p225_001_mic1.flac and _mic2.flac."""

from collections.abc import Iterator
from pathlib import Path

from utils.dataset.readers.facts import MicrophoneChosen
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, Spare, matched

NAME = "VCTK"
IS_LIST = False
ABOUT = {"speaker-info.txt", "update.txt"}


def recognise(folder: Folder) -> Match | None:
    texts = [path for path in folder.texts_with(".txt") if path.stem.startswith(f"{path.parent.name}_")]
    files = [path for path in texts if _takes(folder, path)]
    return matched(0.95, files, [path for path in folder.texts if path.name in ABOUT])


def read(folder: Folder, path: Path) -> Iterator[Item]:
    first, *others = _takes(folder, path)
    yield Row(path, first, folder.text(path), speaker=path.stem.partition("_")[0])
    yield from (Spare(other, MicrophoneChosen(first.name)) for other in others)


def _takes(folder: Folder, path: Path) -> list[Path]:
    found = (folder.locate(f"{path.stem}{microphone}", path) for microphone in ("", "_mic1", "_mic2"))
    return list(filter(None, found))
