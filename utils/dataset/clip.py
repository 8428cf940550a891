"""The data types of a dataset: recordings as they are found, clips and files as they are stored."""

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from utils.config import MODEL_SECONDS
from utils.core.errors import AmharicTtsError
from utils.core.facts import Fact, from_json, to_json
from utils.core.storage import parse_json
from utils.dataset.errors import DatasetError
from utils.dataset.facts import Bad, Reason
from utils.recognition.levels import NOT_MEASURED, ClipScores
from utils.recognition.spans import Cue, Span

Status = Literal["kept", "excluded"]
Split = Literal["train", "eval", ""]
# Other clips hold the audio now.
REPLACED: frozenset[Reason] = frozenset({"trimmed", "split in two", "joined", "undone"})
MAX_SECONDS = MODEL_SECONDS  # of a clip
NAMED = 5  # names in a message; the others are counted


@dataclass(frozen=True, slots=True)
class Clip:
    """A stretch of a recording with its text."""

    id: str  # the recording's content hash and the span; never changes
    recording: str  # content hash
    source: str  # path or address of the recording
    span: Span
    speaker: str
    text: str  # as written
    audio: str = ""  # path below the dataset folder; empty if the clip was excluded before a file was written
    content: str = ""  # hash of the samples
    scores: ClipScores = NOT_MEASURED
    split: Split = ""
    status: Status = "kept"
    reason: Reason | None = None  # why it was excluded; of a kept clip, that a person approved it, or what to look at
    note: str = ""  # what the reason is about, such as the words that are not spoken, or a person's own reason
    words: str = ""  # JSON: each word with its start and end in seconds from the start of the clip
    other_text: str = ""  # what a recogniser, or another file, has instead
    before: str = ""  # JSON: the columns that change back when no filter excludes the clip any more

    @property
    def is_doubted(self) -> bool:
        """Whether it is in use although its text may be wrong, as its reason says."""
        return self.status == "kept" and self.reason not in {None, "approved"}

    def excluded(self, reason: Reason, note: str = "") -> "Clip":
        return dataclasses.replace(self, status="excluded", reason=reason, note=note, before="")


class Turn(NamedTuple):
    """A stretch of a recording in which one of several speakers talks."""

    span: Span
    speaker: str


@dataclass(frozen=True, slots=True)
class Recording:
    """One audio or video file, and the text that came with it."""

    path: Path
    speaker: str
    text: str = ""  # of the whole file, if known
    cues: tuple[Cue, ...] = ()  # from subtitles, in order, without overlap, within the recording
    warnings: tuple[Fact, ...] = ()  # what was changed or left out of the text
    turns: tuple[Turn, ...] = ()  # if there are several speakers
    other: tuple[Cue, ...] = ()  # what another text says, which is not used


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was processed; the same content under another path has a row of its own."""

    recording: str  # content hash; empty when the file could not be read
    path: str
    size: int = 0  # bytes
    changed: int = 0  # time of the last change, in nanoseconds
    seconds: float = 0.0
    bad: Bad | None = None  # why it gave no clips
    warnings: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The recordings found in the inputs, and the inputs that cannot be used."""

    recordings: tuple[Recording, ...]
    problems: tuple[Bad, ...] = ()
    notes: tuple[Fact, ...] = ()  # how the inputs were understood

    @staticmethod
    def joined(parts: Iterable["ScanResult"]) -> "ScanResult":
        parts = list(parts)
        return ScanResult(
            tuple(recording for part in parts for recording in part.recordings),
            tuple(problem for part in parts for problem in part.problems),
            tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        )


REASONS: dict[str, Reason] = {reason: reason for reason in get_args(Reason)}
SCORES = [score.name for score in dataclasses.fields(ClipScores)]
COLUMNS = (  # of a clip in the store
    "id",
    "recording",
    "source",
    "start",
    "end",
    "speaker",
    "text",
    *SCORES,
    "status",
    "reason",
    "content",
    "split",
    "audio",
    "note",
    "words",
    "other_text",
    "before",
)


def columns_of(clip: Clip) -> dict[str, Any]:
    """Return the values of a clip by their columns in the store."""
    values = dataclasses.asdict(clip) | {"reason": clip.reason or ""}
    values |= values.pop("span") | values.pop("scores")
    return values


