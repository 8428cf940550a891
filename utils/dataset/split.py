"""Which clips are held out for evaluation: whole recordings or speakers, chosen by a stable hash.

A clip that has a split keeps it. So a dataset that grows never moves what a model was trained on into its evaluation.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

from utils.dataset.clip import Clip, Split, group_clips, total_seconds
from utils.dataset.facts import HeldOut

By = Literal["recording", "speaker", "time"]
Splits = dict[str, Split]  # by the id of a clip


class SplitChoice(NamedTuple):
    """The split of every clip that had none, and what a person should know about it."""

    splits: Splits
    note: HeldOut | None


def assign(clips: Iterable[Clip], share: float, by: By) -> SplitChoice:
    """Choose the split of all kept clips that have none, given every clip of the dataset.

    ``share`` is the part wanted for evaluation, ``by`` what stays together; a single recording is split by time.
    """
    clips = list(clips)
    kept = [clip for clip in clips if clip.status == "kept"]
    assigned = [clip for clip in clips if clip.split]
    splits = _split_like_neighbours(kept, assigned)
    new = [clip for clip in kept if not clip.split and clip.id not in splits]
    note = None
    if by == "speaker" and len({clip.speaker for clip in kept}) > 1:
        splits |= _split_by_group(new, assigned, share, attrgetter("speaker"))
    elif by == "time" or len({clip.recording for clip in kept}) == 1:
        splits |= _split_by_time(new, share)
        note = None if by == "time" else HeldOut("one_recording")
    else:
        splits |= _split_by_group(new, assigned, share, attrgetter("recording"))
        note = HeldOut("one_speaker") if by == "speaker" else None
    return SplitChoice(splits, note if new else None)


def _split_like_neighbours(kept: Iterable[Clip], assigned: Iterable[Clip]) -> Splits:
    """Return the split of new clips in recordings of which some clips have one."""
    neighbours = group_clips(assigned, "recording")
    splits = {}
    for clip in kept:
        if not clip.split and (others := neighbours.get(clip.recording)):
            nearest = min(others, key=lambda other: abs(other.span.start - clip.span.start))
            splits[clip.id] = nearest.split
    return splits


def _split_by_group(
    new: Sequence[Clip], assigned: Sequence[Clip], share: float, group: Callable[[Clip], str]
) -> Splits:
    """Split whole groups by their hash; neither side stays empty where there are two groups."""
    # a speaker of whom a part was held out joins the training: "train" sorts behind "eval" and wins
    known = {group(clip): clip.split for clip in sorted(assigned, key=lambda clip: clip.split)}
    names = sorted({group(clip) for clip in new} - known.keys(), key=_hash)
    chosen: dict[str, Split] = {name: "eval" if _hash(name) < share else "train" for name in names}
    sides = {clip.split for clip in assigned} | set(chosen.values())
    if len(known) + len(names) > 1 and names:
        if "eval" not in sides:
            chosen[names[0]] = "eval"
        if "train" not in sides:
            chosen[names[-1]] = "train"
    chosen |= known
    return {clip.id: chosen[group(clip)] for clip in new}


def _split_by_time(new: Sequence[Clip], share: float) -> Splits:
    """Hold out the last clips of each recording, and never all of them."""
    splits: Splits = {}
    for clips in group_clips(new, "recording").values():
        clips.sort(key=lambda clip: clip.span.start)
        wanted = share * total_seconds(clips)
        held_out = 0.0
        for clip in reversed(clips):
            splits[clip.id] = "eval" if held_out < wanted and clip is not clips[0] else "train"
            held_out += clip.span.seconds
    return splits


def _hash(name: str) -> float:
    """Map a name to [0, 1), the same on every machine."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64
