"""Changes to a finished dataset: a text, a name, what is set aside, the split. Each is a new row and can be undone."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from utils.core.errors import DataError
from utils.core.storage import file_lock
from utils.dataset import split
from utils.dataset.clip import Clip
from utils.dataset.coqui_lists import plain, read_language, write_lists
from utils.dataset.manifest import LOCK, Contents, Manifest, Signature, Source, book_of, signed
from utils.dataset.rules import REASONS
from utils.dataset.scores import letters


@dataclass
class Session:
    """A dataset while its lock is held."""

    book: Manifest
    contents: Contents

    def change(self, clips: Sequence[Clip]) -> None:
        """Write new rows for these clips."""
        self.book.change(clips)
        self.contents.clips.update({clip.id: clip for clip in clips})

    def add(self, source: Source, clips: Sequence[Clip]) -> None:
        """Write a new recording with its clips, whose audio has to be on disk."""
        self.change(clips)
        self.book.note(source)
        self.contents.files[source.path] = self.contents.recordings[source.recording] = source

    def settle(self, share: float, by: split.By) -> str:
        """Choose the split of kept clips that have none; return what a person should know about it."""
        choice = split.assign(self.contents.clips.values(), share, by)
        self.change(
            [dataclasses.replace(self.contents.clips[name], split=side) for name, side in choice.splits.items()]
        )
        return choice.note


@contextmanager
def editing(folder: Path) -> Iterator[Session]:
    """Open a dataset for changes; the lists are made anew at the end."""
    book = book_of(folder)
    with file_lock(folder / LOCK):
        session = Session(book, _as_left(book))
        yield session
        write_lists(folder, session.contents.clips.values(), read_language(folder))
        _left[folder] = signed(folder), session.contents


# A person changes one clip after the other, and reading 50 000 takes a second: what the last change left is kept, for
# one dataset alone.
_left: dict[Path, tuple[Signature, Contents]] = {}


def _as_left(book: Manifest) -> Contents:
    """Return what a dataset holds, read anew if anybody has written to it since its last change here."""
    signature, contents = _left.get(book.folder, ((), None))
    _left.clear()  # a change that fails leaves nothing
    return contents if contents and signature == signed(book.folder) else book.repair()


def change_text(folder: Path, name: str, text: str) -> Clip:
    """Give a clip another text; what was measured of the old one is forgotten."""
    text = text.strip()
    if not text:
        raise DataError(f"The new text of {name} is empty.", hint="To leave the clip out use: dataset edit --aside.")

    def said(clip: Clip) -> Clip:
        pace = letters(text) / clip.span.seconds if clip.span.seconds else None
        scores = dataclasses.replace(clip.scores, chars_per_second=pace, confidence=None, second_cer=None)
        return dataclasses.replace(clip, text=text, scores=scores)

    return _change(folder, [name], said)[0]


def set_aside(folder: Path, name: str, reason: str) -> Clip:
    """Leave a clip out for a reason, which must not be that of a rule: ``dataset filter`` takes such clips back."""
    if reason in REASONS:
        raise DataError(
            f"{reason!r} is what a rule says, and dataset filter may take such clips back.",
            hint=f"Say it in other words, such as {reason + ' to my ear'!r}.",
        )
    return _change(folder, [name], lambda clip: clip.aside(reason))[0]


def restore(folder: Path, names: Sequence[str]) -> list[Clip]:
    """Take clips back that were set aside, into the split of their neighbours."""
    return _change(folder, names, _kept)


def undo(folder: Path, name: str) -> Clip:
    """Take back the last change of a clip; a second time takes the undoing back."""
    versions = Manifest(folder).history(name)

    def earlier(clip: Clip) -> Clip:
        """Return the last version that differs in more than its split, which stays."""
        same_side = [dataclasses.replace(version, split=clip.split) for version in reversed(versions)]
        found = next((version for version in same_side if version != clip), None)
        if found is None:
            raise DataError(f"Clip {name} has not been changed.", hint="There is nothing to take back.")
        return found

    return _change(folder, [name], earlier)[0]


def resplit(folder: Path, share: float, by: split.By) -> str:
    """Choose the split of all clips anew; return what a person should know about it."""
    with editing(folder) as session:
        contents = session.contents
        fresh = {name: dataclasses.replace(clip, split="") for name, clip in contents.clips.items()}
        choice = split.assign(fresh.values(), share, by)
        wanted = [dataclasses.replace(clip, split=choice.splits.get(name, "")) for name, clip in fresh.items()]
        session.change([clip for clip in wanted if clip != contents.clips[clip.id]])
        return choice.note


def rename_speakers(folder: Path, names: Mapping[str, str]) -> dict[str, int]:
    """Give speakers other names, all at once; two that get one name become one speaker.

    Args:
        folder: The dataset folder.
        names: New names by old ones.

    Returns:
        The number of clips, set-aside ones included, by old name.
    """
    for new in names.values():
        if not new or plain(new) != new:
            raise DataError(f"{new!r} cannot be the name of a speaker.", hint='Leave out |, " and needless spaces.')
    with editing(folder) as session:
        clips = list(session.contents.clips.values())
        known = sorted({clip.speaker for clip in clips})
        if unknown := next((old for old in names if old not in known), None):
            raise DataError(f"There is no speaker {unknown!r} in {folder}.", hint=f"There are: {', '.join(known)}.")
        renamed = [clip for clip in clips if names.get(clip.speaker, clip.speaker) != clip.speaker]
        session.change([dataclasses.replace(clip, speaker=names[clip.speaker]) for clip in renamed])
        return {old: sum(clip.speaker == old for clip in renamed) for old in names}


def _kept(clip: Clip) -> Clip:
    if not clip.text.strip():
        raise DataError(f"Clip {clip.id} has no text.", hint="Give it one first: dataset edit --text.")
    if not clip.audio:
        raise DataError(f"Clip {clip.id} has no sound.")
    return dataclasses.replace(clip, status="kept", reason="")


def _change(folder: Path, names: Sequence[str], change: Callable[[Clip], Clip]) -> list[Clip]:
    """Change clips, all of them or none; one that comes back is split as its neighbours are."""
    with editing(folder) as session:
        clips = session.contents.clips
        for name in names:
            if name not in clips:
                raise DataError(f"There is no clip {name!r} in {folder}.", hint="Clips are listed in manifest.csv.")
        session.change([change(clips[name]) for name in names])
        session.settle(0.05, "recording")
        return [clips[name] for name in names]
