"""Which clip the model hears as the reference of another: the clip itself, or another one of the same speaker.

A reference that covers most of a clip gives the target away, and masking it would leave nothing to learn. Another clip
of the speaker does not. Which one depends on the seed, the epoch and the clip alone, not on batches or processes.
"""

from collections.abc import Sequence

import numpy as np

from utils.dataset.clip import Clip
from utils.media.arrays import BoolArray, Int64Array

TRIES = 4  # clips looked at before a clip is its own reference


class ReferencePairs:
    """The other clips of each clip's speaker, from the longer half of them, because a voice shows in long clips.

    ``frames`` is the length of each clip. A clip that overlaps another in its recording is no reference of it.
    """

    def __init__(self, clips: Sequence[Clip], frames: Int64Array) -> None:
        self.speakers = np.unique([clip.speaker for clip in clips], return_inverse=True)[1].reshape(-1)
        self.recordings = np.unique([clip.recording for clip in clips], return_inverse=True)[1].reshape(-1)
        self.starts, self.ends = np.array([[clip.span.start, clip.span.end] for clip in clips]).reshape(-1, 2).T
        self.order = np.lexsort((-frames, self.speakers))  # the longest of each speaker first
        counts = np.bincount(self.speakers)
        self.first = (np.cumsum(counts) - counts)[self.speakers]
        self.counts = counts[self.speakers]

    def draw(self, seed: int, epoch: int) -> Int64Array:
        """Return the reference of each clip: another one, or the clip itself if there is none."""
        numbers = np.arange(self.speakers.size)
        longer = np.maximum(np.minimum(self.counts, 2), -(-self.counts // 2))
        drawn = (np.random.default_rng([seed, epoch, 1]).random(numbers.size) * longer).astype(np.int64)
        chosen = numbers.copy()
        waiting = np.ones(numbers.size, bool)
        for attempt in range(TRIES):
            others = self.order[self.first + (drawn + attempt) % self.counts]
            fits = waiting & ~self._overlap(numbers, others)
            chosen[fits] = others[fits]
            waiting &= ~fits
        return chosen

    def _overlap(self, clips: Int64Array, others: Int64Array) -> BoolArray:
        crossing = (self.starts[others] < self.ends[clips]) & (self.starts[clips] < self.ends[others])
        overlap: BoolArray = (clips == others) | ((self.recordings[clips] == self.recordings[others]) & crossing)
        return overlap
