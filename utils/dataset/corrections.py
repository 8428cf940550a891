"""Changes that a person makes to clips while listening to them, each of which can be taken back as a whole.

What a change did is noted in ``edits.jsonl`` beside the manifest: old and new value of every field, and the clips that
were added. So the last change can be undone after the page was closed, however many clips it touched.
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from utils.config import DatasetConfig
from utils.core.errors import DataError
from utils.core.events import Event, EventLog, read_events
from utils.dataset import scores, vad
from utils.dataset.clip import APPROVED, Clip, Scores, Span
from utils.dataset.coqui_lists import WAVS
from utils.dataset.editing import Session, editing
from utils.dataset.lengths import LIMIT
from utils.dataset.pipeline import read_spans, sound_hash
from utils.dataset.rules import REASONS
from utils.media import audio, loudness
from utils.media.audio import Samples
from utils.media.rates import RATE

JOURNAL = "edits.jsonl"
TAKEN_BACK = "taken back"
TRIMMED, SPLIT, JOINED = "trimmed", "split in two", "joined"
REPLACED = frozenset({TRIMMED, SPLIT, JOINED, TAKEN_BACK})  # reasons of clips whose sound lies in other clips now
SHORTEST = 0.3  # seconds, the least that any setting allows
CHANGING = ("status", "reason", "text", "scores")  # what a change of a clip may touch, its side of the split apart

Change = Callable[[Clip], Clip]


@dataclass(frozen=True)
class Done:
    """What a change did.

    Attributes:
        what: Its name, as a few words.
        clips: The clips that it changed or added, as they are now.
    """

    what: str
    clips: tuple[Clip, ...]


def approve(folder: Path, names: Sequence[str]) -> Done:
    """Mark clips as heard and found good; those that were set aside come back."""
    return _change(folder, "approve", names, lambda clip: dataclasses.replace(_kept(clip), reason=APPROVED))


def set_aside(folder: Path, names: Sequence[str], reason: str) -> Done:
    """Leave clips out for a reason in a person's own words."""
    reason = reason.strip()
    if not reason or reason in REASONS or reason == APPROVED:
        raise DataError(
            f"{reason!r} cannot be the reason: such words are kept for the rules.",
            hint=f"Say it in other words, such as {f'{reason} to my ear'.strip()!r}.",
        )
    return _change(folder, "set aside", names, lambda clip: clip.aside(reason))


def restore(folder: Path, names: Sequence[str]) -> Done:
    """Take clips back that were set aside, and take approvals back."""
    return _change(folder, "restore", names, lambda clip: dataclasses.replace(_kept(clip), reason=""))


def change_text(folder: Path, name: str, text: str) -> Done:
    """Give a clip another text; what a recogniser said of the old one is forgotten."""
    text = " ".join(text.split())
    if not text:
        raise DataError("The new text is empty.", hint="To leave the clip out, set it aside.")

    def said(clip: Clip) -> Clip:
        pace = scores.letters(text) / clip.span.seconds if clip.span.seconds else None
        measured = dataclasses.replace(clip.scores, chars_per_second=pace, confidence=None, second_cer=None)
        return dataclasses.replace(clip, text=text, scores=measured)

    return _change(folder, "text", [name], said)


def trim(folder: Path, name: str, start: float, end: float) -> Done:
    """Keep a part of a clip; the clip itself is set aside.

    Args:
        folder: The dataset folder.
        name: The clip.
        start: Where the part begins, in seconds from the start of the clip.
        end: Where it ends.
    """
    with correcting(folder, "trim") as session:
        clip = _heard(session, name)
        seconds = clip.span.seconds
        start, end = max(0.0, start), min(seconds, end)
        if end - start < SHORTEST:
            raise DataError(f"A clip has to last {SHORTEST:g} s at least.", hint="Move start and end further apart.")
        if end - start > seconds - 0.005:
            raise DataError("Start and end are those of the clip.", hint="Move one of them first.")
        part = _part(folder, clip, start, end, clip.text)
        session.change([clip.aside(TRIMMED), part])
    return _done("trim", session, [part.id])