def clip_of_row(row: Sequence[Any]) -> Clip:
    """Make a clip of its row, and refuse one that is damaged or names files outside the dataset.

    Runs of version 1.1 stored rows without the last columns.
    """
    values = dict(zip(COLUMNS, row, strict=False))
    try:
        scores = [None if score is None else float(score) for score in map(values.pop, SCORES)]
        span = Span(float(values.pop("start")), float(values.pop("end")))
    except (TypeError, ValueError) as error:
        raise _damaged(values["id"], error) from error
    _verify(**values)
    written = values["reason"]
    values["reason"] = REASONS.get(written, "other" if written else None)
    if values["reason"] == "other" and not values["note"]:  # version 1.1 stored a person's words as the reason
        values["note"] = written
    return Clip(**values, span=span, scores=ClipScores(*scores))


def _verify(*, id: object, status: object, split: object, audio: Any, **texts: object) -> None:  # noqa: A002, ANN401
    """Refuse values that this program never writes, or that name files outside the dataset."""
    if status not in {"kept", "excluded"} or split not in {"train", "eval", ""}:
        raise _damaged(id, f"status {status!r}, split {split!r}")
    if not all(isinstance(value, str) for value in (id, audio, *texts.values())):
        raise _damaged(id, "a text is missing or a number")
    leads_out = audio.startswith("/") or ".." in audio.split("/") or "\\" in audio or ":" in audio
    if leads_out or any(sign in str(id) for sign in "/\\:"):  # ids become file names
        raise DatasetError(Path(str(id)), "outside", audio)


def _damaged(name: object, detail: object) -> DatasetError:
    return DatasetError(Path(str(name)), "damaged", str(detail))


def changed_fields(old: Clip | None, new: Clip) -> tuple[str | None, str]:
    """Return the columns that differ, before and after, as JSON; of an added clip all of them."""
    after = columns_of(new)
    if old is None:
        return None, json.dumps(after, ensure_ascii=False)
    before = columns_of(old)
    names = [name for name in COLUMNS if before[name] != after[name]]
    written = (json.dumps({name: row[name] for name in names}, ensure_ascii=False) for row in (before, after))
    return next(written), next(written)


def with_fields(clip: Clip | None, written: str) -> Clip:
    """Return a clip with the columns that ``changed_fields`` wrote; without a clip they are all of them."""
    try:
        row = columns_of(clip or Clip("", "", "", Span(0, 0), "", "")) | parse_json(written)
        return clip_of_row([row[name] for name in COLUMNS])
    except (ValueError, TypeError, KeyError, AmharicTtsError) as error:
        raise DatasetError(Path(clip.id if clip else "clip"), "history") from error


def row_of_source(source: Source) -> list[Any]:
    bad = _written(source.bad) if source.bad else ""
    warnings = "\n".join(map(_written, source.warnings))
    return [source.recording, source.path, source.size, source.changed, source.seconds, bad, warnings]


def source_of_row(row: Sequence[Any]) -> Source:
    recording, path, size, changed, seconds, reason, warnings = row
    try:
        values = (str(recording), str(path), int(size), int(changed), float(seconds))
        facts = tuple(map(_fact_of, filter(None, warnings.split("\n"))))
        bad = _fact_of(reason) if reason else None
    except (TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, error) from error
    return Source(*values, bad if isinstance(bad, Bad) or bad is None else Bad(Path(values[1]), reason), facts)


def _written(fact: Fact) -> str:
    return json.dumps(to_json(fact), ensure_ascii=False)


def _fact_of(written: str) -> Fact:
    """Return a stored fact; version 1.1 stored sentences."""
    return from_json(parse_json(written) if written.startswith("{") else written)


def clip_id(recording: str, span: Span) -> str:
    return f"{recording}-{round(1000 * span.start):08d}-{round(1000 * span.end):08d}"


def total_seconds(clips: Iterable[Clip]) -> float:
    return sum(clip.span.seconds for clip in clips)


def group_clips(clips: Iterable[Clip], field: str) -> defaultdict[Any, list[Clip]]:
    """Return the clips that share a value, such as their speaker."""
    groups = defaultdict(list)
    for clip in clips:
        groups[getattr(clip, field)].append(clip)
    return groups


def abbreviate(names: Iterable[str]) -> str:
    """Join the first names and count the rest: ``a, b and 3 more``."""
    names = list(names)
    others = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + others
