"""Edits of a whole dataset that can be previewed: other quality filters, and the clips of another dataset.

Filters exclude clips that fail and restore clips that pass, as they were. Only clips that a filter excluded can come
back. Clips that a person excluded or approved, and duplicates, stay as they are; the reason tells them apart.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from utils.config import DatasetConfig
from utils.core.storage import file_lock, replacing, storage_errors
from utils.dataset.clip import Clip, Source, group_clips, total_seconds
from utils.dataset.database import LOCK
from utils.dataset.editor import editing
from utils.dataset.errors import DatasetError
from utils.dataset.facts import MergeTotal
from utils.dataset.filters import RULES, filtered, judge, without_copies
from utils.dataset.metadata import WAVS, read_language, write_lists
from utils.dataset.store import Dataset, load_dataset, open_store

LIMITS = (
    "min_seconds",
    "max_seconds",
    "min_speech_ratio",
    "max_clipping",
    "min_snr_db",
    "max_chars_per_second",
    "min_chars_per_second",
    "min_confidence",
    "max_second_cer",
)


@dataclass(frozen=True)
class FilterPlan:
    """What other limits do, or would do."""

    before: tuple[Clip, ...]  # the clips that change, as they are
    after: tuple[Clip, ...]  # the same clips as they become, in the same order
    kept: tuple[Clip, ...]  # all clips that are in use afterwards
    lost: tuple[str, ...]  # sides of the split that had clips and have none afterwards

    def __str__(self) -> str:
        pairs = list(zip(self.before, self.after, strict=True))
        lines = [
            *_by_reason("to be excluded", [new for old, new in pairs if old.status == "kept"]),
            *_by_reason("to be restored", [old for old, new in pairs if new.status == "kept"]),
            *_by_reason("excluded, new reason", [new for old, new in pairs if old.status == new.status]),
            f"{'in use afterwards':<26}{_sum(self.kept)}",
            *(f"The {side} split has no clips left. Choose a new one with: dataset resplit." for side in self.lost),
        ]
        return "\n".join(lines)


def refilter(folder: Path, settings: DatasetConfig, *, apply: bool) -> FilterPlan:
    """Judge all clips of a dataset by these limits; without ``apply``, nothing changes. Each change can be undone."""
    if not apply:
        return _plan_filters(load_dataset(folder), settings)
    with editing(folder, "quality filters") as session:
        plan = _plan_filters(session.store.read(), settings)
        session.put(plan.after)
        session.assign_split(settings.eval_share, settings.split_by)
    return plan


def _plan_filters(contents: Dataset, settings: DatasetConfig) -> FilterPlan:
    clips = contents.clips
    changed = {}
    for clip in clips.values():
        if _may_change(clip) and (reason := judge(clip, settings)) != (None if clip.is_doubted else clip.reason):
            changed[clip.id] = filtered(clip, reason)
    sounds = {clip.content for clip in contents.kept if clip.id not in changed}
    changed = {clip.id: clip for clip in without_copies(changed.values(), sounds)}  # as in a build
    kept = tuple(clip for clip in (clips | changed).values() if clip.status == "kept")
    lost = {clip.split for clip in contents.kept} - {clip.split for clip in kept} - {""}
    return FilterPlan(tuple(clips[name] for name in changed), tuple(changed.values()), kept, tuple(sorted(lost)))


def _may_change(clip: Clip) -> bool:
    """Return whether the rules may judge a clip: a person's decision stands, and so does what was never cut."""
    if clip.status == "kept":
        return clip.reason != "approved"
    return clip.reason in RULES and bool(clip.audio)


def _by_reason(title: str, clips: Sequence[Clip]) -> Iterator[str]:
    """Yield the sum, then a line for each reason, the costliest first."""
    yield f"{title:<26}{_sum(clips)}"
    for reason, group in sorted(group_clips(clips, "reason").items(), key=lambda item: -total_seconds(item[1])):
        yield f"  {reason:<24}{_sum(group)}"


def _sum(clips: Sequence[Clip]) -> str:
    return f"{len(clips)} clips, {total_seconds(clips):.1f} s"


@dataclass(frozen=True)
class MergePlan:
    """What a merge does, or would do."""

    recordings: tuple[tuple[Source, tuple[Clip, ...]], ...]  # new ones with their clips
    known: int  # recordings that exist already and stay unchanged
    duplicates: int  # clips whose exact audio exists already; they are added as excluded
    missing: tuple[str, ...]  # audio files that do not exist; their clips are skipped

    @property
    def total(self) -> MergeTotal:
        clips = [clip for _, group in self.recordings for clip in group]
        seconds = total_seconds([clip for clip in clips if clip.status == "kept"])
        missing = len(self.missing)
        return MergeTotal(len(self.recordings), len(clips), seconds, self.known, self.duplicates, missing)


def merge(target: Path, other: Path, *, dry_run: bool) -> MergePlan:
    """Add the recordings of another dataset with their clips and their split; a dry run only plans it."""
    if target.resolve() == other.resolve():
        raise DatasetError(target, "itself")
    mine = read_language(target)
    theirs = read_language(other)
    if mine != theirs:
        raise DatasetError(other, "language", theirs)
    if dry_run:
        return _plan_merge(load_dataset(target), other)
    store = open_store(target)
    with file_lock(target / LOCK):
        plan = _plan_merge(store.read(), other)
        for clip in (clip for _, clips in plan.recordings for clip in clips if clip.audio):
            copy = target / WAVS / Path(clip.audio).name
            with storage_errors(copy), replacing(copy) as temporary:
                shutil.copyfile(other / clip.audio, temporary)
        with store.transaction():
            for source, clips in plan.recordings:
                store.add(source, clips)
            store.rank()
    write_lists(target)
    return plan


def _plan_merge(mine: Dataset, other: Path) -> MergePlan:
    theirs = load_dataset(other)
    sounds = {clip.content for clip in mine.kept}
    clips = []
    missing = []
    duplicates = 0
    for clip in theirs.clips.values():
        if clip.recording in mine.recordings:
            continue
        if clip.audio and not (other / clip.audio).is_file():
            missing.append(clip.audio)
        elif clip.status == "kept" and clip.content in sounds:
            duplicates += 1
            clips.append(replace(clip.excluded("duplicate"), split=""))
        else:
            clips.append(clip)
    groups = group_clips(clips, "recording")
    new = {name: source for name, source in theirs.recordings.items() if name not in mine.recordings}
    known = len(theirs.recordings) - len(new)
    return MergePlan(tuple((new[name], tuple(groups[name])) for name in new), known, duplicates, tuple(missing))
