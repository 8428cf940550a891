"""Writes an XTTS v2 of the published size with random weights, in the hub's layout.

The tensors have their full size, 467 million parameters; on disk they are views onto a few short runs of random
numbers, so that the folder takes a few megabytes and is written in seconds.
"""

from pathlib import Path

from utils.xtts import random_model


def write_full_size(folder: Path, seed: int = 0) -> Path:
    """Write it, unless it is there."""
    return random_model.build(folder, seed, random_model.PUBLISHED)
