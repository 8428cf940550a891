"""Load the clips of each update ahead of time, in worker processes or in a thread."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from utils.core.batching import prefetch
from utils.media.arrays import Int64Array
from utils.training.batches import BatchSpec, ClipGroup, PlannedUpdate, UpdatePlan, split_batches
from utils.training.clips import HALF_SECOND_FRAMES, ClipLengths, FeatureSource
from utils.training.packing import PackedBatch, SpecialTokens, pack

EVAL_REFERENCE = 9  # half seconds: coqui evaluates with 4.5 s from the start of each clip
AHEAD = 2  # updates that each worker prefetches


class Update(NamedTuple):
    """The batches of one process for one update; the counts are over all processes."""

    batches: list[PackedBatch]  # as many as every other process has; some may be empty
    text_count: int  # positions that count in the text loss
    audio_count: int  # positions that count in the audio loss
    clips: int
    number: int  # in the run, from 0


class UpdateLoader:
    """Reads the updates of a plan for one process, in worker processes or, with 0 ``workers``, in a thread."""

    def __init__(
        self,
        source: FeatureSource,
        plan: UpdatePlan,
        tokens: SpecialTokens,
        spec: BatchSpec,
        *,
        workers: int,
        pin: bool = False,
        ahead: int | None = None,
    ) -> None:
        self.plan, self.reader = plan, UpdateReader(source, tokens, spec)
        self.workers = workers
        self.pin = pin
        self.ahead = ahead or AHEAD

    def run(self, first: int, last: int) -> Iterator[Update]:
        requests = ((number, self.plan[number]) for number in range(first, last))
        if not self.workers:
            return prefetch(self._read, requests)
        return iter(
            DataLoader(
                self.reader,
                batch_size=None,
                sampler=requests,
                num_workers=self.workers,
                pin_memory=self.pin,
                prefetch_factor=self.ahead,
                generator=torch.Generator(),  # otherwise each start would use the random numbers of the training
            )
        )

    def _read(self, request: tuple[int, PlannedUpdate]) -> Update:
        update = self.reader[request]
        return update._replace(batches=[batch.pin_memory() for batch in update.batches]) if self.pin else update


@dataclass
class UpdateReader(Dataset[Update]):
    """Reads updates by number and plan; this is all that a worker process holds."""

    source: FeatureSource
    tokens: SpecialTokens
    spec: BatchSpec

    def __getitem__(self, request: tuple[int, PlannedUpdate]) -> Update:
        number, planned = request
        batches = [self.read_batch(group) for group in split_batches(planned, self.spec)]
        return Update(batches, planned.text_count, planned.audio_count, planned.clips.size, number)

    def read_batch(self, group: ClipGroup) -> PackedBatch:
        clips = zip(group.clips.tolist(), group.references.tolist(), group.starts.tolist(), strict=True)
        examples = [self.source.read(clip, reference, start, group.frames) for clip, reference, start in clips]
        length, rows = self.spec.shape(group)
        return pack(examples, self.tokens, masked=group.masked, length=length, rows=rows)


def eval_groups(lengths: ClipLengths, spec: BatchSpec, references: Int64Array | None = None) -> list[ClipGroup]:
    """Group all clips for an evaluation that is the same every time, and for every batch size.

    The reference is the start of a clip, or of another one, 4.5 s of it or as many half seconds as it has, and nothing
    is masked; clips are grouped by the length of their reference first, so no clip's reference depends on its
    neighbours.
    """
    references = np.arange(lengths.frames.size) if references is None else references
    frames = np.clip(lengths.frames[references] // HALF_SECOND_FRAMES, 1, EVAL_REFERENCE) * HALF_SECOND_FRAMES
    order = np.argsort(lengths.positions, kind="stable")
    groups = []
    for length in np.unique(frames).tolist():
        clips = order[frames[order] == length]
        nothing = np.zeros((clips.size, 2), np.int64)
        group = ClipGroup(clips, references[clips], nothing[:, 0], nothing, lengths.positions[clips], length)
        groups += split_batches(group, replace(spec, rank=0, world=1))
    empty = groups[0].select(np.zeros(0, np.int64))
    return (groups + [empty] * (-len(groups) % spec.world))[spec.rank :: spec.world]


def eval_batches(
    source: FeatureSource, tokens: SpecialTokens, spec: BatchSpec, references: Int64Array | None = None
) -> Iterator[PackedBatch]:
    """Load the evaluation batches; every process gets the same number."""
    return map(UpdateReader(source, tokens, spec).read_batch, eval_groups(source.lengths, spec, references))
