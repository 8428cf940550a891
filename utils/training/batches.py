"""Which clips make up each update: true epochs, clips of similar length together, the same on every machine.

The clips of an update and their reference segments depend only on the seed, the epoch and the effective batch. How an
update is split into batches for processes and memory does not change it.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from utils.config import TrainConfig
from utils.dataset.clip import Clip
from utils.media.arrays import Float64Array, Int64Array
from utils.media.rates import CODE_SAMPLES, FRAME_SAMPLES
from utils.training.clips import HALF_SECOND_FRAMES, ClipLengths
from utils.training.errors import NoUsableClipsError, SettingRefusedError
from utils.training.packing import PROMPT, TEXT_EXTRA, audio_inputs
from utils.training.references import ReferencePairs

REFERENCE = (6, 12)  # half seconds: coqui draws references of 3 to 6 s
OTHER_REFERENCE = 1  # half seconds, the shortest reference from another clip
WINDOW = 20  # updates whose clips are sorted by length together; more means less padding and less shuffling
FILL = 0.93  # share of a token budget for clips; the rest is padding, so that no extra batch is needed
CODE_FRAMES = CODE_SAMPLES // FRAME_SAMPLES
GRID, GRID_STEP = 6, 8  # fixed lengths for torch.compile, and what they are multiples of


@dataclass(frozen=True)
class ClipGroup:
    """Clips that are read together, shortest first."""

    clips: Int64Array  # numbers in the source
    references: Int64Array  # numbers of the clips whose sound is the reference
    starts: Int64Array  # first frame of each reference
    masked: Int64Array  # start and end of the codes that are excluded from the loss, for each clip
    positions: Int64Array  # sequence length of each clip
    frames: int  # length of every reference

    @property
    def longest(self) -> int:
        return int(self.positions.max(initial=PROMPT))

    def select(self, rows: Int64Array) -> "ClipGroup":
        return ClipGroup(
            self.clips[rows],
            self.references[rows],
            self.starts[rows],
            self.masked[rows],
            self.positions[rows],
            self.frames,
        )


@dataclass(frozen=True)
class PlannedUpdate(ClipGroup):
    """All clips of one update, over all processes."""

    text_count: int  # positions that count in the text loss
    audio_count: int  # positions that count in the audio loss


class _Epoch(NamedTuple):
    """All updates of an epoch, in shuffled order; update k has the rows from bound k to bound k + 1."""

    clips: Int64Array
    references: Int64Array
    starts: Int64Array
    masked: Int64Array
    bounds: Int64Array
    frames: Int64Array
    shuffle: Int64Array


@dataclass(frozen=True)
class ReplayClips:
    """Clips of other datasets, which follow those of the run: how many each has, and gives to an epoch."""

    sizes: tuple[int, ...]
    counts: tuple[int, ...]

    @classmethod
    def of_share(cls, share: float, clips: int, sizes: Sequence[int], weights: Sequence[float]) -> Self:
        """Divide a share of all clips by weights, beside so many clips of the run itself."""
        total = clips * share / (1 - share) / sum(weights)
        return cls(tuple(sizes), tuple(round(total * weight) for weight in weights))

    def draw(self, seed: int, epoch: int) -> Int64Array:
        """Return the clips of an epoch, counted from the first of them. Each comes again when all others did."""
        drawn = []
        first = 0
        for number, (size, count) in enumerate(zip(self.sizes, self.counts, strict=True)):
            start = epoch * count
            end = (epoch + 1) * count
            passes = range(start // size, -(-end // size))
            orders = [np.random.default_rng([seed, one, 2, number]).permutation(size) for one in passes]
            drawn.append(first + np.concatenate([*orders, np.zeros(0, np.int64)])[start % size :][:count])
            first += size
        clips: Int64Array = np.random.default_rng([seed, epoch, 3]).permutation(np.concatenate(drawn))
        return clips


NO_REPLAY = ReplayClips((), ())


@dataclass(eq=False)
class UpdatePlan:
    """The updates of a run.

    Each has a number of clips or, if ``positions`` is not 0, of positions, over all processes and accumulated batches.
    With a ``replay``, every update has the same share of its clips, rounded.
    """

    lengths: ClipLengths
    clips: int
    _: KW_ONLY
    positions: int = 0
    seed: int = 0
    mask_reference: bool = True
    pairs: ReferencePairs | None = None
    prefer_other_clip: bool = False
    replay: ReplayClips = NO_REPLAY

    def __post_init__(self) -> None:
        if not self.lengths.samples.size:
            raise NoUsableClipsError("train")
        self.own = self.lengths.samples.size - sum(self.replay.sizes)  # clips of the run itself
        self._planned = lru_cache(maxsize=2)(self._plan)

    @classmethod
    def from_config(
        cls,
        config: TrainConfig,
        lengths: ClipLengths,
        processes: int = 1,
        clips: Sequence[Clip] = (),
        replay: ReplayClips = NO_REPLAY,
    ) -> Self:
        """Plan a run; without the clips themselves, each is its own reference."""
        longest = int(lengths.positions.max(initial=0))
        times = config.grad_acumm * processes
        if 0 < config.batch_tokens < longest:
            raise SettingRefusedError("batch_tokens", "long_clip", longest)
        return cls(
            lengths,
            config.batch_size * times,
            positions=config.batch_tokens * times,
            seed=config.seed,
            mask_reference=config.mask_reference,
            pairs=ReferencePairs(clips, lengths.frames) if clips and config.reference != "same_clip" else None,
            prefer_other_clip=config.reference == "other_clip",
            replay=replay,
        )

    def __len__(self) -> int:
        if self.positions:  # rounded down: an update is then longer than any clip, so none is empty
            return max(1, int(self.lengths.positions.sum() / (self.positions * FILL)))
        return math.ceil((self.own + sum(self.replay.counts)) / self.clips)

    __iter__ = None  # the plan is endless, so iterating over it would never end

    def __getitem__(self, number: int) -> PlannedUpdate:
        """Return an update of the run by its number, from 0."""
        epoch_number, index = divmod(number, len(self))
        epoch = self._planned(epoch_number)
        number = epoch.shuffle[index]
        rows = np.arange(epoch.bounds[number], epoch.bounds[number + 1])
        rows = rows[np.argsort(self.lengths.positions[epoch.clips[rows]], kind="stable")]
        lengths = self.lengths.select(epoch.clips[rows])
        masked = epoch.masked[rows]
        text = int((lengths.ids + TEXT_EXTRA).sum())
        audio = int(audio_inputs(lengths.codes).sum() - np.diff(masked).sum())
        return PlannedUpdate(
            epoch.clips[rows],
            epoch.references[rows],
            epoch.starts[rows],
            masked,
            lengths.positions,
            int(epoch.frames[number]),
            text,
            audio,
        )

    # Long because random numbers are drawn here one after the other: their order is what makes a run repeatable.
    def _plan(self, epoch: int) -> _Epoch:
        """Plan an epoch, the same on every machine."""
        random = np.random.default_rng([self.seed, epoch])
        clips, bounds = self._ordered(self._mixed(random.permutation(self.own), epoch))
        shortest_wanted = OTHER_REFERENCE if self.prefer_other_clip else REFERENCE[0]
        wanted = random.integers(shortest_wanted, REFERENCE[1], len(self), endpoint=True)
        frames = self._available(clips, bounds, wanted)
        shares = random.random(clips.size)
        references = clips
        starts, masked = self._places(clips, references, bounds, frames, shares)
        if self.pairs is not None:
            is_protected = (np.diff(masked)[:, 0] > 0) & (not self.prefer_other_clip)
            references = np.where(is_protected, clips, self.pairs.draw(self.seed, epoch)[clips])
            frames = self._reference_frames(clips, references, bounds, frames, wanted)
            starts, masked = self._places(clips, references, bounds, frames, shares)
        return _Epoch(clips, references, starts, masked, bounds, frames, random.permutation(len(self)))

    def _places(
        self, clips: Int64Array, references: Int64Array, bounds: Int64Array, frames: Int64Array, shares: Float64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Return the first frame of each reference, and the codes of its own clip that it covers."""
        of_clip = np.repeat(frames, np.diff(bounds))
        starts = (shares * (self.lengths.frames[references] - of_clip + 1)).astype(np.int64)
        masked = masked_codes(starts, of_clip, self.lengths.codes[clips]) * int(self.mask_reference)
        return starts, masked * (references == clips)[:, None]

    def _reference_frames(
        self, clips: Int64Array, references: Int64Array, bounds: Int64Array, frames: Int64Array, wanted: Int64Array
    ) -> Int64Array:
        """Return the length of the references of each update; it grows only where no clip hears itself."""
        has_own = np.logical_or.reduceat(references == clips, bounds[:-1])
        longest = np.where(has_own & (not self.prefer_other_clip), frames // HALF_SECOND_FRAMES, wanted)
        return self._available(references, bounds, longest)

    def _available(self, references: Int64Array, bounds: Int64Array, wanted: Int64Array) -> Int64Array:
        """Return the frames of the wanted half seconds, or of as many as the shortest reference of an update has."""
        shortest = np.minimum.reduceat(self.lengths.frames[references], bounds[:-1]) // HALF_SECOND_FRAMES
        frames: Int64Array = np.maximum(1, np.minimum(wanted, shortest)) * HALF_SECOND_FRAMES
        return frames

    def reference_shares(self) -> dict[str, float]:
        """Return of the first epoch the share of clips with another reference, and of audio masked and unmasked."""
        epoch = self._planned(0)
        own = epoch.references == epoch.clips
        covered = np.repeat(epoch.frames, np.diff(epoch.bounds)) // CODE_FRAMES
        masked = np.diff(epoch.masked)[:, 0]
        codes = self.lengths.codes[epoch.clips].sum()
        return {
            "other_clip": float(1 - own.mean()),
            "masked": float(masked.sum() / codes),
            "heard_unmasked": float((covered * (own & (masked == 0))).sum() / codes),
        }

    def _mixed(self, own: Int64Array, epoch: int) -> Int64Array:
        """Place clips of other datasets among those of the run, at even distances."""
        if not any(self.replay.counts):
            return own
        others = self.own + self.replay.draw(self.seed, epoch)
        ends = np.arange(own.size + others.size + 1) * others.size // (own.size + others.size)
        is_other = np.diff(ends) > 0
        mixed = np.zeros(is_other.size, np.int64)
        mixed[is_other], mixed[~is_other] = others, own
        return mixed

    def _ordered(self, shuffled: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Sort shuffled clips by length within windows, and return them with the bounds of the updates.

        Those of other datasets are sorted among themselves, so that no update gets more of them than another.
        """
        updates = self._update_of(shuffled) if self.positions else np.arange(shuffled.size) // self.clips
        windows = updates // WINDOW
        # Every second window is sorted in reverse, so that updates on the border have clips of similar length.
        lengths = self.lengths.positions[shuffled] * (1 - 2 * (windows % 2))
        clips = shuffled.copy()
        for places in (np.flatnonzero(shuffled < self.own), np.flatnonzero(shuffled >= self.own)):
            clips[places] = shuffled[places][np.lexsort((lengths[places], windows[places]))]
        edges = np.arange(len(self) + 1)
        if self.positions:
            return clips, np.searchsorted(self._update_of(clips), edges)
        return clips, np.minimum(edges * self.clips, clips.size)

    def _update_of(self, clips: Int64Array) -> Int64Array:
        """Distribute clips over the updates of an epoch by their positions."""
        before = np.cumsum(self.lengths.positions[clips]) - self.lengths.positions[clips]
        share: Int64Array = before * len(self) // self.lengths.positions.sum()
        return share


def masked_codes(starts: Int64Array, frames: Int64Array, codes: Int64Array) -> Int64Array:
    """Return start and end of the codes that each clip's reference covers.

    Nothing is excluded if the reference covers more than half of a clip, as it does for every short clip: too little
    would remain to learn from.
    """
    first = starts // CODE_FRAMES
    last = np.minimum((starts + frames) // CODE_FRAMES, codes)
    marks: Int64Array = np.stack([first, last], axis=1) * (2 * (last - first) <= codes)[:, None]
    return marks


@dataclass(frozen=True)
class BatchSpec:
    """Size and shape of the batches of one process."""

    batch_size: int  # maximum clips per batch
    token_budget: int = 0  # maximum positions per batch, including padding, instead of clips; 0 to use clips
    rank: int = 0
    world: int = 1
    grid: tuple[int, ...] = ()  # fixed lengths for torch.compile; batches of one length have the same number of rows

    def padded_length(self, longest: int) -> int:
        return next((length for length in self.grid if length >= longest), longest)

    def max_rows(self, group: ClipGroup) -> int:
        """Maximum clips in a batch as long as this group; a single clip always fits."""
        return max(1, self.token_budget // self.padded_length(group.longest) if self.token_budget else self.batch_size)

    def shape(self, group: ClipGroup) -> tuple[int, int]:
        """Return the length that a batch is padded to, and its number of rows: 0 for as many as clips."""
        return self.padded_length(group.longest), self.max_rows(group) if self.grid else 0


def split_batches(group: ClipGroup, spec: BatchSpec) -> list[ClipGroup]:
    """Split clips into batches of similar length and return those of one process, longest first.

    Every process gets the same number of batches; some are empty if there are too few clips.
    """
    count = spec.world
    while True:
        groups = [group.select(rows) for rows in np.array_split(np.arange(group.clips.size), count)]
        if all(part.clips.size <= spec.max_rows(part) for part in groups):
            return groups[::-1][spec.rank :: spec.world]
        count += spec.world


# Long because it is one dynamic programme: costs are filled forwards, choices read backwards.
def compile_lengths(lengths: ClipLengths, buckets: int = GRID) -> tuple[int, ...]:
    """Choose fixed lengths for torch.compile that minimize the padding."""
    ends, counts = np.unique(-(-lengths.positions // GRID_STEP), return_counts=True)
    up_to = np.concatenate([[0], np.cumsum(counts)])
    best = up_to[1:] * ends
    choices = [np.zeros(ends.size, np.int64)]
    for _ in range(min(buckets, ends.size) - 1):  # the last bucket ends at j, the one before it at i
        costs = best[:, None] + np.triu((up_to[None, 1:] - up_to[1:, None]) * ends[None, :])
        costs[np.tril_indices(ends.size)] = np.iinfo(np.int64).max
        costs[0, 0] = best[0]
        choices.append(costs.argmin(0))
        best = costs.min(0)
    chosen = []
    end = ends.size - 1
    for choice in reversed(choices):
        chosen.append(int(ends[end]) * GRID_STEP)
        end = int(choice[end])
    return tuple(sorted(set(chosen)))