def split(folder: Path, name: str, at: float) -> Done:
    """Make two clips of one, with the words shared out by time; the clip itself is set aside."""
    with correcting(folder, "split") as session:
        clip = _heard(session, name)
        seconds = clip.span.seconds
        if not SHORTEST <= at <= seconds - SHORTEST:
            raise DataError(
                f"Both parts have to last {SHORTEST:g} s at least.", hint="Choose another time to split at."
            )
        first, second = divided(clip.text, at / seconds)
        parts = [_part(folder, clip, 0.0, at, first), _part(folder, clip, at, seconds, second)]
        session.change([clip.aside(SPLIT), *parts])
    return _done("split", session, [part.id for part in parts])


def merge_next(folder: Path, name: str) -> Done:
    """Join a clip with the next one of its recording, and the pause between them; both are set aside."""
    with correcting(folder, "merge") as session:
        clip = _heard(session, name)
        other = next_of(session.contents.clips.values(), clip)
        if other is None:
            raise DataError("No clip in use follows this one in its recording.", hint="Choose an earlier clip.")
        span = Span(clip.span.start, max(clip.span.end, other.span.end))
        if span.seconds > LIMIT:
            raise DataError(
                f"Together they last {span.seconds:.1f} s, and a clip holds {LIMIT:g} s.",
                hint="Trim one of them first.",
            )
        samples = _recorded(clip, span)
        joined = _new(folder, clip, span, samples, f"{clip.text} {other.text}".strip())
        session.change([clip.aside(JOINED), other.aside(JOINED), joined])
    return _done("merge", session, [joined.id])


def next_of(clips: Collection[Clip] | Iterator[Clip], clip: Clip) -> Clip | None:
    """Return the clip in use that follows another one in its recording."""
    later = (
        other
        for other in clips
        if other.recording == clip.recording
        and other.status == "kept"
        and other.id != clip.id
        and other.span.start >= clip.span.start
        and other.span.end > clip.span.end
    )
    return min(later, key=lambda other: other.span.start, default=None)


def divided(text: str, share: float) -> tuple[str, str]:
    """Share the words of a text out between two parts, so that the first has about this share of the letters."""
    words = text.split()
    if len(words) < 2:
        return (text, "") if share >= 0.5 else ("", text)
    total = sum(map(len, words))
    reached = np.cumsum([len(word) for word in words])[:-1]
    cut = int(np.argmin(np.abs(reached - share * total))) + 1
    return " ".join(words[:cut]), " ".join(words[cut:])


def undo_last(folder: Path) -> Done:
    """Take back the last change that was not taken back yet."""
    with editing(folder) as session:
        if (note := last(folder)) is None:
            raise DataError("There is nothing to take back.", hint="Only changes made on the page are noted.")
        clips = session.contents.clips
        try:
            gone, back = _undone(note, clips)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            cure = f"Delete {JOURNAL}: the clips stay as they are, and only taking back is over."
            raise DataError(f"The last line of {folder / JOURNAL} is damaged: {error!r}.", hint=cure) from error
        session.change([*gone, *back])
        session.settle(0.05, "recording")
        _write(folder, "undone")
        return Done(str(note.get("what", "")), tuple(clips[clip.id] for clip in [*back, *gone]))


def _undone(note: Event, clips: Mapping[str, Clip]) -> tuple[list[Clip], list[Clip]]:
    """Return the clips that a change added, set aside, and those that it changed, as they were."""
    changed: Mapping[str, Mapping[str, Sequence[Any]]] = note["changed"]  # type: ignore[assignment]
    added: Sequence[str] = note["added"]  # type: ignore[assignment]
    gone = [clips[name].aside(TAKEN_BACK) for name in added if name in clips]
    return gone, [_with(clips[name], fields) for name, fields in changed.items() if name in clips]


def last(folder: Path) -> Event | None:
    """Return the note of the change that would be taken back next."""
    stack: list[Event] = []
    for event in read_events(folder / JOURNAL, 0, 1 << 30).events:
        if event["kind"] == "edit":
            stack.append(event)
        elif stack:
            stack.pop()
    return stack[-1] if stack else None


@contextmanager
def correcting(folder: Path, what: str) -> Iterator[Session]:
    """Open a dataset for one change, and note what it did."""
    with editing(folder) as session:
        before = dict(session.contents.clips)
        yield session
        session.settle(0.05, "recording")
        after = session.contents.clips
        touched = [name for name, clip in before.items() if after[name] is not clip]
        changed = {name: fields for name in touched if (fields := _diff(before[name], after[name]))}
        added = [name for name in after if name not in before]
        if changed or added:
            _write(folder, "edit", what=what, changed=changed, added=added)


