"""Compare two checkpoints: settings, losses, and how far each part of the weights has moved."""

import math
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from safetensors import safe_open

from utils.core.errors import RunError
from utils.xtts.checkpoints import MODEL, Checkpoint, CheckpointInfo

LOSSES = ("epoch", "train_loss", "eval_loss", "eval_text", "eval_audio")


@dataclass(frozen=True)
class Comparison:
    """Differences between two checkpoints."""

    settings: dict[str, tuple[object, object]]  # those that differ, with both values; None if one has no such setting
    losses: dict[str, tuple[float | None, float | None]]  # and the scores of the spoken sentences
    moved: dict[str, tuple[float, float]]  # norm of the difference by part, absolute and relative to the weights' norm
    mismatched: tuple[str, ...]  # weights that only one of them has, or with a different shape


def compare(first: Checkpoint, second: Checkpoint) -> Comparison:
    """Compare two checkpoints, one weight at a time."""
    before, after = _info(first), _info(second)
    names = sorted(before.settings.keys() | after.settings.keys())
    settings = {name: (before.settings.get(name), after.settings.get(name)) for name in names}
    return Comparison(
        {name: pair for name, pair in settings.items() if pair[0] != pair[1]},
        {name: (getattr(before, name), getattr(after, name)) for name in LOSSES}
        | {name: (first.scores.get(name), second.scores.get(name)) for name in sorted({*first.scores, *second.scores})},
        *_moved(first, second),
    )


def _info(checkpoint: Checkpoint) -> CheckpointInfo:
    if checkpoint.info is None:
        raise RunError(checkpoint.error, hint="Choose another checkpoint.")
    return checkpoint.info


def _moved(first: Checkpoint, second: Checkpoint) -> tuple[dict[str, tuple[float, float]], tuple[str, ...]]:
    squares: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    with ExitStack() as stack:
        one: Any = stack.enter_context(safe_open(first.folder / MODEL, framework="pt"))
        two: Any = stack.enter_context(safe_open(second.folder / MODEL, framework="pt"))
        shared = sorted(set(one.keys()) & set(two.keys()))
        mismatched = set(one.keys()) ^ set(two.keys())
        for name in shared:
            before, after = one.get_tensor(name).float(), two.get_tensor(name).float()
            if before.shape != after.shape:
                mismatched.add(name)
                continue
            part = squares[name.partition(".")[0]]
            part[0] += float((after - before).square().sum())
            part[1] += float(before.square().sum())
    moved = {part: (math.sqrt(gap), math.sqrt(gap / (own or 1.0))) for part, (gap, own) in squares.items()}
    return moved, tuple(sorted(mismatched))
