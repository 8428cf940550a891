"""Loss on the evaluation clips, which are never trained on: always the same clips in the same order."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from utils.training.distribution import Ranks
from utils.training.ema import Ema
from utils.training.packing import PackedBatch
from utils.training.speedups.compilation import uncompiled


class EvalLosses(NamedTuple):
    """Mean losses over the evaluation clips."""

    text: float
    audio: float
    loss: float


@dataclass
class Evaluator:
    """Computes the evaluation losses; neither weights nor random numbers change.

    Attributes:
        model: The prepared model.
        batches: Returns the batches of this process.
        ranks: The processes that share the batches.
        text_weight: Weight of the text loss.
        ema: Moving average of the weights, if there is one.
    """

    model: nn.Module
    batches: Callable[[], Iterable[PackedBatch]]
    ranks: Ranks
    text_weight: float
    ema: Ema | None = None

    def evaluate(self) -> tuple[EvalLosses, dict[str, float]]:
        """Evaluate the weights that will be exported; with an average, also report the loss without it."""
        raw = self.losses()
        if self.ema is None:
            return raw, {}
        with self.ema.swapped():
            return self.losses(), {"loss_without_ema": raw.loss}

    def losses(self) -> EvalLosses:
        """Evaluate the current weights."""
        was_training = self.model.training
        self.model.eval()
        packed = self.ranks.accelerator.unwrap_model(self.model)
        smoothing, packed.label_smoothing = packed.label_smoothing, 0.0  # so that runs can be compared
        totals = torch.zeros(4, device=self.ranks.accelerator.device)
        try:
            with torch.no_grad(), uncompiled():
                for batch in self.batches():
                    sums = self.model(batch.to(self.ranks.accelerator.device))
                    counts = totals.new_tensor([batch.text_count, batch.audio_count])
                    totals += torch.cat([torch.stack([sums.text, sums.audio]).float(), counts])
        finally:
            packed.label_smoothing = smoothing
            self.model.train(was_training)
        text, audio, text_count, audio_count = self.ranks.sum(totals)
        means = text / text_count, audio / audio_count
        return EvalLosses(*means, self.text_weight * means[0] + means[1])
