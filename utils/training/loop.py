"""The training loop: updates, evaluations and saves, in the order in which they happen."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from utils.core.errors import RunError
from utils.core.facts import Stop, StopRequested
from utils.training.data_loader import Update, UpdateLoader
from utils.training.guards import StepStatus
from utils.training.optimizers import scale_rates
from utils.training.run_saver import RunSaver, TrainState
from utils.training.step import Evaluator, StepResult
from utils.xtts.device import trim_memory

PROGRESS_SECONDS = 1.0  # between progress events
SLOW_DATA, SLOW_DATA_AFTER = 0.2, 50  # share of the time spent waiting for clips, and the update that tells it
EPOCH_PER_SAVE = 10  # an epoch is saved if it takes this many times as long as a save


@dataclass
class TrainingLoop:
    """Everything that a run consists of, and how far it is."""

    saver: RunSaver
    loader: UpdateLoader
    evaluator: Evaluator
    total: int  # updates of the run
    track: Callable[[dict[str, Any], int], None]  # sends metrics to a tracker
    state: TrainState = field(default_factory=TrainState)
    clock: Callable[[], float] = time.monotonic
    _progress: float = 0.0
    _saved: int = -1

    def __post_init__(self) -> None:
        saver = self.saver
        self.job, self.config, self.step, self.per_epoch = saver.job, saver.config, saver.step, saver.per_epoch
        self.throughput, self.stopping, self.overfitting = saver.throughput, saver.stopping, saver.overfitting
        self.eval_step = self.config.eval_step or self.per_epoch
        self._saved_at = self._updated_at = self.clock()
        self._longest = dict.fromkeys(("update", "evaluation", "save"), 0.0)  # seconds

    def run(self) -> None:
        """Train until the last update, early stopping, or a stop request."""
        is_due = self.state.update % self.eval_step == 0 and self.state.evaluated != self.state.update
        if self.state.evaluated < 0 or is_due:  # a save before an evaluation was resumed
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
        self._updated_at = self.clock()
        for update in self.loader.run(self.state.update, self.total):
            self.throughput.data_ready()
            result = self.step.run(update)
            self._measure("update", self._updated_at)
            if result.status is StepStatus.ROLL_BACK:
                self._roll_back()
                return
            if result.status is StepStatus.FAILED:
                raise RunError(self.step.guard.message, hint=self.step.guard.hint)
            self.state.count(update, result)
            self._report(update, result)
            self._evaluate_and_save_if_due()
            self._updated_at = self.clock()
            if self._is_done():
                return

    def _evaluate_and_save_if_due(self) -> None:
        done = self.state.update
        evaluates = done % self.eval_step == 0 or self._is_done()
        request = self.step.ranks.agree(self.job.stop_request() or self._save_request(evaluates=evaluates))
        if request in {"now", "save"}:
            if request == "save":
                self._save()
            raise StopRequested(Stop(request))
        if request == "late":
            self._save(checkpoint=False)
        if evaluates:
            self._evaluate()
        if done % self.config.save_step == 0:
            self._save()
        elif request == "epoch":
            self._save(checkpoint=False)

    def _save_request(self, *, evaluates: bool) -> str:
        """Return "late" to save before what comes next, "epoch" to save after it, or nothing.

        It is late when a crash during the next update or evaluation would lose more than ``save_minutes``.
        """
        if evaluates and not self.saver.can_resume:
            return "late"  # before the first checkpoint, from which a run without a save would resume
        since, limit = self.clock() - self._saved_at, 60 * self.config.save_minutes
        ahead = self._longest["update"] + self._longest["save"] + evaluates * self._longest["evaluation"]
        if limit and since + ahead >= limit:
            return "late"
        is_epoch = self.state.update % self.per_epoch == 0
        return "epoch" if is_epoch and since > EPOCH_PER_SAVE * self._longest["save"] else ""

    def _measure(self, name: str, start: float) -> float:
        """Return the seconds since ``start``, and note how long such a part of the run may take."""
        seconds = self.clock() - start
        self._longest[name] = max(self._longest[name], seconds)
        return seconds

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
        self._advise(float(metrics["data_share"] or 0))
        if result.status is StepStatus.SKIPPED:
            self.job.events.emit("warning", message=self.step.guard.message)
        if self.clock() - self._progress > PROGRESS_SECONDS or state.update == self.total:
            self._progress = self.clock()
            self.job.events.emit("progress", step=state.update, total=self.total, seconds_left=metrics["seconds_left"])

    def _advise(self, data_share: float) -> None:
        """Warn once if the training waits for its data."""
        if data_share > SLOW_DATA and self.throughput.updates == SLOW_DATA_AFTER:
            message = (
                f"Training waits for clips {data_share:.0%} of the time. "
                "Raise num_workers, or move the dataset to a faster disk."
            )
            self.job.events.emit("warning", message=message)

    def _evaluate(self) -> None:
        """Evaluate the model and write a checkpoint if it is the best so far."""
        start, state = self.clock(), self.state
        losses, extra = self.evaluator.evaluate()
        is_baseline = state.evaluated < 0 and not state.update
        state.evaluated, state.eval_losses = state.update, losses._asdict()
        metrics = {"loss": losses.loss, "loss_text": losses.text, "loss_audio": losses.audio, **extra}
        self.job.events.emit("evaluation", step=state.update, epoch=round(state.update / self.per_epoch, 3), **metrics)
        self.track({f"evaluation/{name}": value for name, value in metrics.items()}, state.update)
        if is_baseline:
            state.base_loss = losses.loss
            self._pause("evaluation", start, self.eval_step)
            return  # the base model is what checkpoints are compared with
        if state.train_loss is not None and (warning := self.overfitting.check(state.train_loss, losses.audio)):
            self.job.events.emit("warning", message=warning)
        score = None
        if self.saver.samples.is_speaking:
            self.saver.write_checkpoint(state, best=False, replace=True)
            score = self.saver.speak_samples(state)
        if self._is_best(losses.loss, score):
            state.best_update, state.best_loss = state.update, losses.loss
            self.saver.write_checkpoint(state, best=True, replace=not self.saver.samples.is_speaking)
        self._pause("evaluation", start, self.eval_step)

    def _is_best(self, loss: float, score: float | None) -> bool:
        """Compare an evaluation with the best so far, by the composite score if the run has one, else by the loss."""
        if score is not None and not self.state.by_score:
            self.state.by_score, self.stopping.best = True, None  # losses and scores cannot be compared
        if score is None and self.state.by_score:
            return False  # it could not be scored this time
        return self.stopping.is_better(loss if score is None else 1 - score)

    def _save(self, *, checkpoint: bool = True) -> None:
        start = self.clock()
        self.saver.save(self.state)  # first: a run that has only a checkpoint does not resume exactly
        self._saved_at = start
        if checkpoint:
            self._saved = self.state.update
            self.saver.write_checkpoint(self.state, best=self.state.best_update == self.state.update)
        trim_memory()  # updates of many lengths leave holes in the heap: gigabytes on a CPU
        self._pause("save", start, min(self.config.save_step, self.per_epoch))

    def _pause(self, name: str, start: float, every: int) -> None:
        self.throughput.pause(self._measure(name, start), name, every)

    def _roll_back(self) -> None:
        """Return to the last save and continue with half the learning rate."""
        self.state = self.saver.roll_back() or self.state
        schedule, times = self.step.schedule, self.step.guard.rolled_back
        scale_rates(schedule, self.config.learning_rate * 0.5**times / float(schedule.base_lrs[0]))
        message = f"{self.step.guard.message} Rolled back to update {self.state.update}; the learning rate is halved."
        self.job.events.emit("warning", message=message)
