"""Kaldi, and ALFFA, which has its layout: text, with utt2spk, wav.scp and segments beside it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.dataset.facts import Bad
from utils.dataset.readers.facts import LineFault, LineUnreadable
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched
from utils.recognition.spans import Span

NAME = "Kaldi"
IS_LIST = True
SIGNS = {"wav.scp", "segments", "utt2spk"}


def recognise(folder: Folder) -> Match | None:
    signs = {path.parent for path in folder.files if path.name in SIGNS}
    files = [path for path in folder.texts if path.name == "text" and path.parent in signs]
    parents = {path.parent for path in files}
    others = [
        path
        for path in folder.texts
        if path.parent in parents and path not in files and (not path.suffix or path.suffix in {".scp", ".conf"})
    ]
    return matched(1.0, files, others)


def read(folder: Folder, files: Sequence[Path]) -> Iterator[Item]:
    for path in files:
        scp, segments, speakers = (_table(folder, path.with_name(name)) for name in ("wav.scp", "segments", "utt2spk"))
        for number, line in enumerate(folder.text(path).split("\n"), start=1):
            if not line.strip():
                continue
            name, text = [*line.split(maxsplit=1), ""][:2]
            recording, span = name, None
            if name in segments:
                recording, *times = segments[name].split()
                try:
                    start, end = map(float, times[:2])
                except ValueError:
                    yield Bad(path.with_name("segments"), LineUnreadable(number, LineFault.TIMES, segments[name]))
                    continue
                span = Span(start, end)
            audio = _audio(folder, scp.get(recording, recording), recording, path)
            yield Row(path, audio, text, speakers.get(name, ""), span, number)


def _table(folder: Folder, path: Path) -> dict[str, str]:
    if path not in folder.files:
        return {}
    rows = (line.split(maxsplit=1) for line in folder.text(path).split("\n"))
    return {row[0]: row[1] for row in rows if len(row) > 1}


def _audio(folder: Folder, command: str, name: str, near: Path) -> Path | str:
    """Return the file in a command such as ``flac -c -d a.flac |``, or that of the recording's name."""
    found = (folder.locate(part, near) for part in (command, *command.split()[::-1], name))
    return next((path for path in found if path), command)
