"""Kaldi, and ALFFA, which has its layout: text, with utt2spk, wav.scp and segments beside it."""

import re
from collections.abc import Iterator
from pathlib import Path

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched, unreadable
from utils.recognition.spans import Span

NAME = "Kaldi"
IS_LIST = True
SIGNS = {"wav.scp", "segments", "utt2spk"}
OTHERS = re.compile(r"segments|frame_shift|(?:utt|spk|reco)2\w+|.+\.(?:scp|conf)")


def recognise(folder: Folder) -> Match | None:
    signs = {path.parent for path in folder.files if path.name in SIGNS}
    files = [path for path in folder.texts if path.name == "text" and path.parent in signs]
    parents = {path.parent for path in files}
    return matched(
        1.0, files, [path for path in folder.texts if path.parent in parents and OTHERS.fullmatch(path.name)]
    )


def read(folder: Folder, path: Path) -> Iterator[Item]:
    scp, segments, speakers = (_table(folder, path.with_name(name)) for name in ("wav.scp", "segments", "utt2spk"))
    for number, line in folder.lines(path):
        name, text = [*line.split(maxsplit=1), ""][:2]
        recording, *times = segments.get(name, name).split()
        try:
            span = Span(float(times[0]), float(times[1])) if times else None
        except (ValueError, IndexError):
            yield unreadable(path.with_name("segments"), number, segments[name])
            continue
        audio = _audio(folder, scp.get(recording, recording), recording, path)
        yield Row(path, audio, text, number, speakers.get(name, ""), span)


def _table(folder: Folder, path: Path) -> dict[str, str]:
    rows = (line.split(maxsplit=1) for _, line in folder.lines(path)) if path in folder.files else ()
    return {row[0]: row[1] for row in rows if len(row) > 1}


def _audio(folder: Folder, command: str, name: str, near: Path) -> Path | str:
    """Return the file in a command such as ``flac -c -d a.flac |``, or that of the recording's name."""
    found = (folder.locate(part, near) for part in (command, *command.split()[::-1], name))
    return next((path for path in found if path), command)
