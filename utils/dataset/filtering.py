"""Apply other quality filters to a finished dataset: clips that fail are excluded, clips that pass are restored.

Only clips that a filter excluded can come back. Clips that a person excluded or approved, and duplicates, stay as they
are; the reason tells them apart, because a person cannot use the words of a filter (``editor.exclude``).
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.config import DatasetConfig
from utils.dataset.clip import APPROVED, Clip
from utils.dataset.editor import editing
from utils.dataset.rules import REASONS, judge
from utils.dataset.store import Dataset, load_dataset

LIMITS = (
    *("min_seconds", "max_seconds", "min_speech_ratio", "max_clipping", "min_snr_db"),
    *("max_chars_per_second", "min_chars_per_second", "min_confidence", "max_second_cer"),
)


@dataclass(frozen=True)
class Plan:
    """What other limits do, or would do.

    Attributes:
        before: The clips that change, as they are.
        after: The same clips as they become, in the same order.
        kept: The clips that are in use afterwards.
        lost: Sides of the split that had clips and have none afterwards.
    """

    before: tuple[Clip, ...]
    after: tuple[Clip, ...]
    kept: tuple[Clip, ...]
    lost: tuple[str, ...]

    def __str__(self) -> str:
        """Write the counts and seconds by reason, as lines for a person."""
        pairs = list(zip(self.before, self.after, strict=True))
        lines = [
            *_by_reason("to be excluded", [new for old, new in pairs if old.status == "kept"]),
            *_by_reason("to be restored", [old for old, new in pairs if new.status == "kept"]),
            *_by_reason("excluded, new reason", [new for old, new in pairs if old.status == new.status]),
            f"{'kept afterwards':<26}{_sum(self.kept)}",
            *(f"The {side} split has no clips left. Choose a new one with: dataset resplit." for side in self.lost),
        ]
        return "\n".join(lines)


def refilter(folder: Path, settings: DatasetConfig, *, apply: bool) -> Plan:
    """Judge all clips again; each change is a new row, so each can be undone.

    Args:
        folder: The dataset folder.
        settings: Its limits are what counts.
        apply: Write the changes; otherwise only say what they would be.
    """
    if not apply:
        return plan(load_dataset(folder), settings)
    with editing(folder, "quality filters") as session:
        made = plan(session.store.read(), settings)
        session.put(made.after)
        session.assign_split(settings.eval_share, settings.split_by)
    return made


def plan(contents: Dataset, settings: DatasetConfig) -> Plan:
    """Say what other limits would change."""
    clips = contents.clips
    changed = {clip.id: clip for clip in _without_copies(_judged(clips.values(), settings), contents)}
    kept = tuple(clip for clip in (clips | changed).values() if clip.status == "kept")
    sides = {clip.split for clip in contents.kept} - {clip.split for clip in kept}
    return Plan(tuple(clips[name] for name in changed), tuple(changed.values()), kept, tuple(sorted(sides - {""})))


def _judged(clips: Iterable[Clip], settings: DatasetConfig) -> Iterator[Clip]:
    """Yield the clips whose status or reason changes."""
    for clip in clips:
        if _is_open(clip) and (reason := judge(clip, settings)) != clip.reason:
            yield clip.excluded(reason) if reason else dataclasses.replace(clip, status="kept", reason="")


def _is_open(clip: Clip) -> bool:
    """Tell whether the rules may judge a clip: a person's decision stands, and so does what was never cut."""
    if clip.status == "kept":
        return clip.reason != APPROVED
    return clip.reason in REASONS and bool(clip.audio)


def _without_copies(changed: Iterable[Clip], contents: Dataset) -> Iterator[Clip]:
    """Set aside what would come back although its very sound is in use, as a build does."""
    changed = list(changed)
    leaving = {clip.id for clip in changed if clip.status == "excluded"}
    sounds = {clip.content for clip in contents.kept if clip.id not in leaving}
    for clip in changed:
        twice = clip.status == "kept" and clip.content in sounds
        if clip.status == "kept":
            sounds.add(clip.content)
        yield clip.excluded("duplicate") if twice else clip


def _by_reason(title: str, clips: Sequence[Clip]) -> Iterator[str]:
    """Write the sum, then a line for each reason, the costliest first."""
    groups: defaultdict[str, list[Clip]] = defaultdict(list)
    for clip in clips:
        groups[clip.reason].append(clip)
    yield f"{title:<26}{_sum(clips)}"
    for reason, group in sorted(groups.items(), key=lambda item: -_seconds(item[1])):
        yield f"  {reason:<24}{_sum(group)}"


def _sum(clips: Sequence[Clip]) -> str:
    return f"{len(clips)} clips, {_seconds(clips):.1f} s"


def _seconds(clips: Iterable[Clip]) -> float:
    return sum(clip.span.seconds for clip in clips)
