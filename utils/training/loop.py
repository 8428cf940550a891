"""The loop: updates, evaluations and saves, in the order in which they happen."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from utils.config import TrainConfig
from utils.core.errors import RunError
from utils.runs.job import Job
from utils.training.data_loader import Update, UpdateLoader
from utils.training.evaluation import Evaluator
from utils.training.guards import EarlyStopping, Overfitting, StepStatus
from utils.training.schedule import scale_rates
from utils.training.step import StepResult, TrainStep
from utils.training.throughput import Throughput
from utils.xtts.memory import trim_memory

PROGRESS_SECONDS = 1.0  # between two moves of the bar
RECENT = 50  # updates whose loss the running mean speaks of


@dataclass
class TrainState:
    """Where a run is; saved with everything else.

    Attributes:
        update: Updates done.
        samples: Clips learnt from.
        train_loss: Running mean of the loss of the audio.
        best_update: After which update the evaluation was best; 0: it never was better than at the start.
        best_loss: Its loss.
        evaluated: After which update the last evaluation was.
        eval_losses: What it found.
    """

    update: int = 0
    samples: int = 0
    train_loss: float | None = None
    best_update: int = 0
    best_loss: float | None = None
    evaluated: int = -1
    eval_losses: dict[str, float] = field(default_factory=dict)

    def count(self, update: Update, outcome: StepResult) -> None:
        """Count an update."""
        self.update += 1
        self.samples += update.clips
        if outcome.verdict is StepStatus.GO:
            before = outcome.audio if self.train_loss is None else self.train_loss
            self.train_loss = before + (outcome.audio - before) / min(self.update, RECENT)


class Keeping(Protocol):
    """What the loop asks of whoever saves."""

    def save(self, at: TrainState) -> None:
        """Write where the run is, so that it can go on from here."""

    def roll_back(self) -> TrainState | None:
        """Go back to what was saved last; None when nothing was."""

    def publish(self, at: TrainState, *, best: bool, spoken: bool) -> None:
        """Write a checkpoint that people can choose, with sound or without."""


@dataclass
class TrainingLoop:
    """What one run is made of, and how far it is.

    Attributes:
        config: The settings of the run.
        job: Hears wishes and writes events.
        stepper: Takes updates.
        loader: Gives them.
        per_epoch: Updates of an epoch.
        total: Updates of the run.
        judge: Evaluates the model.
        keeping: Saves and restores.
        meter: Knows rates and the time that is left.
        stopping: Knows when it gets no better.
        overfitting: Knows when it learns by heart.
        track: Sends figures to a tracker.
        at: Where the run is.
    """

    config: TrainConfig
    job: Job
    stepper: TrainStep
    loader: UpdateLoader
    per_epoch: int
    total: int
    judge: Evaluator
    keeping: Keeping
    meter: Throughput
    stopping: EarlyStopping
    overfitting: Overfitting
    track: Callable[[dict[str, Any], int], None]
    at: TrainState = field(default_factory=TrainState)
    _bar: float = 0.0
    _saved: int = -1

    def run(self) -> None:
        """Work until the last update, the early end, or a request to stop."""
        if self.at.evaluated < 0:
            self._evaluate()
        while not self._is_over():
            self._take_updates()
        if self.at.evaluated != self.at.update:
            self._evaluate()
        if self._saved != self.at.update:
            self._save()

    def _is_over(self) -> bool:
        return self.at.update >= self.total or self.stopping.is_over

    def _take_updates(self) -> None:
        """Take updates until the end, or until one goes wrong so often that the run has to go back."""
        for update in self.loader.run(self.at.update, self.total):
            self.meter.loaded()
            outcome = self.stepper.take(update)
            if outcome.verdict is StepStatus.ROLL_BACK:
                self._roll_back()
                return
            if outcome.verdict is StepStatus.GIVE_UP:
                raise RunError(self.stepper.guard.cause, hint=self.stepper.guard.cure)
            self.at.count(update, outcome)
            self._tell(update, outcome)
            self._do_what_is_due()
            if self._is_over():
                return

    def _do_what_is_due(self) -> None:
        done = self.at.update
        if done % (self.config.eval_step or self.per_epoch) == 0:
            self._evaluate()
        if done % self.config.save_step == 0:
            self._save()
        request = self.stepper.ranks.agreed_request(self.job.stop_request())
        if request == "save" and self._saved != done:
            self._save()
        self.stepper.ranks.raise_agreed(request)

    def _tell(self, update: Update, outcome: StepResult) -> None:
        figures = {
            "epoch": round(self.at.update / self.per_epoch, 3),
            "loss": outcome.loss,
            "loss_text": outcome.text,
            "loss_audio": outcome.audio,
            "grad_norm": outcome.norm,
            "learning_rate": outcome.rate,
            **self.meter.fields(update),
        }
        self.job.events.emit("train", step=self.at.update, **figures)
        self.track({f"train/{name}": value for name, value in figures.items()}, self.at.update)
        if outcome.verdict is StepStatus.SKIP:
            self.job.events.emit("warning", message=self.stepper.guard.sentence)
        if time.monotonic() - self._bar > PROGRESS_SECONDS or self.at.update == self.total:
            self._bar = time.monotonic()
            left = figures["seconds_left"]
            self.job.events.emit("progress", step=self.at.update, total=self.total, seconds_left=left)

    def _evaluate(self) -> None:
        """Evaluator the model; what is better than ever before becomes the best checkpoint."""
        began = time.monotonic()
        losses, more = self.judge.all()
        every = self.config.eval_step or self.per_epoch
        self.meter.leave_out(time.monotonic() - began, "evaluation", every)
        at = self.at
        first, at.evaluated, at.eval_losses = at.evaluated < 0, at.update, losses._asdict()
        figures = {"loss": losses.loss, "loss_text": losses.text, "loss_audio": losses.audio, **more}
        self.job.events.emit("evaluation", step=at.update, epoch=round(at.update / self.per_epoch, 3), **figures)
        self.track({f"evaluation/{name}": value for name, value in figures.items()}, at.update)
        if first and not at.update:
            return  # the base model: it is what the others are compared with, and no checkpoint
        if at.train_loss is not None and (sentence := self.overfitting.look(at.train_loss, losses.audio)):
            self.job.events.emit("warning", message=sentence)
        if self.stopping.better(losses.loss):
            at.best_update, at.best_loss = at.update, losses.loss
            self.keeping.publish(at, best=True, spoken=False)

    def _save(self) -> None:
        began = time.monotonic()
        self.keeping.publish(self.at, best=self.at.best_update == self.at.update, spoken=True)
        self.keeping.save(self.at)
        self._saved = self.at.update
        trim_memory()  # updates of many lengths leave holes in the heap: gigabytes on a CPU
        self.meter.leave_out(time.monotonic() - began, "save", self.config.save_step)

    def _roll_back(self) -> None:
        """Go back to what was saved last, and go on with half the rate."""
        self.at = self.keeping.roll_back() or self.at
        schedule, times = self.stepper.schedule, self.stepper.guard.rolled_back
        scale_rates(schedule, self.config.learning_rate * 0.5**times / float(schedule.base_lrs[0]))
        self.job.events.emit(
            "warning", message=f"{self.stepper.guard.sentence} Going on from update {self.at.update} at half the rate."
        )
