"""The training loop: updates, evaluations and saves, in the order in which they happen."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from utils.config import TrainConfig
from utils.core.errors import RunError
from utils.runs.job import Job, StopRequested
from utils.training.data_loader import Update, UpdateLoader
from utils.training.evaluation import Evaluator
from utils.training.guards import EarlyStopping, OverfittingGuard, StepStatus
from utils.training.schedule import scale_rates
from utils.training.step import StepResult, TrainStep
from utils.training.throughput import Throughput
from utils.xtts.device import trim_memory

PROGRESS_SECONDS = 1.0  # between progress events
LOSS_WINDOW = 50  # updates in the running mean of the training loss


@dataclass
class TrainState:
    """Progress of a run, saved with the resume state.

    Attributes:
        update: Updates done.
        samples: Clips trained on.
        train_loss: Running mean of the audio loss.
        best_update: Update with the best evaluation; 0 if none was better than the base model.
        best_loss: Its loss.
        evaluated: Update of the last evaluation.
        eval_losses: Losses of the last evaluation.
    """

    update: int = 0
    samples: int = 0
    train_loss: float | None = None
    best_update: int = 0
    best_loss: float | None = None
    evaluated: int = -1
    eval_losses: dict[str, float] = field(default_factory=dict)

    def count(self, update: Update, result: StepResult) -> None:
        """Count an update."""
        self.update += 1
        self.samples += update.clips
        if result.status is StepStatus.APPLIED:
            mean = result.audio if self.train_loss is None else self.train_loss
            self.train_loss = mean + (result.audio - mean) / min(self.update, LOSS_WINDOW)


class Saver(Protocol):
    """Saves and restores the run; see ``RunSaver``."""

    def save(self, state: TrainState) -> None:
        """Save everything needed to resume from here."""

    def roll_back(self) -> TrainState | None:
        """Return to the last save; None if there is none."""

    def write_checkpoint(self, state: TrainState, *, best: bool, speak: bool) -> None:
        """Write a checkpoint that people can choose, with or without spoken samples."""


@dataclass
class TrainingLoop:
    """Everything that a run consists of, and how far it is.

    Attributes:
        config: Settings of the run.
        job: Receives stop requests and writes events.
        step: Performs updates.
        loader: Provides updates.
        per_epoch: Updates per epoch.
        total: Updates of the run.
        evaluator: Evaluates the model.
        saver: Saves and restores the run.
        throughput: Measures speed and estimates the remaining time.
        stopping: Early stopping.
        overfitting: Warns about overfitting.
        track: Sends metrics to a tracker.
        state: Progress of the run.
    """

    config: TrainConfig
    job: Job
    step: TrainStep
    loader: UpdateLoader
    per_epoch: int
    total: int
    evaluator: Evaluator
    saver: Saver
    throughput: Throughput
    stopping: EarlyStopping
    overfitting: OverfittingGuard
    track: Callable[[dict[str, Any], int], None]
    state: TrainState = field(default_factory=TrainState)
    _progress: float = 0.0
    _saved: int = -1

    def run(self) -> None:
        """Train until the last update, early stopping, or a stop request."""
        if self.state.evaluated < 0:
            self._evaluate()
        while not self._is_done():
            self._train()
        if self.state.evaluated != self.state.update:
            self._evaluate()
        if self._saved != self.state.update:
            self._save()

    def _is_done(self) -> bool:
        return self.state.update >= self.total or self.stopping.should_stop

    def _train(self) -> None:
        """Perform updates until the end, or until the run has to roll back."""
        for update in self.loader.run(self.state.update, self.total):
            self.throughput.data_ready()
            result = self.step.run(update)
            if result.status is StepStatus.ROLL_BACK:
                self._roll_back()
                return
            if result.status is StepStatus.FAILED:
                raise RunError(self.step.guard.message, hint=self.step.guard.hint)
            self.state.count(update, result)
            self._report(update, result)
            self._evaluate_and_save_if_due()
            if self._is_done():
                return

    def _evaluate_and_save_if_due(self) -> None:
        done = self.state.update
        if done % (self.config.eval_step or self.per_epoch) == 0:
            self._evaluate()
        if done % self.config.save_step == 0:
            self._save()
        request = self.step.ranks.agree_on_stop(self.job.stop_request())
        if request == "save" and self._saved != done:
            self._save()
        if request:
            raise StopRequested(request)

    def _report(self, update: Update, result: StepResult) -> None:
        state = self.state
        metrics = {
            "epoch": round(state.update / self.per_epoch, 3),
            "loss": result.loss,
            "loss_text": result.text,
            "loss_audio": result.audio,
            "grad_norm": result.norm,
            "learning_rate": result.rate,
            **self.throughput.metrics(update),
        }
        self.job.events.emit("train", step=state.update, **metrics)
        self.track({f"train/{name}": value for name, value in metrics.items()}, state.update)
        if result.status is StepStatus.SKIPPED:
            self.job.events.emit("warning", message=self.step.guard.message)
        if time.monotonic() - self._progress > PROGRESS_SECONDS or state.update == self.total:
            self._progress = time.monotonic()
            left = metrics["seconds_left"]
            self.job.events.emit("progress", step=state.update, total=self.total, seconds_left=left)

    def _evaluate(self) -> None:
        """Evaluate the model and write a checkpoint if it is the best so far."""
        start, state = time.monotonic(), self.state
        losses, extra = self.evaluator.evaluate()
        self.throughput.pause(time.monotonic() - start, "evaluation", self.config.eval_step or self.per_epoch)
        is_baseline = state.evaluated < 0 and not state.update
        state.evaluated, state.eval_losses = state.update, losses._asdict()
        metrics = {"loss": losses.loss, "loss_text": losses.text, "loss_audio": losses.audio, **extra}
        self.job.events.emit("evaluation", step=state.update, epoch=round(state.update / self.per_epoch, 3), **metrics)
        self.track({f"evaluation/{name}": value for name, value in metrics.items()}, state.update)
        if is_baseline:
            return  # the base model is what checkpoints are compared with
        if state.train_loss is not None and (warning := self.overfitting.check(state.train_loss, losses.audio)):
            self.job.events.emit("warning", message=warning)
        if self.stopping.is_better(losses.loss):
            state.best_update, state.best_loss = state.update, losses.loss
            self.saver.write_checkpoint(state, best=True, speak=False)

    def _save(self) -> None:
        start = time.monotonic()
        self.saver.write_checkpoint(self.state, best=self.state.best_update == self.state.update, speak=True)
        self.saver.save(self.state)
        self._saved = self.state.update
        trim_memory()  # updates of many lengths leave holes in the heap: gigabytes on a CPU
        self.throughput.pause(time.monotonic() - start, "save", self.config.save_step)

    def _roll_back(self) -> None:
        """Return to the last save and continue with half the learning rate."""
        self.state = self.saver.roll_back() or self.state
        schedule, times = self.step.schedule, self.step.guard.rolled_back
        scale_rates(schedule, self.config.learning_rate * 0.5**times / float(schedule.base_lrs[0]))
        message = f"{self.step.guard.message} Rolled back to update {self.state.update}; the learning rate is halved."
        self.job.events.emit("warning", message=message)
