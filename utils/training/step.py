"""One update: forward, backward, clip, apply; halved when memory is short, left out when a number is not finite."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from accelerate.optimizer import AcceleratedOptimizer
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from utils.config import TrainConfig
from utils.core.errors import ConfigError
from utils.training.data_loader import Update
from utils.training.distribution import Ranks
from utils.training.ema import Ema
from utils.training.guards import MicroBatches, NonFiniteGuard, StepStatus
from utils.training.packing import PackedBatch
from utils.training.sharding import length
from utils.training.speedups.freezing import train_text_rows_only
from utils.xtts.memory import free_memory


@dataclass(frozen=True)
class StepResult:
    """What one update came to, over all processes.

    Attributes:
        text: Mean loss of the text.
        audio: Mean loss of the audio codes.
        loss: Both, weighted as they are learnt.
        norm: Length of the gradient before it was clipped.
        rate: The learning rate that it was taken with.
        verdict: Whether it was applied, and what has to follow.
    """

    text: float
    audio: float
    loss: float
    norm: float
    rate: float
    verdict: StepStatus


def nameless(_update: Update) -> Iterable[str]:
    """Name no clip."""
    return ()


@dataclass
class TrainStep:
    """Takes updates.

    Attributes:
        config: The settings of the run.
        ranks: The processes that train together.
        model: The prepared model.
        optimizer: The prepared optimiser.
        schedule: The learning rate, counted in updates.
        ema: The average of the weights, if there is one.
        tell: Hears what a person should know.
        name_clips: Names the clips of an update, for whoever has to find out why it was not finite.
    """

    config: TrainConfig
    ranks: Ranks
    model: nn.Module
    optimizer: Optimizer
    schedule: LRScheduler
    ema: Ema | None
    tell: Callable[[str], None]
    name_clips: Callable[[Update], Iterable[str]] = nameless

    def __post_init__(self) -> None:
        if self.config.step_in_backward and self.ranks.accelerator.scaler is not None:
            raise ConfigError(
                "step_in_backward does not work with the loss scale of fp16, which this GPU needs for half precision.",
                hint="Switch enable_mixed_precision off, or use offload_optimizer.",
            )
        self.guard = NonFiniteGuard()
        self.micro = MicroBatches(self.config.batch_size)
        self.weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        gpt, rows_first = self.ranks.accelerator.unwrap_model(self.model).gpt, self.config.embedding_warmup_steps > 0
        self.resting = train_text_rows_only(gpt, shared=self.ranks.count > 1) if rows_first else None

    def take(self, update: Update) -> StepResult:
        """Learn from the clips of one update, all of them or none."""
        self.model.train()
        self._wake(update.number)
        rate = float(self.schedule.get_last_lr()[0])
        text, audio = self.ranks.summed(self._gradients(update))
        if self.resting is not None:
            self.resting.drop_gradients()
        norm = self._clipped()
        means = text / update.text_count, audio / update.audio_count
        loss = self.config.text_loss_weight * means[0] + means[1]
        verdict = self._apply(loss, norm, self.name_clips(update))
        self.optimizer.zero_grad(set_to_none=True)
        return StepResult(*means, loss, norm, rate, verdict)

    def _wake(self, number: int) -> None:
        """Train everything once the text rows had their time alone."""
        if self.resting is not None and number >= self.config.embedding_warmup_steps:
            self.resting.undo()
            self.resting = None
            self.tell(f"From update {number + 1} on everything is trained, not the rows of the text alone.")

    def _gradients(self, update: Update) -> Tensor:
        """Run all batches of an update, in halves where memory does not suffice; return the sums of both losses."""
        while True:
            batches = self.micro.cut(update.batches)
            try:
                return self._backward(batches, update)
            except torch.OutOfMemoryError:
                if self.ranks.count > 1 or self.config.step_in_backward:
                    raise  # the others wait in the middle of this update, or a part of it is applied
            self.optimizer.zero_grad(set_to_none=True)  # outside of except, which keeps what has to be freed
            free_memory()
            self.tell(self.micro.on_oom())

    def _backward(self, batches: Sequence[PackedBatch], update: Update) -> Tensor:
        accelerator = self.ranks.accelerator
        sums = torch.zeros(2, device=accelerator.device)
        for number, batch in enumerate(batches, 1):
            with self.ranks.accumulating(self.model, last=number == len(batches)):
                made = self.model(batch.to(accelerator.device, non_blocking=True))
                loss = made.audio / update.audio_count + self.config.text_loss_weight * made.text / update.text_count
                accelerator.backward(loss * self.ranks.count)  # the processes' gradients are averaged
            sums += torch.stack([made.text.detach(), made.audio.detach()])
        return sums

    def _clipped(self) -> float:
        """Shorten the gradient to the limit and return how long it was."""
        if self.config.step_in_backward:
            return float(unwrap_optimizer(self.optimizer).last_norm)  # type: ignore[attr-defined]
        self.ranks.accelerator.unscale_gradients()
        norm = get_total_norm([weight.grad for weight in self.weights if weight.grad is not None])
        if length(norm) > self.config.gradient_clip:  # torch's own clipping multiplies every gradient, by 1 too
            clip_grads_with_norm_(self.weights, self.config.gradient_clip, norm)
        return length(norm)

    def _apply(self, loss: float, norm: float, clips: Iterable[str]) -> StepStatus:
        """Apply the gradient where it is finite."""
        scaler = self.ranks.accelerator.scaler
        scale = float(scaler.get_scale()) if scaler is not None else None
        applied = math.isfinite(loss) and math.isfinite(norm)
        if applied or scaler is not None:  # the scaler leaves out infinite gradients itself, and lowers its scale
            self.optimizer.step()
        if applied:
            self.schedule.step()
            if self.ema is not None:
                self.ema.update()
        return self.guard.check(loss, norm, scale=scale, clips=clips)


def unwrap_optimizer(optimizer: Optimizer) -> Optimizer:
    """Return the optimiser inside accelerate's wrapper."""
    return optimizer.optimizer if isinstance(optimizer, AcceleratedOptimizer) else optimizer
