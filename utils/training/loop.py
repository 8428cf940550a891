"""The training loop: updates, evaluations and saves, in the order in which they happen."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from utils.core.facts import Progress, ShouldStop, Stop, StopRequested, never_stop
from utils.core.fields import field_values
from utils.training import errors, facts
from utils.training.data_loader import Update, UpdateLoader
from utils.training.optimizers import scale_rates
from utils.training.run_saver import RunSaver, TrainState
from utils.training.step import EvalLosses, Evaluator, StepResult
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
    should_stop: ShouldStop = never_stop
    state: TrainState = field(default_factory=TrainState)
    clock: Callable[[], float] = time.monotonic
    _progress: float = 0.0
    _saved: int = -1

    def __post_init__(self) -> None:
        saver = self.saver
        self.report = saver.report
        self.config = saver.config
        self.step = saver.step
        self.per_epoch = saver.per_epoch
        self.throughput = saver.throughput
        self.stopping = saver.stopping
        self.overfitting = saver.overfitting
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
            if result.status == "roll back":
                self._roll_back()
                return
            if result.status == "failed":
                guard = self.step.guard
                raise errors.NotFiniteError(guard.rollbacks, guard.patience, guard.skipped)
            self.state.count(update, result)
            self._report_update(update, result)
            self._evaluate_and_save_if_due()
            self._updated_at = self.clock()
            if self._is_done():
                return

    def _evaluate_and_save_if_due(self) -> None:
        done = self.state.update
        evaluates = done % self.eval_step == 0 or self._is_done()
        request = self.step.ranks.agree(self.should_stop() or self._save_request(evaluates=evaluates))
        if request in {"now", "save"}:
            if request == "save":
                self._save()
            self.report(Progress(done, self.total))
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
        since = self.clock() - self._saved_at
        limit = 60 * self.config.save_minutes
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

    @property
    def epoch(self) -> float:
        return round(self.state.update / self.per_epoch, 3)

    def _report_update(self, update: Update, result: StepResult) -> None:
        step = self.state.update
        fact = facts.Train(
            step,
            self.epoch,
            result.loss,
            result.text,
            result.audio,
            grad_norm=result.norm,
            learning_rate=result.rate,
            **self.throughput.metrics(update),
        )
        self._report_metrics(fact)
        waiting = fact.data_share or 0
        if waiting > SLOW_DATA and self.throughput.updates == SLOW_DATA_AFTER:
            self.report(facts.TrainingWaitsForClips(waiting))
        if full := self.throughput.full_memory():
            self.report(full)
        if result.status == "skipped":
            self.report(self.step.guard.skipped)
        if self.clock() - self._progress > PROGRESS_SECONDS or step == self.total:
            self._progress = self.clock()
            self.report(Progress(step, self.total, seconds_left=fact.seconds_left))

    def _report_metrics(self, fact: facts.Train | facts.Evaluation) -> None:
        self.report(fact)
        self.track({f"{fact.kind}/{name}": value for name, value in field_values(fact).items()}, fact.step)

    def _evaluate(self) -> None:
        """Evaluate the model and write a checkpoint if it is the best so far."""
        start = self.clock()
        state = self.state
        evaluated = self.evaluator.evaluate()
        losses = evaluated.losses
        is_baseline = state.evaluated < 0 and not state.update
        state.evaluated, state.eval_losses = state.update, losses._asdict()
        self._report_metrics(
            facts.Evaluation(
                state.update,
                self.epoch,
                losses.loss,
                losses.text,
                losses.audio,
                evaluated.without_ema,
                evaluated.other_languages,
                dict(evaluated.languages),
            )
        )
        if is_baseline:
            state.base_loss = losses.loss  # with which checkpoints are compared
        else:
            self._judge(losses)
        self._pause("evaluation", start, self.eval_step)

    def _judge(self, losses: EvalLosses) -> None:
        """Speak with the evaluated weights, and write a checkpoint if they are the best so far."""
        state = self.state
        saver = self.saver
        if state.train_loss is not None and (warning := self.overfitting.check(state.train_loss, losses.audio)):
            self.report(warning)
        score = None
        if saver.samples.is_speaking:
            saver.write_checkpoint(state, best=False, replace=True)
            score = saver.speak_samples(state)
        if self._is_best(losses.loss, score):
            state.best_update = state.update
            state.best_loss = losses.loss
            saver.write_checkpoint(state, best=True, replace=not saver.samples.is_speaking)

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
        schedule = self.step.schedule
        times = self.step.guard.rolled_back
        scale_rates(schedule, self.config.learning_rate * 0.5**times / float(schedule.base_lrs[0]))
        self.report(facts.RolledBack(self.state.update, self.step.guard.patience, self.step.guard.skipped))
