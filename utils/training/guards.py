"""What watches a run: numbers that are not finite, a model that gets no better, and memory that does not suffice.

None of them touches the model. They count, say what has to follow, and keep their counts over a resume.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from utils.training.memory import NotEnoughMemoryError

if TYPE_CHECKING:
    from utils.training.packing import PackedBatch

SMALLEST_SCALE = 1.0  # where fp16 overflows even at this loss scale, the numbers themselves are too large
MOST_CLIPS = 5  # named in a message


class StepStatus(Enum):
    """What has to follow an update."""

    GO = "go"
    SKIP = "skip"
    ROLL_BACK = "roll back"
    GIVE_UP = "give up"


class Stateful:
    """Something whose counts are saved with the run."""

    kept: ClassVar[tuple[str, ...]] = ()

    def state_dict(self) -> dict[str, Any]:
        """Return the counts."""
        return {name: getattr(self, name) for name in self.kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the counts of an earlier session; what it did not know keeps its start."""
        for name in self.kept:
            setattr(self, name, state.get(name, getattr(self, name)))


class NonFiniteGuard(Stateful):
    """Judges each update by its numbers; a roll-back must not restore this guard, or it would never give up.

    Args:
        patience: Bad updates in a row before the run goes back to what was saved last.
        rollbacks: How often it goes back before it stops.
    """

    kept = ("streak", "rolled_back", "skipped")

    def __init__(self, patience: int = 3, rollbacks: int = 3) -> None:
        self.patience, self.rollbacks = patience, rollbacks
        self.streak = self.rolled_back = self.skipped = 0
        self.sentence = self.cause = ""
        self.cure = (
            "Lower learning_rate, switch off enable_mixed_precision, or lower gradient_clip; "
            "when it is always the same clips, listen to them and take them out."
        )

    def check(
        self, loss: float, grad_norm: float, *, scale: float | None = None, clips: Iterable[str] = ()
    ) -> StepStatus:
        """Judge an update before it is applied.

        Args:
            loss: Its loss.
            grad_norm: Length of its gradient before clipping.
            scale: Loss scale of fp16. Above 1, an infinite gradient only means that the scale is still too high.
            clips: Names of its clips, for the message.
        """
        bad = {name: value for name, value in {"loss": loss, "gradient": grad_norm}.items() if not math.isfinite(value)}
        if not bad:
            self.streak = 0
            return StepStatus.GO
        self.skipped += 1
        found = " and ".join(f"the {name} is {value}" for name, value in bad.items())
        if "loss" not in bad and scale is not None and scale > SMALLEST_SCALE:
            self.sentence = f"Update left out: {found}; the loss scale of fp16 falls and finds its place by itself."
            return StepStatus.SKIP
        self.streak += 1
        return self._judge(f"{found}{_named(clips)}")

    def _judge(self, found: str) -> StepStatus:
        if self.streak < self.patience:
            self.sentence = f"Update left out: {found}."
            return StepStatus.SKIP
        self.streak = 0
        if self.rolled_back < self.rollbacks:
            self.rolled_back += 1
            self.sentence = f"{self.patience} updates in a row were not finite: {found}."
            return StepStatus.ROLL_BACK
        self.cause = self.sentence = (
            f"The run went back {self.rollbacks} times, each time to half the learning rate, "
            f"and again {self.patience} updates in a row were not finite: {found}."
        )
        return StepStatus.GIVE_UP


class EarlyStopping(Stateful):
    """Counts evaluations that were no better than the best one.

    Args:
        patience: How many in a row end the run; 0: never.
    """

    kept = ("best", "waited")

    def __init__(self, patience: int = 0) -> None:
        self.patience = patience
        self.best: float | None = None
        self.waited = 0

    def better(self, loss: float) -> bool:
        """Take an evaluation; tell whether it is the best so far."""
        if math.isfinite(loss) and (self.best is None or loss < self.best):
            self.best, self.waited = loss, 0
            return True
        self.waited += 1
        return False

    @property
    def is_over(self) -> bool:
        """Tell whether the patience is at its end."""
        return 0 < self.patience <= self.waited


