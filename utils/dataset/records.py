"""How clips and sources are written to the store: as rows of plain values, checked when they are read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from utils.core.errors import AmharicTtsError, DataError
from utils.dataset.clip import Clip, Scores, Span

RESTORE = "Restore the dataset from a backup."
SCORES = [score.name for score in fields(Scores)]
COLUMNS = (
    *("id", "recording", "source", "start", "end", "speaker", "text"),
    *SCORES,
    *("status", "reason", "content", "split", "audio"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was processed; the same content under another path has a row of its own.

    Attributes:
        recording: Content hash; empty when the file could not be read.
        path: Path of the file.
        size: Size in bytes.
        changed: Time of the last change, in nanoseconds.
        seconds: Duration.
        reason: Why it gave no clips; empty when it is finished.
        warnings: Notes about the file.
    """

    recording: str
    path: str
    size: int = 0
    changed: int = 0
    seconds: float = 0.0
    reason: str = ""
    warnings: tuple[str, ...] = ()


def row_of_clip(clip: Clip) -> list[Any]:
    """Return the values of a clip in the order of ``COLUMNS``."""
    place = [clip.id, clip.recording, clip.source, float(clip.span.start), float(clip.span.end)]
    scores = [None if (value := getattr(clip.scores, name)) is None else float(value) for name in SCORES]
    end = [clip.status, clip.reason, clip.content, clip.split, clip.audio]
    return [*place, clip.speaker, clip.text, *scores, *end]


def clip_of_row(row: Sequence[Any]) -> Clip:
    """Make a clip of its row, and refuse one that is damaged or names files outside the dataset."""
    name, recording, source, start, end, speaker, text, *rest = row
    try:
        scores = Scores(*(None if score is None else float(score) for score in rest[: len(SCORES)]))
        span = Span(float(start), float(end))
    except (TypeError, ValueError) as error:
        raise DataError(f"Clip {name!r} is damaged: {error}.", hint=RESTORE) from error
    status, reason, content, split, audio = rest[len(SCORES) :]
    texts = (name, recording, source, speaker, text, reason, content, audio)
    if status not in {"kept", "excluded"} or split not in {"train", "eval", ""} or None in texts:
        raise DataError(f"Clip {name!r} is damaged: status {status!r}, split {split!r}.", hint=RESTORE)
    if not all(isinstance(value, str) for value in texts):
        raise DataError(f"Clip {name!r} is damaged: a text is a number.", hint=RESTORE)
    if _leads_out(name, audio):
        raise DataError(f"Clip {name!r} is outside the dataset: {audio!r}.", hint="Do not use this dataset.")
    return Clip(name, recording, source, span, speaker, text, audio, content, scores, split, status, reason)


def changed_fields(old: Clip | None, new: Clip) -> tuple[str | None, str]:
    """Return the columns that differ, before and after, as JSON; of an added clip all of them."""
    after = dict(zip(COLUMNS, row_of_clip(new), strict=True))
    if old is None:
        return None, json.dumps(after, ensure_ascii=False)
    before = dict(zip(COLUMNS, row_of_clip(old), strict=True))
    names = [name for name in COLUMNS if before[name] != after[name]]
    return tuple(json.dumps({name: row[name] for name in names}, ensure_ascii=False) for row in (before, after))  # type: ignore[return-value]


def with_fields(clip: Clip | None, written: str) -> Clip:
    """Return a clip with the columns that ``changed_fields`` wrote; without a clip they are all of them."""
    try:
        columns: Mapping[str, Any] = json.loads(written)
        row = dict(zip(COLUMNS, row_of_clip(clip), strict=True)) if clip else {}
        row |= {name: columns[name] for name in COLUMNS if name in columns}
        return clip_of_row([row[name] for name in COLUMNS])
    except (ValueError, TypeError, KeyError, AmharicTtsError) as error:
        raise DataError(
            f"The edit history is damaged: {error!r}.", hint="The clips themselves are unchanged."
        ) from error


def _leads_out(name: str, audio: str) -> bool:
    """Tell whether a path leaves the dataset folder; ids become file names."""
    return (
        any(sign in name for sign in "/\\:")
        or any(sign in audio for sign in "\\:")
        or ".." in audio.split("/")
        or audio.startswith("/")
    )


def source_of_row(row: Sequence[Any]) -> Source:
    """Make a source of its row."""
    _, recording, path, size, changed, seconds, reason, warnings = row
    try:
        return Source(
            str(recording), str(path), int(size), int(changed), float(seconds), reason, tuple(warnings.splitlines())
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(f"The entry of {path} is damaged: {error}.", hint=RESTORE) from error
