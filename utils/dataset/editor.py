"""The clip editor: every change that a person makes to a dataset, with one history of undo and redo.

An edit is one transaction and one step of the history, however many clips it changes. The history is stored with the
clips, so the last change can be undone after the page was closed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from utils.config import DatasetConfig
from utils.core.errors import ChangedMeanwhileError
from utils.core.storage import file_lock
from utils.dataset import split
from utils.dataset.clip import MAX_SECONDS, Clip, changed_fields, clip_id, with_fields
from utils.dataset.database import LOCK
from utils.dataset.errors import EditError
from utils.dataset.facts import HeldOut, Reason
from utils.dataset.metadata import WAVS, plain, write_lists_later
from utils.dataset.pipeline import content_hash, sound_hash
from utils.dataset.store import Store, open_store
from utils.media import audio
from utils.media.audio import Samples
from utils.media.loudness import levelled, loudness
from utils.media.rates import RATE
from utils.recognition import levels, vad
from utils.recognition.spans import Span, read_spans

HEARD: tuple[Reason, ...] = (
    "wrong transcript",
    "noise",
    "another speaker",
    "cut off",
    "music",
    "reviewed",
)  # reasons that a person is offered
SHORTEST = 0.3  # seconds, the shortest clip that any setting allows


@dataclass(frozen=True)
class Edit:
    """A change that was made."""

    name: str  # kind of change, such as ``trim``
    clips: tuple[Clip, ...]  # that it changed or added, as they are now


class Session:
    """A dataset while it is edited; the store has an open transaction."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.before: dict[str, Clip | None] = {}
        self.after: dict[str, Clip] = {}

    def clips(self, names: Iterable[str]) -> list[Clip]:
        """Return clips that must exist, each once."""
        names = list(dict.fromkeys(names))
        clips = self.store.find(names)
        if unknown := next((name for name in names if name not in clips), None):
            raise EditError("no_clip", unknown)
        return [clips[name] for name in names]

    def put(self, clips: Sequence[Clip]) -> None:
        old = self.store.find(clip.id for clip in clips)
        for clip in clips:
            self.before.setdefault(clip.id, old.get(clip.id))
            self.after[clip.id] = clip
        self.store.put(clips)

    def assign_split(self, share: float = 0.05, by: split.By = "recording") -> None:
        """Put kept clips without a side of the split on the side of their neighbours."""
        waiting = [clip for clip in self.after.values() if clip.status == "kept" and not clip.split]
        if not waiting:
            return
        recordings = {clip.recording: self.store.clips(recording=clip.recording) for clip in waiting}
        has_new = any(all(not clip.split for clip in clips) for clips in recordings.values())
        clips = self.store.clips() if has_new else [clip for clips in recordings.values() for clip in clips]
        sides = split.assign(clips, share, by).splits
        self.put([replace(clip, split=sides[clip.id]) for clip in clips if clip.id in sides])

    def record(self, name: str) -> None:
        changed = [(self.before[clip.id], clip) for clip in self.after.values() if clip != self.before[clip.id]]
        if changed:
            self.store.record(name, [(clip.id, *changed_fields(before, clip)) for before, clip in changed])


@contextmanager
def editing(folder: Path, name: str) -> Iterator[Session]:
    """Open a dataset for an edit, which becomes one step of the history."""
    store = open_store(folder)
    with file_lock(folder / LOCK), store.transaction():
        session = Session(store)
        yield session
        session.assign_split()
        session.record(name)
    write_lists_later(folder)


def available_actions(clip: Clip, following: Clip | None) -> list[str]:
    """Return what can be done with a clip; ``following`` is the next one of the recording."""
    has_audio = bool(clip.audio)
    is_complete = has_audio and bool(clip.text.strip())
    is_excluded = clip.status == "excluded"
    is_approved = clip.status == "kept" and clip.reason == "approved"
    can = {
        "approve": is_complete and not is_approved,
        "exclude": not is_excluded,
        "restore": is_complete and (is_excluded or is_approved),
        "trim": has_audio,
        "split": has_audio,
        "merge_next": has_audio and following is not None and following.span.end - clip.span.start <= MAX_SECONDS,
    }
    return [action for action, is_possible in can.items() if is_possible]


