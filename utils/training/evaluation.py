"""How good the model is on clips that it never learnt from: always the same ones, in the same order."""

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
    """Passes over all evaluation clips; neither weights nor random numbers change.

    Attributes:
        model: The prepared model.
        batches: Gives the batches of this process, from the first one.
        ranks: The processes that share them.
        text_weight: Weight of the text's loss.
        ema: The average of the weights, if there is one.
    """

    model: nn.Module
    batches: Callable[[], Iterable[PackedBatch]]
    ranks: Ranks
    text_weight: float
    ema: Ema | None = None

    def all(self) -> tuple[EvalLosses, dict[str, float]]:
        """Evaluator the weights that will be exported, and beside an average the weights themselves."""
        raw = self.losses()
        if self.ema is None:
            return raw, {}
        with self.ema.swapped():
            return self.losses(), {"loss_without_ema": raw.loss}

    def losses(self) -> EvalLosses:
        """Evaluator the weights as they are now."""
        was_training = self.model.training
        self.model.eval()
        packed = self.ranks.accelerator.unwrap_model(self.model)
        smoothing, packed.label_smoothing = packed.label_smoothing, 0.0  # else no two runs could be compared
        totals = torch.zeros(4, device=self.ranks.accelerator.device)
        try:
            with torch.no_grad(), uncompiled():
                for batch in self.batches():
                    made = self.model(batch.to(self.ranks.accelerator.device))
                    counts = totals.new_tensor([batch.text_count, batch.audio_count])
                    totals += torch.cat([torch.stack([made.text, made.audio]).float(), counts])
        finally:
            packed.label_smoothing = smoothing
            self.model.train(was_training)
        text, audio, texts, audios = self.ranks.summed(totals)
        means = text / texts, audio / audios
        return EvalLosses(*means, self.text_weight * means[0] + means[1])
