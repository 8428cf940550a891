"""Checks that watch a run: numbers that are not finite, a model that stops improving, and a full device memory.

None of them changes the model. They count, decide what happens next, and keep their counts when a run is resumed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from utils.training.errors import ClipsDoNotFitError
from utils.training.facts import BatchesHalved, Overfitting, ScaleLowered, UpdateSkipped

if TYPE_CHECKING:
    from utils.core.facts import WarningFact
    from utils.training.packing import PackedBatch

MIN_LOSS_SCALE = 1.0  # where fp16 overflows even at this loss scale, the numbers themselves are too large
MAX_CLIPS_NAMED = 5


# What happens after an update.
StepStatus = Literal["applied", "skipped", "roll back", "failed"]


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

    def __init__(self, patience: int = 3, rollbacks: int = 3) -> None:
        self.patience = patience  # bad updates in a row before the run rolls back to its last save
        self.rollbacks = rollbacks  # how often it rolls back before it fails
        self.streak = self.rolled_back = 0
        self.skipped: WarningFact = UpdateSkipped(0, 0)  # the newest update that was not applied

    def check(
        self, loss: float, grad_norm: float, *, scale: float | None = None, clips: Iterable[str] = ()
    ) -> StepStatus:
        """Check an update of some clips by its loss and the norm of its gradient.

        Above a loss scale of 1 in fp16, an infinite gradient only means that the scale is still too high.
        """
        if math.isfinite(loss) and math.isfinite(grad_norm):
            self.streak = 0
            return "applied"
        if math.isfinite(loss) and scale is not None and scale > MIN_LOSS_SCALE:
            self.skipped = ScaleLowered(grad_norm, scale)
            return "skipped"
        self.streak += 1
        self.skipped = UpdateSkipped(loss, grad_norm, tuple(islice(clips, MAX_CLIPS_NAMED)))
        if self.streak < self.patience:
            return "skipped"
        self.streak = 0
        if self.rolled_back == self.rollbacks:
            return "failed"
        self.rolled_back += 1
        return "roll back"


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
            self.best = loss
            self.waited = 0
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

    def check(self, train_loss: float, eval_loss: float) -> Overfitting | None:
        """Record both losses after an evaluation; return a warning, once per episode."""
        if self.held_back and eval_loss <= self.held_back[-1]:
            self.has_warned = False
        self.train = [*self.train, train_loss][-self.evaluations - 1 :]
        self.held_back = [*self.held_back, eval_loss][-self.evaluations - 1 :]
        eval_rises = all(later > earlier for earlier, later in pairwise(self.held_back))
        is_overfitting = len(self.held_back) > self.evaluations and eval_rises and self.train[-1] < self.train[0]
        if self.has_warned or not is_overfitting:
            return None
        self.has_warned = True
        return Overfitting(self.evaluations, self.held_back[0], self.held_back[-1], self.train[0], self.train[-1])


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

    def on_oom(self) -> BatchesHalved:
        """Halve batches from now on; raise when that has been done often enough."""
        if self.splits >= self.max_splits or self.largest <= 1:
            raise ClipsDoNotFitError(self.largest)
        self.splits += 1
        return BatchesHalved(self.largest, (self.largest + 1) // 2)
