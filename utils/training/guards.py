"""Checks that watch a run: numbers that are not finite, a model that stops improving, and a full device memory.

None of them changes the model. They count, decide what happens next, and keep their counts when a run is resumed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from utils.training.memory import NotEnoughMemoryError

if TYPE_CHECKING:
    from utils.training.packing import PackedBatch

MIN_LOSS_SCALE = 1.0  # where fp16 overflows even at this loss scale, the numbers themselves are too large
MAX_CLIPS_NAMED = 5


class StepStatus(Enum):
    """What happens after an update."""

    APPLIED = "applied"
    SKIPPED = "skipped"
    ROLL_BACK = "roll back"
    FAILED = "failed"


class Stateful:
    """Base of classes whose counts are saved with the run."""

    saved_fields: ClassVar[tuple[str, ...]] = ()

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.saved_fields}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the counts of an earlier session; fields that it did not have keep their initial value."""
        for name in self.saved_fields:
            setattr(self, name, state.get(name, getattr(self, name)))


class NonFiniteGuard(Stateful):
    """Decides what to do with each update by its numbers. Rolling back must not restore it, or it would never fail."""

    saved_fields = ("streak", "rolled_back")
    hint = (
        "Lower learning_rate or gradient_clip, or turn off enable_mixed_precision. "
        "If the same clips are named each time, check them and remove them."
    )

    def __init__(self, patience: int = 3, rollbacks: int = 3) -> None:
        self.patience = patience  # bad updates in a row before the run rolls back to its last save
        self.rollbacks = rollbacks  # how often it rolls back before it fails
        self.streak = self.rolled_back = 0
        self.message = ""

    def check(
        self, loss: float, grad_norm: float, *, scale: float | None = None, clips: Iterable[str] = ()
    ) -> StepStatus:
        """Check an update by its loss and the norm of its gradient; the message names its clips.

        Above a loss scale of 1 in fp16, an infinite gradient only means that the scale is still too high.
        """
        bad = {name: value for name, value in {"loss": loss, "gradient": grad_norm}.items() if not math.isfinite(value)}
        if not bad:
            self.streak = 0
            return StepStatus.APPLIED
        problem = " and ".join(f"the {name} is {value}" for name, value in bad.items())
        if "loss" not in bad and scale is not None and scale > MIN_LOSS_SCALE:
            self.message = f"Skipped an update: {problem}. The fp16 loss scale is being lowered automatically."
            return StepStatus.SKIPPED
        self.streak += 1
        if names := list(clips):
            problem += f" (clips {', '.join(names[:MAX_CLIPS_NAMED])}{', ...' * (len(names) > MAX_CLIPS_NAMED)})"
        if self.streak < self.patience:
            self.message = f"Skipped an update: {problem}."
            return StepStatus.SKIPPED
        self.streak = 0
        if self.rolled_back < self.rollbacks:
            self.rolled_back += 1
            self.message = f"{self.patience} updates in a row were not finite: {problem}."
            return StepStatus.ROLL_BACK
        self.message = (
            f"The run rolled back {self.rollbacks} times, each time to half the learning rate, "
            f"and again {self.patience} updates in a row were not finite: {problem}."
        )
        return StepStatus.FAILED


class EarlyStopping(Stateful):
    """Counts evaluations without improvement; ``patience`` of them in a row end the run (0: never)."""

    saved_fields = ("best", "waited")

    def __init__(self, patience: int = 0) -> None:
        self.patience = patience
        self.best: float | None = None
        self.waited = 0

    def is_better(self, loss: float) -> bool:
        """Count an evaluation and tell whether it is the best so far."""
        if math.isfinite(loss) and (self.best is None or loss < self.best):
            self.best, self.waited = loss, 0
            return True
        self.waited += 1
        return False

    @property
    def should_stop(self) -> bool:
        return 0 < self.patience <= self.waited


class OverfittingGuard(Stateful):
    """Warns when the evaluation loss rises several times in a row while the training loss falls."""

    saved_fields = ("train", "held_back", "has_warned")

    def __init__(self, evaluations: int = 3) -> None:
        self.evaluations = evaluations
        self.train: list[float] = []
        self.held_back: list[float] = []
        self.has_warned = False

    def check(self, train_loss: float, eval_loss: float) -> str:
        """Record both losses after an evaluation; return a warning once per episode, else an empty string."""
        if self.held_back and eval_loss <= self.held_back[-1]:
            self.has_warned = False
        self.train = [*self.train, train_loss][-self.evaluations - 1 :]
        self.held_back = [*self.held_back, eval_loss][-self.evaluations - 1 :]
        eval_rises = all(later > earlier for earlier, later in pairwise(self.held_back))
        is_overfitting = len(self.held_back) > self.evaluations and eval_rises and self.train[-1] < self.train[0]
        if self.has_warned or not is_overfitting:
            return ""
        self.has_warned = True
        return (
            f"The model is overfitting: over {self.evaluations} evaluations the evaluation loss rose from "
            f"{self.held_back[0]:.3f} to {self.held_back[-1]:.3f}, while the training loss fell from "
            f"{self.train[0]:.3f} to {self.train[-1]:.3f}. The best checkpoint is kept. You can stop now, "
            "or set early_stopping_patience."
        )


class MicroBatches(Stateful):
    """Splits batches in half when memory runs out. The update stays the same, in more and smaller pieces."""

    saved_fields = ("splits",)

    def __init__(self, batch_size: int, max_splits: int = 3) -> None:
        self.max_splits = max_splits
        self.splits = 0
        self.largest = batch_size  # clips of the largest piece of the last update

    def split(self, batches: Sequence["PackedBatch"]) -> list["PackedBatch"]:
        """Return the batches in pieces of the size that is known to fit."""
        pieces = list(batches)
        for _ in range(self.splits):
            pieces = [half for piece in pieces for half in (piece.halves() if piece.clips > 1 else (piece,))]
        self.largest = max((piece.clips for piece in pieces), default=0)
        return pieces

    def on_oom(self) -> str:
        """Halve batches from now on and return a message; raise when that has been done often enough."""
        if self.splits >= self.max_splits or self.largest <= 1:
            raise NotEnoughMemoryError(
                f"Out of memory with {self.largest} clip{'s' * (self.largest != 1)} per batch, "
                f"after halving batches {self.splits} times.",
                hint="Turn on enable_grad_checkpoint, then enable_lora, or lower max_audio_length. Close other "
                "programs that use the GPU. To see what fits: python -m utils memory-plan.",
            )
        self.splits += 1
        return (
            f"Out of memory with {self.largest} clips per batch. Continuing with {(self.largest + 1) // 2}, in "
            f"{2**self.splits} times as many batches. Each update still uses the same clips."
        )