class Overfitting(Stateful):
    """Notices that the model learns its clips by heart: evaluations get worse while training gets better.

    Args:
        evaluations: How many times in a row the loss of the evaluation has to rise.
    """

    kept = ("train", "held_back", "has_warned")

    def __init__(self, evaluations: int = 3) -> None:
        self.evaluations = evaluations
        self.train: list[float] = []
        self.held_back: list[float] = []
        self.has_warned = False

    def look(self, train: float, held_back: float) -> str:
        """Take both losses after an evaluation; return a sentence once in each such episode, else nothing."""
        if self.held_back and held_back <= self.held_back[-1]:
            self.has_warned = False
        self.train = [*self.train, train][-self.evaluations - 1 :]
        self.held_back = [*self.held_back, held_back][-self.evaluations - 1 :]
        if self.has_warned or not self._diverges():
            return ""
        self.has_warned = True
        return (
            f"The model begins to learn its clips by heart: over {self.evaluations} evaluations the loss on clips it "
            f"does not know rose from {self.held_back[0]:.3f} to {self.held_back[-1]:.3f}, while on its own it fell "
            f"from {self.train[0]:.3f} to {self.train[-1]:.3f}. The best checkpoint is kept; you may stop here, "
            "or set early_stopping_patience."
        )

    def _diverges(self) -> bool:
        if len(self.held_back) <= self.evaluations:
            return False
        rises = all(later > earlier for earlier, later in zip(self.held_back, self.held_back[1:], strict=False))
        return rises and self.train[-1] < self.train[0]


class MicroBatches(Stateful):
    """Cuts batches in halves once memory did not suffice; the update stays the same, in more and smaller pieces.

    Args:
        batch_size: Clips of a batch before any halving.
        most: How often batches are halved before the run stops.
    """

    kept = ("splits",)

    def __init__(self, batch_size: int, most: int = 3) -> None:
        self.batch_size, self.most = batch_size, most
        self.splits = 0
        self.largest = batch_size  # clips of the largest piece of the last update

    def cut(self, batches: Sequence["PackedBatch"]) -> list["PackedBatch"]:
        """Return the batches in pieces that fit as far as is known."""
        pieces = [piece for batch in batches for piece in _halved(batch, self.splits)]
        self.largest = max((piece.clips for piece in pieces), default=0)
        return pieces

    def on_oom(self) -> str:
        """Halve from here on and say so; raise with the plan when that has been done often enough."""
        if self.splits >= self.most or self.largest <= 1:
            raise NotEnoughMemoryError(
                f"Memory did not suffice, not even for {self.largest} clip{'s' * (self.largest != 1)} at a time "
                f"after {self.splits} halvings.",
                hint="Switch on enable_grad_checkpoint, then enable_lora; or lower max_audio_length; other programs on "
                "the GPU take memory too. python -m utils memory-plan shows what fits.",
            )
        self.splits += 1
        size = (self.largest + 1) // 2
        return (
            f"Memory did not suffice for {self.largest} clips at a time: from here on {size}, in "
            f"{2**self.splits} times as many batches as planned. Each update still learns from the same clips."
        )


def _halved(batch: "PackedBatch", times: int) -> list["PackedBatch"]:
    """Halve a batch again and again, as long as it has two clips."""
    pieces = [batch]
    for _ in range(times):
        pieces = [half for piece in pieces for half in (piece.halves() if piece.clips > 1 else (piece,))]
    return pieces


def _named(clips: Iterable[str]) -> str:
    names = list(clips)
    more = ", ..." if len(names) > MOST_CLIPS else ""
    return f" (clips {', '.join(names[:MOST_CLIPS])}{more})" if names else ""
