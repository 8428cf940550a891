"""Reads the clips of each update ahead of its time: in loading processes, or in a thread where there are none."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from utils.core.batching import prefetch
from utils.training.batches import BatchSpec, ClipGroup, UpdatePlan, split_batches
from utils.training.clips import HALF_SECOND_FRAMES, ClipLengths, ClipSource
from utils.training.packing import PackedBatch, SpecialTokens, pack

EVAL_REFERENCE = 9  # half seconds: coqui evaluates with 4.5 s from the start of each clip
AHEAD = 2  # updates that each loading process reads before they are asked for


class Update(NamedTuple):
    """What one process computes for one update.

    Attributes:
        batches: Its own share, as many batches as every other process has; one may be empty.
        text_count: Positions that count in the loss of the text, over all processes.
        audio_count: Positions that count in the loss of the audio, over all processes.
        clips: Clips of all processes.
        number: Which update of the run it is; the first one is 0.
    """

    batches: list[PackedBatch]
    text_count: int
    audio_count: int
    clips: int
    number: int


class Request(NamedTuple):
    """An update before it is read: its batches, each with the least of positions and rows that it gets."""

    groups: list[ClipGroup]
    shapes: list[tuple[int, int]]
    update: Update


class UpdateLoader:
    """Reads the updates of a plan for one process.

    Args:
        source: Where the clips are.
        plan: What each update holds.
        tokens: What stands around text and codes.
        share: What this process computes at a time; may be changed, and holds for what is not read yet.
        workers: Loading processes; 0: a thread.
        pin: Read into memory that a GPU can fetch by itself.
    """

    def __init__(
        self,
        source: ClipSource,
        plan: UpdatePlan,
        tokens: SpecialTokens,
        share: BatchSpec,
        *,
        workers: int = 0,
        pin: bool = False,
    ) -> None:
        self.plan, self.share, self.reader = plan, share, Reader(source, tokens)
        self.workers, self.pin = workers, pin

    def run(self, first: int, last: int) -> Iterator[Update]:
        """Read updates from one number of the run up to another; nothing of those before is read."""
        requests = map(self.request, range(first, last))
        return self._by_processes(requests) if self.workers else prefetch(self._read, requests)

    def request(self, number: int) -> Request:
        """Say what is to be read for an update."""
        planned = self.plan[number]
        groups = split_batches(planned, self.share)
        shapes = [(self.share.padded(one.longest), self.share.rows(one.longest)) for one in groups]
        return Request(groups, shapes, Update([], planned.text_count, planned.audio_count, planned.clips.size, number))

    def _read(self, request: Request) -> Update:
        update = self.reader[request]
        return update._replace(batches=[one.pin_memory() for one in update.batches]) if self.pin else update

    def _by_processes(self, requests: Iterator[Request]) -> Iterator[Update]:
        """Let processes read; they are started once for the whole stretch."""
        loader = DataLoader(
            self.reader,
            batch_size=None,
            sampler=requests,
            num_workers=self.workers,
            collate_fn=_as_it_is,
            pin_memory=self.pin,
            prefetch_factor=AHEAD,
            generator=torch.Generator(),  # else each start would draw from the random numbers of the training
        )
        yield from loader


class Reader(Dataset[Update]):
    """Reads what is asked for; this is all that a loading process holds."""

    def __init__(self, source: ClipSource, tokens: SpecialTokens) -> None:
        self.source, self.tokens = source, tokens

    def __getitem__(self, request: Request) -> Update:
        """Read the batches of an update."""
        batches = [self.batch(group, *shape) for group, shape in zip(request.groups, request.shapes, strict=True)]
        return request.update._replace(batches=batches)

    def batch(self, group: ClipGroup, length: int = 0, rows: int = 0) -> PackedBatch:
        """Read one batch."""
        clips = zip(group.clips.tolist(), group.starts.tolist(), strict=True)
        examples = [self.source.read(clip, start, group.frames) for clip, start in clips]
        return pack(examples, self.tokens, masked=group.masked, length=length, rows=rows)


def _as_it_is(update: Any) -> Any:  # noqa: ANN401  # what the loader hands on is typed by its dataset
    return update


def eval_groups(lengths: ClipLengths, share: BatchSpec) -> list[ClipGroup]:
    """ClipGroup all clips for an evaluation that is the same every time, and for every batch size.

    The reference is the start of a clip, 4.5 s of it or as many half seconds as it has, and nothing is masked; clips
    are grouped by the length of their reference first, so no clip's reference depends on its neighbours.
    """
    frames = np.clip(lengths.frames // HALF_SECOND_FRAMES, 1, EVAL_REFERENCE) * HALF_SECOND_FRAMES
    groups = []
    for length in np.unique(frames).tolist():
        clips = np.flatnonzero(frames == length)
        clips = clips[np.argsort(lengths.positions[clips], kind="stable")]
        nothing = np.zeros((clips.size, 2), np.int64)
        alike = ClipGroup(clips, nothing[:, 0], nothing, lengths.positions[clips], length)
        groups += split_batches(alike, replace(share, rank=0, world=1))
    empty = groups[0].part(np.zeros(0, np.int64))
    return [*groups, *[empty] * (-len(groups) % share.world)][share.rank :: share.world]


def eval_batches(source: ClipSource, tokens: SpecialTokens, share: BatchSpec) -> Iterator[PackedBatch]:
    """Read all clips in the order of an evaluation; every process gets equally many batches."""
    reader = Reader(source, tokens)
    return (
        reader.batch(one, share.padded(one.longest), share.rows(one.longest))
        for one in eval_groups(source.lengths, share)
    )
