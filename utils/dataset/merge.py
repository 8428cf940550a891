"""Two datasets become one; the one that is added is only read."""

import dataclasses
import shutil
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from utils.core.errors import DataError
from utils.core.storage import file_lock, retry_while_in_use, storage_error
from utils.dataset.clip import Clip
from utils.dataset.metadata import WAVS, read_language, write_lists
from utils.dataset.records import Source
from utils.dataset.store import LOCK, Dataset, load_dataset, open_store


@dataclass(frozen=True)
class Plan:
    """What a merge does, or would do.

    Attributes:
        recordings: New recordings with their clips.
        known: Recordings that are there already and stay as they are.
        duplicates: Clips whose very sound is there already; they come in set aside.
        missing: Clips whose audio file is not there; they are left out.
    """

    recordings: tuple[tuple[Source, tuple[Clip, ...]], ...]
    known: int
    duplicates: int
    missing: tuple[str, ...]

    def __str__(self) -> str:
        clips = [clip for _, group in self.recordings for clip in group]
        minutes = sum(clip.span.seconds for clip in clips if clip.status == "kept") / 60
        sentences = [f"{len(self.recordings)} new recordings with {len(clips)} clips ({minutes:.1f} min in use)."]
        if self.known:
            sentences.append(f"{self.known} recordings already exist and stay unchanged.")
        if self.duplicates:
            sentences.append(f"{self.duplicates} clips already exist and are excluded as duplicates.")
        if self.missing:
            sentences.append(f"{len(self.missing)} clips have no audio file and are skipped: {self.missing[0]} …")
        return " ".join(sentences)


def merge(target: Path, other: Path, *, dry_run: bool) -> Plan:
    """Add the recordings of another dataset with their clips and their split.

    Args:
        target: The dataset that grows.
        other: The dataset that is added.
        dry_run: Only say what would happen.
    """
    if target.resolve() == other.resolve():
        raise DataError(f"{target} cannot be merged with itself.", hint="Choose another dataset.")
    mine, theirs = read_language(target), read_language(other)
    if mine != theirs:
        raise DataError(
            f"{target} is in language {mine!r}, but {other} is in {theirs!r}.",
            hint="Use a separate project for each language.",
        )
    if dry_run:
        return plan(load_dataset(target), other)
    store = open_store(target)
    with file_lock(target / LOCK):
        made = plan(store.read(), other)
        for clip in (clip for _, clips in made.recordings for clip in clips if clip.audio):
            _copy(other / clip.audio, target / WAVS / Path(clip.audio).name)
        with store.transaction():
            for source, clips in made.recordings:
                store.add(source, clips)
            store.rank()
    write_lists(target)
    return made


def plan(mine: Dataset, other: Path) -> Plan:
    """Say what a merge would do."""
    theirs = load_dataset(other)
    sounds = {clip.content for clip in mine.kept}
    groups: defaultdict[str, list[Clip]] = defaultdict(list)
    missing, duplicates = [], 0
    for clip in theirs.clips.values():
        if clip.recording in mine.recordings:
            continue
        if clip.audio and not (other / clip.audio).is_file():
            missing.append(clip.audio)
            continue
        twice = clip.status == "kept" and clip.content in sounds
        duplicates += twice
        groups[clip.recording].append(dataclasses.replace(clip.excluded("duplicate"), split="") if twice else clip)
    new = {name: source for name, source in theirs.recordings.items() if name not in mine.recordings}
    recordings = tuple((source, tuple(groups[name])) for name, source in new.items())
    return Plan(recordings, len(theirs.recordings) - len(new), duplicates, tuple(missing))


def _copy(source: Path, target: Path) -> None:
    """Copy a file so that it appears under its name only when it is complete."""
    temporary = target.with_name(f".{target.name}.partial")
    try:
        shutil.copyfile(source, temporary)
        retry_while_in_use(lambda: temporary.replace(target))
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise storage_error(target, error) from error
