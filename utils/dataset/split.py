"""Which clips are held back for evaluation: whole recordings or speakers, chosen by a stable hash.

A clip that has a split keeps it. So a dataset that grows never moves what a model was trained on into its evaluation.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from utils.dataset.clip import Clip, Split

By = Literal["recording", "speaker", "time"]


class Choice(NamedTuple):
    """The split of every clip that had none, and what a person should know about it."""

    splits: dict[str, Split]
    note: str


def assign(clips: Iterable[Clip], share: float, by: By) -> Choice:
    """Choose the split of all kept clips that have none.

    Args:
        clips: Every clip of the dataset, set-aside ones included.
        share: Part that is wanted for evaluation.
        by: What stays together; a single recording is split by time.
    """
    clips = list(clips)
    kept = [clip for clip in clips if clip.status == "kept"]
    settled = [clip for clip in clips if clip.split]
    known = _grouped(settled, lambda clip: clip.recording)
    late = {
        clip.id: _nearest(clip, known[clip.recording]) for clip in kept if not clip.split and clip.recording in known
    }
    fresh = [clip for clip in kept if not clip.split and clip.id not in late]
    if not fresh:
        return Choice(late, "")
    group, note = _grouping(kept, by)
    if group is None:
        return Choice(late | _by_time(fresh, share), note)
    return Choice(late | _by_group(fresh, settled, share, group), note)


def _grouping(kept: Sequence[Clip], by: By) -> tuple[Callable[[Clip], str] | None, str]:
    """Return what stays together, or None for time blocks, and a sentence where it is not what was asked for."""
    if by == "time":
        return None, ""
    if by == "speaker" and len({clip.speaker for clip in kept}) > 1:
        return (lambda clip: clip.speaker), ""
    if len({clip.recording for clip in kept}) > 1:
        note = "" if by == "recording" else "There is only one speaker, so evaluation clips are chosen by recording."
        return (lambda clip: clip.recording), note
    return (
        None,
        "There is only one recording, so its end is held out for evaluation. It is similar to the training clips.",
    )


def _by_group(
    fresh: Sequence[Clip], settled: Sequence[Clip], share: float, group: Callable[[Clip], str]
) -> dict[str, Split]:
    """Send whole groups by their hash; neither side stays empty where there are two groups."""
    known: dict[str, Split] = {group(clip): clip.split for clip in sorted(settled, key=lambda clip: clip.split)}
    sides = {clip.split for clip in settled}  # a speaker of whom a part was held back goes on with the training
    names = sorted({group(clip) for clip in fresh} - known.keys(), key=_hash)
    chosen: dict[str, Split] = {name: "eval" if _hash(name) < share else "train" for name in names}
    for side, at in (("eval", 0), ("train", -1)):
        if len(known) + len(names) > 1 and names and side not in {*sides, *chosen.values()}:
            chosen[names[at]] = side  # type: ignore[assignment]
    both: Mapping[str, Split] = chosen | known
    return {clip.id: both[group(clip)] for clip in fresh}


def _by_time(fresh: Sequence[Clip], share: float) -> dict[str, Split]:
    """Hold back the last clips of each recording, and never all of them."""
    splits: dict[str, Split] = {}
    for clips in _grouped(fresh, lambda clip: clip.recording).values():
        clips.sort(key=lambda clip: clip.span.start)
        wanted = share * sum(clip.span.seconds for clip in clips)
        held = 0.0
        for clip in reversed(clips):
            late = held < wanted and clip is not clips[0]
            splits[clip.id] = "eval" if late else "train"
            held += clip.span.seconds
    return splits


def _nearest(clip: Clip, settled: Sequence[Clip]) -> Split:
    """Return the split of the clip that lies nearest in the same recording."""
    return min(settled, key=lambda other: abs(other.span.start - clip.span.start)).split


def _grouped(clips: Iterable[Clip], key: Callable[[Clip], str]) -> defaultdict[str, list[Clip]]:
    groups: defaultdict[str, list[Clip]] = defaultdict(list)
    for clip in clips:
        groups[key(clip)].append(clip)
    return groups


def _hash(name: str) -> float:
    """Map a name to [0, 1), the same on every machine."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64
