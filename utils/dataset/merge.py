"""Merge two datasets; the one that is added is only read."""

import dataclasses
import shutil
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from utils.core.errors import DataError
from utils.core.storage import atomic_writer, file_lock
from utils.dataset.clip import Clip, Source
from utils.dataset.metadata import WAVS, read_language, write_lists
from utils.dataset.store import LOCK, Dataset, load_dataset, open_store


@dataclass(frozen=True)
class MergePlan:
    """What a merge does, or would do."""

    recordings: tuple[tuple[Source, tuple[Clip, ...]], ...]  # new ones with their clips
    known: int  # recordings that exist already and stay unchanged
    duplicates: int  # clips whose exact audio exists already; they are added as excluded
    missing: tuple[str, ...]  # audio files that do not exist; their clips are skipped

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


def merge(target: Path, other: Path, *, dry_run: bool) -> MergePlan:
    """Add the recordings of another dataset with their clips and their split; a dry run only plans it."""
    if target.resolve() == other.resolve():
        raise DataError(f"{target} cannot be merged with itself.", hint="Choose another dataset.")
    mine, theirs = read_language(target), read_language(other)
    if mine != theirs:
        raise DataError(
            f"{target} is in language {mine!r}, but {other} is in {theirs!r}.",
            hint="Use a separate project for each language.",
        )
    if dry_run:
        return _plan(load_dataset(target), other)
    store = open_store(target)
    with file_lock(target / LOCK):
        plan = _plan(store.read(), other)
        for clip in (clip for _, clips in plan.recordings for clip in clips if clip.audio):
            copy = target / WAVS / Path(clip.audio).name
            with (other / clip.audio).open("rb") as original, atomic_writer(copy) as file:
                shutil.copyfileobj(original, file)
        with store.transaction():
            for source, clips in plan.recordings:
                store.add(source, clips)
            store.rank()
    write_lists(target)
    return plan


def _plan(mine: Dataset, other: Path) -> MergePlan:
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
        is_duplicate = clip.status == "kept" and clip.content in sounds
        duplicates += is_duplicate
        groups[clip.recording].append(
            dataclasses.replace(clip.excluded("duplicate"), split="") if is_duplicate else clip
        )
    new = {name: source for name, source in theirs.recordings.items() if name not in mine.recordings}
    recordings = tuple((source, tuple(groups[name])) for name, source in new.items())
    return MergePlan(recordings, len(theirs.recordings) - len(new), duplicates, tuple(missing))