def _change(folder: Path, what: str, names: Sequence[str], change: Change) -> Done:
    """Change clips, all of them or none."""
    with correcting(folder, what) as session:
        session.change([change(_found(session, name)) for name in dict.fromkeys(names)])
    return _done(what, session, names)


def _done(what: str, session: Session, names: Sequence[str]) -> Done:
    return Done(what, tuple(session.contents.clips[name] for name in names))


def _found(session: Session, name: str) -> Clip:
    clip = session.contents.clips.get(name)
    if clip is None:
        raise DataError(f"There is no clip {name!r}.", hint="Choose one in the list.")
    return clip


def _heard(session: Session, name: str) -> Clip:
    clip = _found(session, name)
    if not clip.audio:
        raise DataError(f"Clip {clip.id} has no sound.", hint="Choose another one.")
    return clip


def _kept(clip: Clip) -> Clip:
    if not clip.text.strip():
        raise DataError(f"Clip {clip.id} has no text.", hint="Give it one first.")
    if not clip.audio:
        raise DataError(f"Clip {clip.id} has no sound.", hint="Leave it aside.")
    return dataclasses.replace(clip, status="kept")


def _part(folder: Path, clip: Clip, start: float, end: float, text: str) -> Clip:
    """Make a clip of a part of another one's sound."""
    samples = audio.load(folder / clip.audio, RATE, start, end)
    return _new(folder, clip, Span(clip.span.start + start, clip.span.start + end), samples, text)


def _recorded(clip: Clip, span: Span) -> Samples:
    """Read a span of the recording itself, made as loud as clips are."""
    from utils.dataset.build import content_hash

    path = Path(clip.source)
    if not path.is_file() or content_hash(path) != clip.recording:
        raise DataError(
            f"The recording {path} is gone or was changed, so the pause between the clips cannot be read.",
            hint="Put it back.",
        )
    samples = loudness.centred(next(read_spans(path, [span])))
    return loudness.levelled(samples, RATE, scores.loudness(samples, RATE))


def _new(folder: Path, clip: Clip, span: Span, samples: Samples, text: str) -> Clip:
    """Write the sound of a new clip of the same recording and measure it."""
    samples = audio.faded(samples, RATE)
    name = f"{clip.recording}-{round(1000 * span.start):08d}-{round(1000 * span.end):08d}"
    path = f"{WAVS}/{name}.wav"
    audio.save(folder / path, samples, RATE)
    return dataclasses.replace(
        clip,
        id=name,
        span=span,
        text=text,
        audio=path,
        content=sound_hash(samples),
        scores=scores.measure(samples, RATE, vad.speech_segments(folder / path, DatasetConfig()), text),
        status="kept" if text else "aside",
        reason="" if text else "no words left for it",
    )


def _diff(old: Clip, new: Clip) -> dict[str, list[object]]:
    before, after = _fields(old), _fields(new)
    return {name: [before[name], after[name]] for name in CHANGING if before[name] != after[name]}


def _fields(clip: Clip) -> dict[str, object]:
    return {name: getattr(clip, name) for name in CHANGING} | {"scores": dataclasses.asdict(clip.scores)}


def _with(clip: Clip, fields: Mapping[str, Sequence[Any]]) -> Clip:
    """Give the fields of a clip their old values, unless somebody has changed them since."""
    now = _fields(clip)
    if any(now[name] != new for name, (_, new) in fields.items()):
        raise DataError(
            f"Clip {clip.id} was changed since in another way.", hint="See dataset edit --undo on the command line."
        )
    values: dict[str, Any] = {name: Scores(**old) if name == "scores" else old for name, (old, _) in fields.items()}
    changed = dataclasses.asdict(dataclasses.replace(clip, **values))
    return _checker().validate_python(changed)  # what is written to the manifest has to be readable there


@functools.cache
def _checker() -> TypeAdapter[Clip]:
    return TypeAdapter(Clip)


def _write(folder: Path, kind: str, **fields: object) -> None:
    with EventLog(folder / JOURNAL) as journal:
        journal.emit(kind, **fields)