def set_text(folder: Path, name: str, text: str, typed_on: Collection[str] | None = None) -> Edit:
    """Correct the transcript of a clip, if it is still one of ``typed_on``. Scores that depend on it are dropped."""
    text = " ".join(text.split())
    if not text:
        raise EditError("empty_text")

    def change(clip: Clip) -> Clip:
        if typed_on is not None and clip.text not in typed_on:
            raise ChangedMeanwhileError(clip.id)
        pace = levels.letters(text) / clip.span.seconds if clip.span.seconds else None
        unknown = dict.fromkeys(("confidence", "second_cer", "text_match"))
        measured = replace(clip.scores, chars_per_second=pace, **unknown)
        reason = None if clip.is_doubted else clip.reason
        return replace(clip, text=text, scores=measured, reason=reason, note="", words="", other_text="", before="")

    return _change_each(folder, "text", [name], change)


def approve(folder: Path, names: Sequence[str]) -> Edit:
    """Mark clips as reviewed; excluded ones are restored."""
    return _change_each(folder, "approve", names, lambda clip: _kept(clip, "approved"))


def restore(folder: Path, names: Sequence[str]) -> Edit:
    """Use excluded clips again, and withdraw approvals."""
    return _change_each(folder, "restore", names, lambda clip: _kept(clip, None))


def exclude(folder: Path, names: Sequence[str], reason: str) -> Edit:
    """Leave clips out for one of the reasons that a person may hear, or in the person's own words."""
    words = reason.strip()
    if not words:
        raise EditError("no_reason")
    heard = next((known for known in HEARD if known == words), None)
    change = (lambda clip: clip.excluded(heard)) if heard else (lambda clip: clip.excluded("other", words))
    return _change_each(folder, "exclude", names, change)


def _change_each(folder: Path, what: str, names: Sequence[str], change: Callable[[Clip], Clip]) -> Edit:
    with editing(folder, what) as session:
        session.put([change(clip) for clip in session.clips(names)])
    return Edit(what, tuple(session.after.values()))


def _kept(clip: Clip, reason: Reason | None) -> Clip:
    if not clip.text.strip():
        raise EditError("no_text", clip.id)
    return replace(_with_audio(clip), status="kept", reason=reason, note="", before="")


def _with_audio(clip: Clip) -> Clip:
    if not clip.audio:
        raise EditError("no_audio", clip.id)
    return clip


def trim(folder: Path, name: str, start: float, end: float) -> Edit:
    """Replace a clip by the part of it between two times, in seconds from its start."""
    with editing(folder, "trim") as session:
        clip = _with_audio(*session.clips([name]))
        seconds = clip.span.seconds
        start = max(0.0, start)
        end = min(seconds, end)
        if end - start < SHORTEST:
            raise EditError("too_short", limit=SHORTEST)
        if end - start > seconds - 0.005:
            raise EditError("unchanged")
        part = part_of(folder, clip, start, end, clip.text)
        session.put([clip.excluded("trimmed"), part])
    return Edit("trim", (session.after[part.id],))


def split_clip(folder: Path, name: str, at: float) -> Edit:
    """Replace a clip by two, and divide its words between them by time."""
    with editing(folder, "split") as session:
        clip = _with_audio(*session.clips([name]))
        seconds = clip.span.seconds
        if not SHORTEST <= at <= seconds - SHORTEST:
            raise EditError("too_short", limit=SHORTEST)
        first, second = divide(clip.text, at / seconds)
        parts = [part_of(folder, clip, 0.0, at, first), part_of(folder, clip, at, seconds, second)]
        session.put([clip.excluded("split in two"), *parts])
    return Edit("split", tuple(session.after[part.id] for part in parts))


def divide(text: str, share: float) -> tuple[str, str]:
    """Divide the words of a text so that the first part has about this share of the letters."""
    words = text.split()
    if len(words) < 2:
        return (text, "") if share >= 0.5 else ("", text)
    letters = np.cumsum([len(word) for word in words])
    cut = int(np.argmin(np.abs(letters[:-1] - share * letters[-1]))) + 1
    return " ".join(words[:cut]), " ".join(words[cut:])


def merge_next(folder: Path, name: str) -> Edit:
    """Replace a clip and the next one of its recording by one clip, with the pause between them."""
    with editing(folder, "merge") as session:
        clip = _with_audio(*session.clips([name]))
        other = session.store.following(clip)
        if other is None:
            raise EditError("nothing_follows")
        span = Span(clip.span.start, max(clip.span.end, other.span.end))
        if span.seconds > MAX_SECONDS:
            raise EditError("too_long", f"{span.seconds:.1f}", MAX_SECONDS)
        if not has_recording(clip):
            raise EditError("no_recording", clip.source)
        merged = clip_of(folder, clip, span, f"{clip.text} {other.text}".strip())
        session.put([clip.excluded("joined"), other.excluded("joined"), merged])
    return Edit("merge", (session.after[merged.id],))


