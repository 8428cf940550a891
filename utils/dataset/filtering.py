"""Apply other quality filters to a finished dataset: clips that fail are excluded, clips that pass are restored.

Only clips that a filter excluded can come back. Clips that a person excluded or approved, and duplicates, stay as they
are; the reason tells them apart, because a person cannot use the words of a filter (``editor.exclude``).
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.config import DatasetConfig
from utils.dataset.clip import APPROVED, Clip
from utils.dataset.editor import editing
from utils.dataset.scores import REASONS, judge
from utils.dataset.store import Dataset, load_dataset

LIMITS = (
    *("min_seconds", "max_seconds", "min_speech_ratio", "max_clipping", "min_snr_db"),
    *("max_chars_per_second", "min_chars_per_second", "min_confidence", "max_second_cer"),
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
            f"{'kept afterwards':<26}{_sum(self.kept)}",
            *(f"The {side} split has no clips left. Choose a new one with: dataset resplit." for side in self.lost),
        ]
        return "\n".join(lines)


def refilter(folder: Path, settings: DatasetConfig, *, apply: bool) -> FilterPlan:
    """Judge all clips of a dataset by these limits; without ``apply``, nothing changes. Each change can be undone."""
    if not apply:
        return _plan(load_dataset(folder), settings)
    with editing(folder, "quality filters") as session:
        plan = _plan(session.store.read(), settings)
        session.put(plan.after)
        session.assign_split(settings.eval_share, settings.split_by)
    return plan


def _plan(contents: Dataset, settings: DatasetConfig) -> FilterPlan:
    clips = contents.clips
    changed: dict[str, Clip] = {}
    for clip in clips.values():
        if _may_change(clip) and (reason := judge(clip, settings)) != clip.reason:
            changed[clip.id] = clip.excluded(reason) if reason else dataclasses.replace(clip, status="kept", reason="")
    sounds = {clip.content for clip in contents.kept if clip.id not in changed}
    for name, clip in changed.items():
        if clip.status == "kept" and clip.content in sounds:
            changed[name] = clip.excluded("duplicate")  # as in a build
        elif clip.status == "kept":
            sounds.add(clip.content)
    kept = tuple(clip for clip in (clips | changed).values() if clip.status == "kept")
    lost = {clip.split for clip in contents.kept} - {clip.split for clip in kept} - {""}
    return FilterPlan(tuple(clips[name] for name in changed), tuple(changed.values()), kept, tuple(sorted(lost)))


def _may_change(clip: Clip) -> bool:
    """Return whether the rules may judge a clip: a person's decision stands, and so does what was never cut."""
    if clip.status == "kept":
        return clip.reason != APPROVED
    return clip.reason in REASONS and bool(clip.audio)


def _by_reason(title: str, clips: Sequence[Clip]) -> Iterator[str]:
    """Yield the sum, then a line for each reason, the costliest first."""
    groups: defaultdict[str, list[Clip]] = defaultdict(list)
    for clip in clips:
        groups[clip.reason].append(clip)
    yield f"{title:<26}{_sum(clips)}"
    for reason, group in sorted(groups.items(), key=lambda item: -_seconds(item[1])):
        yield f"  {reason:<24}{_sum(group)}"


def _sum(clips: Sequence[Clip]) -> str:
    return f"{len(clips)} clips, {_seconds(clips):.1f} s"


def _seconds(clips: Sequence[Clip]) -> float:
    return sum(clip.span.seconds for clip in clips)
