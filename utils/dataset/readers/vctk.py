"""VCTK: txt/p225/p225_001.txt, and the same sentence by two microphones, p225_001_mic1.flac and _mic2.flac."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.dataset.readers.facts import MicrophoneChosen
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, Spare, matched

NAME = "VCTK"
IS_LIST = False
MICROPHONE = re.compile(r"_mic(\d)$")
ABOUT = {"speaker-info.txt", "update.txt"}


def recognise(folder: Folder) -> Match | None:
    recorded = {MICROPHONE.sub("", path.stem) for path in folder.media}
    texts = [path for path in folder.texts_with(".txt") if path.stem in recorded]
    files = [path for path in texts if path.stem.startswith(f"{path.parent.name}_")]
    return matched(0.95, files, [path for path in folder.texts if path.name in ABOUT])


def read(folder: Folder, files: Sequence[Path]) -> Iterator[Item]:
    takes: dict[str, list[Path]] = {}
    for audio in sorted(folder.media):
        takes.setdefault(MICROPHONE.sub("", audio.stem), []).append(audio)
    for path in files:
        first, *others = takes[path.stem]
        yield Row(path, first, folder.text(path), path.stem.partition("_")[0])
        for other in others:
            yield Spare(other, MicrophoneChosen(first.name))
