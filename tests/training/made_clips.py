"""Clips that exist in memory alone, for tests of everything that reads clips."""

import numpy as np

from utils.training.batches import PlannedUpdate, UpdatePlan
from utils.training.clips import ClipLengths, FeatureSource
from utils.training.packing import Example


def made_lengths(count: int, *, seed: int = 0, seconds: tuple[float, float] = (0.5, 11.5)) -> ClipLengths:
    """Draw lengths as a speaker has them: most clips last about 5 s."""
    random = np.random.default_rng(seed)
    drawn = np.clip(random.gamma(6, 0.9, count), *seconds)
    samples = (drawn * 22_050).astype(np.int64)
    ids = (drawn * 14).astype(np.int64) + random.integers(1, 9, count)
    return ClipLengths(samples, -(-samples // 1024), samples // 256 + 1, ids)


def epoch_of(plan: UpdatePlan, epoch: int = 0) -> list[PlannedUpdate]:
    return [plan[number] for number in range(epoch * len(plan), (epoch + 1) * len(plan))]


class MadeClips(FeatureSource):
    """Clips of random content, which depends on their number; notes which are read."""

    def __init__(self, lengths: ClipLengths) -> None:
        self.lengths = lengths
        self.read_clips: list[int] = []

    def read(self, clip: int, reference: int, start: int, frames: int) -> Example:
        self.read_clips.append(clip)
        random = np.random.default_rng(clip)
        ids = random.integers(1, 99, self.lengths.ids[clip])
        codes = random.integers(0, 1024, self.lengths.codes[clip]).astype(np.int16)
        random = np.random.default_rng([reference, 1])
        mel = random.standard_normal((int(self.lengths.frames[reference]), 80), np.float32).astype(np.float16)
        return Example(ids, codes, mel[start : start + frames])