def has_recording(clip: Clip) -> bool:
    """Return whether the recording of a clip is still the one that it was cut from."""
    path = Path(clip.source)
    return path.is_file() and content_hash(path) == clip.recording


def clip_of(folder: Path, clip: Clip, span: Span, text: str) -> Clip:
    """Cut a new clip out of the recording of another one."""
    samples = audio.centred(next(read_spans(Path(clip.source), [span])))
    return new_clip(folder, clip, span, levelled(samples, RATE, loudness(samples, RATE)), text)


def part_of(folder: Path, clip: Clip, start: float, end: float, text: str) -> Clip:
    samples = audio.load(folder / clip.audio, RATE, start, end)
    return new_clip(folder, clip, Span(clip.span.start + start, clip.span.start + end), samples, text)


def new_clip(folder: Path, clip: Clip, span: Span, samples: Samples, text: str) -> Clip:
    """Write the audio of a new clip of the same recording, and measure it."""
    samples = audio.faded(samples, RATE)
    name = clip_id(clip.recording, span)
    path = f"{WAVS}/{name}.wav"
    audio.save(folder / path, samples, RATE)
    return replace(
        clip,
        id=name,
        span=span,
        text=text,
        audio=path,
        content=sound_hash(samples),
        scores=levels.measure(samples, RATE, vad.speech_segments(folder / path, DatasetConfig()), text),
        status="kept" if text else "excluded",
        reason=None if text else "no text left",
        note="",
        words="",
        other_text="",
        before="",
    )


def repair_list(folder: Path, share: float = 0.05, by: split.By = "recording") -> Edit:
    """Give clips the texts that were found to fit them instead of those of their list."""
    with editing(folder, "repair") as session:
        proposed = session.store.proposed()
        session.put([with_fields(clip, proposed[clip.id]) for clip in session.clips(proposed)])
        session.assign_split(share, by)
    return Edit("repair", tuple(session.after.values()))


def rename_speakers(folder: Path, names: Mapping[str, str]) -> dict[str, int]:
    """Rename speakers, all at once, and count their clips by old name; two that get the same name become one."""
    for new in names.values():
        if not new or plain(new) != new:
            raise EditError("speaker_name", new)
    with editing(folder, "speaker") as session:
        clips = session.store.clips()
        known = sorted({clip.speaker for clip in clips})
        if not names.keys() <= set(known):
            raise EditError("no_speaker", ", ".join(known))
        renamed = [clip for clip in clips if names.get(clip.speaker, clip.speaker) != clip.speaker]
        session.put([replace(clip, speaker=names[clip.speaker]) for clip in renamed])
    return {old: sum(clip.speaker == old for clip in renamed) for old in names}


def resplit(folder: Path, share: float, by: split.By) -> HeldOut | None:
    """Choose the evaluation split of all clips anew; return what to know about it."""
    with editing(folder, "evaluation split") as session:
        clips = [replace(clip, split="") for clip in session.store.clips()]
        choice = split.assign(clips, share, by)
        session.put([replace(clip, split=choice.splits.get(clip.id, "")) for clip in clips])
    return choice.note


def revert(folder: Path, name: str) -> Edit:
    """Undo the last change of one clip, whatever was edited since; a second time takes that back."""
    with editing(folder, "revert") as session:
        (clip,) = session.clips([name])
        change = session.store.last_change(name)
        if change is None:
            raise EditError("not_changed", name)
        if change[0] is None:
            raise EditError("made_by_edit", name)
        session.put([with_fields(clip, change[0])])
    return Edit("revert", (session.after[name],))


def undo(folder: Path) -> Edit:
    return _step(folder, undo=True)


def redo(folder: Path) -> Edit:
    """Make the edit again that was undone last."""
    return _step(folder, undo=False)


def _step(folder: Path, *, undo: bool) -> Edit:
    store = open_store(folder)
    with file_lock(folder / LOCK), store.transaction():
        step = store.step(undo=undo)
        if step is None:
            raise EditError("nothing_to_undo" if undo else "nothing_to_redo")
        clips = store.find(step.clips)
        changed = [with_fields(clips.get(clip), fields) for clip, fields in step.clips.items() if fields]
        store.put(changed)
        store.delete(clip for clip, fields in step.clips.items() if not fields)
        store.mark(step, undone=undo)
    write_lists_later(folder)
    return Edit(step.name, tuple(changed))


def last_edit(folder: Path) -> str:
    """Return the name of the edit that would be undone; empty if there is none."""
    step = open_store(folder).step(undo=True)
    return step.name if step else ""
