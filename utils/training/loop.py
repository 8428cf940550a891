"""The training loop: updates, evaluations and saves, in the order in which they happen."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from utils.core.errors import RunError
from utils.runs.job import StopRequested
from utils.training.data_loader import Update, UpdateLoader
from utils.training.guards import StepStatus
from utils.training.optimizers import scale_rates
from utils.training.run_saver import RunSaver, TrainState
from utils.training.step import Evaluator, StepResult
from utils.xtts.device import trim_memory

PROGRESS_SECONDS = 1.0  # between progress events


@dataclass
class TrainingLoop:
    """Everything that a run consists of, and how far it is."""

    saver: RunSaver
    loader: UpdateLoader
    evaluator: Evaluator
    total: int  # updates of the run
    track: Callable[[dict[str, Any], int], None]  # sends metrics to a tracker
    state: TrainState = field(default_factory=TrainState)
    _progress: float = 0.0
    _saved: int = -1

    def __post_init__(self) -> None:
        saver = self.saver
        self.job, self.config, self.step, self.per_epoch = saver.job, saver.config, saver.step, saver.per_epoch
        self.throughput, self.stopping, self.overfitting = saver.throughput, saver.stopping, saver.overfitting

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
            self.job.events.emit("progress", step=state.update, total=self.total, seconds_left=metrics["seconds_left"])

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
