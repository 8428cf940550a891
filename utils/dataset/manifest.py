"""Every clip and every recording that a dataset knows, in two files that only grow.

``manifest.csv`` has a row for each change of a clip; the last one for an id counts, the earlier ones are its history.
``recordings.csv`` has a row for each recording that is finished, written after its clips and their rows are on disk.
Only clips of finished recordings count, so a crash leaves a dataset as it was before a recording or after it.
"""

import dataclasses
import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

from utils.core.errors import DataError
from utils.dataset.append_table import Table
from utils.dataset.clip import Clip, Scores, Span

MANIFEST, RECORDINGS, LOCK = "manifest.csv", "recordings.csv", ".lock"
SCORES = [one.name for one in fields(Scores)]
CLIP_COLUMNS = [
    *("id", "recording", "source", "start", "end", "speaker", "text"),
    *SCORES,
    *("status", "reason", "content", "split", "audio"),
]


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was worked through; the same content under another path is a row of its own.

    Attributes:
        recording: Content hash; empty when the file could not be read.
        path: Where it was found.
        size: Bytes it had.
        changed: Time of its last change, in nanoseconds.
        seconds: Length of its sound.
        reason: Why nothing came of it; empty when it is finished.
        warnings: What was odd about it, in sentences.
    """

    recording: str
    path: str
    size: int = 0
    changed: int = 0
    seconds: float = 0.0
    reason: str = ""
    warnings: tuple[str, ...] = ()


SOURCE_COLUMNS = [one.name for one in fields(Source)]

Signature = tuple[tuple[int, int], ...]


@dataclass
class Contents:
    """What a dataset holds at one moment.

    Attributes:
        clips: By id, in the order in which they came.
        recordings: The finished ones, by content hash.
        files: What was last said of each path.
    """

    clips: dict[str, Clip] = field(default_factory=dict)
    recordings: dict[str, Source] = field(default_factory=dict)
    files: dict[str, Source] = field(default_factory=dict)

    @property
    def kept(self) -> list[Clip]:
        """Return the clips that are in use."""
        return [clip for clip in self.clips.values() if clip.status == "kept"]

    @property
    def bad(self) -> list[Source]:
        """Return the files of which nothing came."""
        return [source for source in self.files.values() if source.reason]


class Manifest:
    """The two files of one dataset folder.

    Args:
        folder: The dataset folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = Table(folder / MANIFEST, CLIP_COLUMNS)
        self.sources = Table(folder / RECORDINGS, SOURCE_COLUMNS)

    def read(self) -> Contents:
        """Read what counts: the last row of each clip whose recording is finished."""
        return self._read(repair=False)

    def repair(self) -> Contents:
        """Cut off the rows of a recording that was not finished, which are the last ones; return what counts."""
        return self._read(repair=True)

    def _read(self, *, repair: bool) -> Contents:
        contents = self._finished()
        rows: dict[str, list[str]] = {}
        with _collecting_later():
            for line in self.rows.read():
                if line.cells[1] in contents.recordings:
                    rows[line.cells[0]] = line.cells
                elif repair:
                    self.rows.cut(line.offset)
                    break
            contents.clips = {name: _clip(cells) for name, cells in rows.items()}
        return contents

    def _finished(self) -> Contents:
        contents = Contents()
        for line in self.sources.read():
            source = _source(line.cells)
            contents.files[source.path] = source
            if source.recording and not source.reason:
                contents.recordings.setdefault(source.recording, source)
        return contents

    def history(self, name: str) -> list[Clip]:
        """Return every version of a clip, oldest first."""
        return [_clip(line.cells) for line in self.rows.read() if line.cells[0] == name]

    def add(self, source: Source, clips: Sequence[Clip]) -> None:
        """Add a recording with its clips, whose audio has to be on disk."""
        self.change(clips)
        self.note(source)

    def note(self, source: Source) -> None:
        """Write what came of a file."""
        self.sources.append([_source_cells(source)])

    def change(self, clips: Iterable[Clip]) -> None:
        """Write a new row for each of these clips."""
        self.rows.append(map(_clip_cells, clips))


@contextmanager
def _collecting_later() -> Iterator[None]:
    """Hold the garbage collector: it would go through all these rows, which stay, again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def book_of(folder: Path) -> Manifest:
    """Return the manifest of a dataset that has to be there."""
    if not (folder / MANIFEST).is_file():
        raise DataError(f"{folder} holds no {MANIFEST}.", hint="Make a dataset with: python -m utils prepare.")
    return Manifest(folder)


def signed(folder: Path) -> Signature:
    """Tell one state of a dataset from another without reading it."""
    return tuple(_stamp(folder / name) for name in (MANIFEST, RECORDINGS))


def opened(folder: Path) -> Contents:
    """Read a dataset that has to be there."""
    return book_of(folder).read()


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:  # it is not there yet
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _clip_cells(clip: Clip) -> list[str]:
    scores = ["" if (value := getattr(clip.scores, name)) is None else str(float(value)) for name in SCORES]
    place = [clip.id, clip.recording, clip.source, str(float(clip.span.start)), str(float(clip.span.end))]
    end = [clip.status, clip.reason, clip.content, clip.split, clip.audio]
    return [*place, clip.speaker, clip.text, *scores, *end]


def _clip(cells: list[str]) -> Clip:
    name, recording, source, start, end, speaker, text, *rest = cells
    try:
        scores = Scores(*[float(cell) if cell else None for cell in rest[: len(SCORES)]])
        span = Span(float(start), float(end))
    except ValueError as error:
        raise DataError(f"{MANIFEST}: clip {name} is damaged: {error}.", hint="Remove its last line.") from error
    status, reason, content, split, audio = rest[len(SCORES) :]
    if status not in {"kept", "aside"} or split not in {"train", "eval", ""}:
        raise DataError(
            f"{MANIFEST}: clip {name} has status {status!r} and split {split!r}.", hint="Mend its last line."
        )
    if _leads_out(name, audio):
        raise DataError(f"{MANIFEST}: clip {name!r} lies outside the dataset: {audio!r}.", hint="Do not use it.")
    return Clip(name, recording, source, span, speaker, text, audio, content, scores, split, status, reason)  # type: ignore[arg-type]


def _leads_out(name: str, audio: str) -> bool:
    """Tell a dataset that was made to have other files read or written; names become names of files."""
    return (
        any(sign in name for sign in "/\\:")
        or any(sign in audio for sign in "\\:")
        or ".." in audio.split("/")
        or audio.startswith("/")
    )


def _source_cells(source: Source) -> list[str]:
    cells = dataclasses.asdict(source) | {"warnings": "\n".join(source.warnings), "seconds": float(source.seconds)}
    return [str(cells[name]) for name in SOURCE_COLUMNS]


def _source(cells: list[str]) -> Source:
    recording, path, size, changed, seconds, reason, warnings = cells
    try:
        numbers = int(size), int(changed), float(seconds)
    except ValueError as error:
        raise DataError(f"{RECORDINGS}: the row of {path} is damaged: {error}.", hint="Remove it.") from error
    return Source(recording, path, *numbers, reason, tuple(warnings.splitlines()))
