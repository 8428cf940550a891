"""Which clips make up each update: true epochs, clips of similar length together, and the same for every machine.

What an update holds, and which stretch of each clip is its reference, depends on the seed, the epoch and the effective
batch alone. How an update is cut for processes and for memory changes nothing in it.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from utils.config import TrainConfig
from utils.core.errors import ConfigError, DataError
from utils.media.rates import CODE_SAMPLES, FRAME_SAMPLES
from utils.training.clips import HALF_SECOND_FRAMES, ClipLengths
from utils.training.packing import AUDIO_EXTRA, PROMPT, TEXT_EXTRA, Integers

REFERENCE = (6, 12)  # half seconds: coqui draws references of 3 to 6 s
WINDOW = 20  # updates whose clips are sorted by length together
FILL = 0.93  # share of a token budget that clips may take: the rest is padding, so that no batch more is needed
CODE_FRAMES = CODE_SAMPLES // FRAME_SAMPLES
GRID, GRID_STEP = 6, 8  # fixed lengths for torch.compile, and what they are multiples of


@dataclass(frozen=True)
class ClipGroup:
    """Clips that are read together, shortest first.

    Attributes:
        clips: Their numbers in the source.
        starts: First frame of each reference.
        masked: First code of each that is left out of the loss, and the first one after it.
        positions: Length of each.
        frames: Length of every reference.
    """

    clips: Integers
    starts: Integers
    masked: Integers
    positions: Integers
    frames: int

    @property
    def longest(self) -> int:
        """Return the positions of the longest clip."""
        return int(self.positions.max(initial=PROMPT))

    def part(self, rows: Integers) -> "ClipGroup":
        """Return some of the clips."""
        return ClipGroup(self.clips[rows], self.starts[rows], self.masked[rows], self.positions[rows], self.frames)


@dataclass(frozen=True)
class PlannedUpdate(ClipGroup):
    """All clips of one update, over all processes.

    Attributes:
        text_count: Positions that count in the loss of the text.
        audio_count: Positions that count in the loss of the audio.
    """

    text_count: int
    audio_count: int


class UpdatePosition(NamedTuple):
    """Where an update lies in the run; both are counted from 0."""

    epoch: int
    update: int


class _Epoch(NamedTuple):
    """All updates of an epoch; number k has the rows from bound k to bound k + 1, and they come in shuffled order."""

    clips: Integers
    starts: Integers
    masked: Integers
    bounds: Integers
    frames: Integers
    shuffle: Integers


class UpdatePlan:
    """The updates of a run.

    Args:
        lengths: How long each clip is.
        clips: Clips of an update, over all processes and accumulated batches.
        positions: Fill updates with so many positions instead; 0: by clips.
        seed: Start of all that is random.
        window: Updates whose clips are sorted together; more of them mean less padding and less mixing.
        mask_reference: Leave the reference out of the loss.
    """

    def __init__(
        self,
        lengths: ClipLengths,
        clips: int,
        *,
        positions: int = 0,
        seed: int = 0,
        window: int = WINDOW,
        mask_reference: bool = True,
    ) -> None:
        if not lengths.samples.size:
            raise DataError("There is no clip to train on.", hint="See the reason given for each clip.")
        self.lengths, self.clips, self.positions, self.seed = lengths, clips, positions, seed
        self.window, self.mask_reference = window, mask_reference
        self._planned = lru_cache(maxsize=2)(self._plan)

    @classmethod
    def of(cls, config: TrainConfig, lengths: ClipLengths, processes: int = 1) -> Self:
        """Plan as the settings say."""
        longest, times = int(lengths.positions.max(initial=0)), config.grad_acumm * processes
        if 0 < config.batch_tokens < longest:
            raise ConfigError(
                f"batch_tokens: the longest clip takes {longest} positions, more than {config.batch_tokens}.",
                hint="Raise batch_tokens, or lower max_audio_length.",
            )
        return cls(
            lengths,
            config.batch_size * times,
            positions=config.batch_tokens * times,
            seed=config.seed,
            mask_reference=config.mask_reference,
        )

    def __len__(self) -> int:
        """Return the number of updates of an epoch, the same in every one."""
        if self.positions:  # rounded down: an update then is longer than any clip, so none stays empty
            return max(1, int(self.lengths.positions.sum() / (self.positions * FILL)))
        return math.ceil(self.lengths.samples.size / self.clips)

    __iter__ = None  # a run has no end that is known here; without this line a loop over the plan would never end

    def place(self, number: int) -> UpdatePosition:
        """Return where the update with this number of the run lies; the first one is 0."""
        return UpdatePosition(*divmod(number, len(self)))

    def __getitem__(self, number: int) -> PlannedUpdate:
        """Return the update with this number of the run."""
        epoch, update = self.place(number)
        return self._update(self._planned(epoch), update)

    def updates(self, epoch: int) -> list[PlannedUpdate]:
        """Return the updates of an epoch in their order."""
        planned = self._planned(epoch)
        return [self._update(planned, update) for update in range(len(self))]

    def _update(self, epoch: _Epoch, place: int) -> PlannedUpdate:
        number = epoch.shuffle[place]
        rows = np.arange(epoch.bounds[number], epoch.bounds[number + 1])
        lengths = self.lengths.take(epoch.clips[rows])
        masked = epoch.masked[rows]
        group = ClipGroup(epoch.clips[rows], epoch.starts[rows], masked, lengths.positions, int(epoch.frames[number]))
        text = int((lengths.ids + TEXT_EXTRA).sum())
        audio = int((lengths.codes + AUDIO_EXTRA).sum() - np.diff(masked).sum())
        return PlannedUpdate(
            **vars(group.part(np.argsort(group.positions, kind="stable"))), text_count=text, audio_count=audio
        )

    def _plan(self, epoch: int) -> _Epoch:
        """Plan an epoch; whatever is drawn here is drawn in the same order on every machine."""
        random = np.random.default_rng([self.seed, epoch])
        clips, bounds = self._ordered(random.permutation(self.lengths.samples.size))
        lengths = self.lengths.take(clips)
        shortest = np.minimum.reduceat(lengths.frames, bounds[:-1]) // HALF_SECOND_FRAMES
        wanted = random.integers(REFERENCE[0], REFERENCE[1], len(self), endpoint=True)
        frames = np.maximum(1, np.minimum(wanted, shortest)) * HALF_SECOND_FRAMES
        of_clip = np.repeat(frames, np.diff(bounds))
        starts = (random.random(clips.size) * (lengths.frames - of_clip + 1)).astype(np.int64)
        masked = masked_codes(starts, of_clip, lengths.codes) * int(self.mask_reference)
        return _Epoch(clips, starts, masked, bounds, frames, random.permutation(len(self)))

    def _ordered(self, shuffled: Integers) -> tuple[Integers, Integers]:
        """Sort shuffled clips by length within windows, and say where each update starts."""
        size = shuffled.size
        if self.positions:
            windows = self._update_of(shuffled) // self.window
        else:
            windows = np.arange(size) // (self.window * self.clips)
        # Every second window runs from long to short, so that an update on the border has clips of similar length.
        lengths = self.lengths.positions[shuffled] * (1 - 2 * (windows % 2))
        clips = shuffled[np.lexsort((lengths, windows))]
        edges = np.arange(len(self) + 1)
        if self.positions:
            return clips, np.searchsorted(self._update_of(clips), edges)
        return clips, np.minimum(edges * self.clips, size)

    def _update_of(self, clips: Integers) -> Integers:
        """BatchSpec out clips among the updates of an epoch by their positions."""
        before = np.cumsum(self.lengths.positions[clips]) - self.lengths.positions[clips]
        share: Integers = before * len(self) // self.lengths.positions.sum()
        return share


def masked_codes(starts: Integers, frames: Integers, codes: Integers) -> Integers:
    """Return for each clip the first code that its reference covers, and the first one after it.

    Where a reference covers more than half of a clip, which is so for every short clip, nothing is left out: too little
    would remain to learn from, and the shortest clips would teach nothing but their end.
    """
    first, last = starts // CODE_FRAMES, np.minimum((starts + frames) // CODE_FRAMES, codes)
    marks: Integers = np.stack([first, last], axis=1) * (2 * (last - first) <= codes)[:, None]
    return marks


@dataclass(frozen=True)
class BatchSpec:
    """What one process computes at a time.

    Attributes:
        batch_size: Most clips of a batch.
        token_budget: Fill batches by positions instead, padding included; 0: by clips.
        rank: Which process this is.
        world: How many there are.
        grid: Fixed lengths for torch.compile; all batches of one length have the same number of rows then.
    """

    batch_size: int
    token_budget: int = 0
    rank: int = 0
    world: int = 1
    grid: tuple[int, ...] = ()

    def padded(self, longest: int) -> int:
        """Return the fixed length that a batch is padded to, or its own where none is given."""
        return next((length for length in self.grid if length >= longest), longest)

    def rows(self, longest: int) -> int:
        """Return the fixed number of rows of a batch, or 0 where there are as many as clips."""
        if not self.grid:
            return 0
        return max(1, self.token_budget // self.padded(longest)) if self.token_budget else self.batch_size

    def fits(self, group: ClipGroup) -> bool:
        """Tell whether clips may be one batch; a single clip always may."""
        most = self.token_budget // self.padded(group.longest) if self.token_budget else self.batch_size
        return group.clips.size <= max(1, most)


def split_batches(group: ClipGroup, share: BatchSpec) -> list[ClipGroup]:
    """Cut clips into batches of similar length and return those of one process, the longest first.

    Every process gets equally many, because they wait for each other; where clips are lacking, a group is empty.
    """
    count = share.world
    while True:
        groups = [group.part(rows) for rows in np.array_split(np.arange(group.clips.size), count)]
        if all(map(share.fits, groups)):
            return groups[::-1][share.rank :: share.world]
        count += share.world


def compile_lengths(lengths: ClipLengths, buckets: int = GRID) -> tuple[int, ...]:
    """Choose the fixed lengths for torch.compile such that the padding of all clips is the least."""
    rounded = -(-lengths.positions // GRID_STEP)
    ends, counts = np.unique(rounded, return_counts=True)
    up_to = np.concatenate([[0], np.cumsum(counts)])
    best, choices = up_to[1:] * ends, [np.zeros(ends.size, np.int64)]
    for _ in range(min(buckets, ends.size) - 1):  # the last bucket ends at j, the one before it at i
        costs = best[:, None] + np.triu((up_to[None, 1:] - up_to[1:, None]) * ends[None, :])
        costs[np.tril_indices(ends.size)] = np.iinfo(np.int64).max
        costs[0, 0] = best[0]
        choices.append(costs.argmin(0))
        best = costs.min(0)
    chosen, end = [], ends.size - 1
    for choice in reversed(choices):
        chosen.append(int(ends[end]) * GRID_STEP)
        end = int(choice[end])
    return tuple(sorted(set(chosen)))
