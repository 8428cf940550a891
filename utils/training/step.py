"""One update: forward, backward, clip, apply; and the loss on the evaluation clips."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from accelerate.optimizer import AcceleratedOptimizer
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from utils.config import TrainConfig
from utils.core.facts import Report
from utils.training.data_loader import Update
from utils.training.distribution import Ranks
from utils.training.ema import Ema
from utils.training.errors import StateDoesNotFitError
from utils.training.facts import EmbeddingWarmupEnded
from utils.training.health import MicroBatches, NonFiniteGuard, StepStatus
from utils.training.optimizers import allocate_state
from utils.training.packing import PackedBatch, PackedGpt
from utils.training.speedups.blocks import uncompiled
from utils.training.speedups.freezing import TextRowsOnly
from utils.xtts.device import free_memory, is_out_of_memory

Batches = Callable[[], Iterable[PackedBatch]]


class StepResult(NamedTuple):
    """Result of one update over all processes."""

    text: float  # mean loss of the text
    audio: float  # mean loss of the audio codes
    loss: float  # weighted sum of both
    norm: float  # of the gradient, before clipping
    rate: float
    status: StepStatus


@dataclass
class TrainStep:
    """Performs updates; ``schedule`` is stepped once per update."""

    config: TrainConfig
    ranks: Ranks
    model: nn.Module  # prepared, as is the optimizer
    optimizer: Optimizer
    schedule: LRScheduler
    ema: Ema | None
    report: Report
    clip_names: Callable[[Update], Iterable[str]] = lambda _update: ()  # for reports of updates that are not finite

    def __post_init__(self) -> None:
        self.guard = NonFiniteGuard()
        self.micro = MicroBatches(self.config.batch_size)
        self.weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        self.packed: PackedGpt = self.ranks.accelerator.unwrap_model(self.model)
        warm_up = self.config.embedding_warmup_steps > 0
        self.text_warmup = TextRowsOnly(self.packed.gpt, shared=self.ranks.count > 1) if warm_up else None

    def allocate(self) -> None:
        """Create the state of the optimizer before the first update: a run that does not fit fails in a second."""
        with _state_must_fit():
            allocate_state(unwrap_optimizer(self.optimizer))

    def run(self, update: Update) -> StepResult:
        """Train on the clips of one update: all of them or none."""
        self.model.train()
        self._end_text_warmup(update.number)
        rate = float(self.schedule.get_last_lr()[0])
        sums = self.ranks.reduce(self._gradients(update))
        if self.text_warmup is not None:
            self.text_warmup.drop_gradients()
        norm_on_device = self._gradient_norm()
        # The only time in an update that the host waits for the device.
        text_sum, audio_sum, norm = torch.cat([sums, norm_on_device.to(sums).reshape(1)]).tolist()
        if norm > self.config.gradient_clip:
            # torch's clip_grad_norm_ multiplies every gradient, even by 1
            clip_grads_with_norm_(self.weights, self.config.gradient_clip, norm_on_device)
        text = text_sum / update.text_count
        audio = audio_sum / update.audio_count
        loss = self.config.text_loss_weight * text + audio
        status = self._apply(loss, norm, self.clip_names(update))
        self.optimizer.zero_grad(set_to_none=True)
        return StepResult(text, audio, loss, norm, rate, status)

    def discard(self) -> None:
        """Drop the gradients of an update that could not be completed."""
        self.optimizer.zero_grad(set_to_none=True)
        scaler = self.ranks.accelerator.scaler
        if scaler is not None:  # it may have unscaled them already, and would refuse to do it again
            scaler.scale(self.weights[0].new_zeros(()))  # it has no scale before the first loss
            scaler.update(scaler.get_scale())

    def _end_text_warmup(self, number: int) -> None:
        if self.text_warmup is not None and number >= self.config.embedding_warmup_steps:
            self.text_warmup.undo()
            self.text_warmup = None
            self.report(EmbeddingWarmupEnded(number + 1))

    def _gradients(self, update: Update) -> Tensor:
        """Run all batches of an update, in halves when memory runs out; return the sums of both losses."""
        while True:
            batches = self.micro.split(update.batches)
            try:
                return self._backward(batches, update)
            except RuntimeError as error:
                if self.ranks.count > 1 or not is_out_of_memory(error):
                    raise  # the other processes wait in the middle of this update
            self.discard()  # outside of except, which holds what must be freed
            free_memory()
            self.report(self.micro.on_oom())

    def _backward(self, batches: Sequence[PackedBatch], update: Update) -> Tensor:
        accelerator = self.ranks.accelerator
        sums = torch.zeros(2, device=accelerator.device)
        for number, batch in enumerate(batches, 1):
            # Gradients are synchronized in the last batch only.
            with nullcontext() if number == len(batches) else accelerator.no_sync(self.model):
                losses = self.model(batch.to(accelerator.device, non_blocking=True))
                loss = (
                    losses.audio / update.audio_count + self.config.text_loss_weight * losses.text / update.text_count
                )
                accelerator.backward(loss * self.ranks.count)  # gradients are averaged over the processes
            sums += torch.stack([losses.text.detach(), losses.audio.detach()])
        return sums

    def _gradient_norm(self) -> Tensor:
        """Return the norm of the gradient, which is not clipped yet."""
        self.ranks.accelerator.unscale_gradients()
        return get_total_norm([weight.grad for weight in self.weights if weight.grad is not None])

    def _apply(self, loss: float, norm: float, clips: Iterable[str]) -> StepStatus:
        scaler = self.ranks.accelerator.scaler
        applied = math.isfinite(loss) and math.isfinite(norm)
        scale = None if applied or scaler is None else float(scaler.get_scale())  # asks the device
        if applied or scaler is not None:  # the scaler skips infinite gradients itself and lowers its scale
            with _state_must_fit():  # it may be applied in part, so it cannot be repeated
                self.optimizer.step()
        if applied:
            self.schedule.step()
            if self.ema is not None:
                self.ema.update()
        return self.guard.check(loss, norm, scale=scale, clips=clips)


@contextmanager
def _state_must_fit() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise StateDoesNotFitError from error
        raise


def unwrap_optimizer(optimizer: Optimizer) -> Optimizer:
    return optimizer.optimizer if isinstance(optimizer, AcceleratedOptimizer) else optimizer


class EvalLosses(NamedTuple):
    """Mean losses over the evaluation clips."""

    text: float
    audio: float
    loss: float


class Evaluated(NamedTuple):
    """The losses of the weights that will be exported, on each other language, and without the average."""

    losses: EvalLosses
    languages: Mapping[str, float] = {}  # never changed
    without_ema: float | None = None

    @property
    def other_languages(self) -> float | None:
        """The mean of the other languages, which rises when they are forgotten."""
        return sum(self.languages.values()) / len(self.languages) if self.languages else None


@dataclass
class Evaluator:
    """Computes the loss on clips that are never trained on; neither weights nor random numbers change."""

    model: nn.Module  # prepared
    batches: Batches  # of this process
    ranks: Ranks
    text_weight: float
    ema: Ema | None
    others: Mapping[str, Batches] = field(default_factory=dict)  # of other languages

    def evaluate(self) -> Evaluated:
        """Evaluate the weights that will be exported; with an average, also those without it."""
        if self.ema is None:
            return Evaluated(self.losses(), self._other_losses())
        raw = self.losses()
        with self.ema.swapped():
            return Evaluated(self.losses(), self._other_losses(), raw.loss)

    def _other_losses(self) -> dict[str, float]:
        return {language: self.losses(batches).loss for language, batches in self.others.items()}

    # Long because the model is left as it was found, also after an error.
    def losses(self, batches: Batches | None = None) -> EvalLosses:
        accelerator = self.ranks.accelerator
        was_training = self.model.training
        self.model.eval()
        packed = accelerator.unwrap_model(self.model)
        smoothing, packed.label_smoothing = packed.label_smoothing, 0.0  # so that runs can be compared
        totals = torch.zeros(2, device=accelerator.device)
        counts = np.zeros(2)
        try:
            with torch.no_grad(), uncompiled():
                for batch in (batches or self.batches)():
                    losses = self.model(batch.to(accelerator.device))
                    totals += torch.stack([losses.text, losses.audio]).float()
                    counts += batch.text_count, batch.audio_count
        finally:
            packed.label_smoothing = smoothing
            self.model.train(was_training)
        sums = self.ranks.reduce(totals).tolist()
        text, audio = (lost / count for lost, count in zip(sums, self.ranks.sum(counts.tolist()), strict=True))
        return EvalLosses(text, audio, self.text_weight * text + audio)
