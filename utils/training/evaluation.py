"""How good the model is on clips that it never learnt from: always the same ones, in the same order."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import nn

from utils.training.distribution import Ranks
from utils.training.packing import PackedBatch


class Losses(NamedTuple):
    """Mean losses over the evaluation clips."""

    text: float
    audio: float
    loss: float


def evaluate(
    model: nn.Module, batches: Callable[[], Iterable[PackedBatch]], ranks: Ranks, text_weight: float
) -> Losses:
    """Pass over all evaluation clips; neither weights nor random numbers change.

    Args:
        model: The prepared model.
        batches: Gives the batches of this process, from the first one.
        ranks: The processes that share them.
        text_weight: Weight of the text's loss.
    """
    was_training = model.training
    model.eval()
    totals = torch.zeros(4, device=ranks.accelerator.device)
    try:
        with torch.no_grad():
            for batch in batches():
                made = model(batch.to(ranks.accelerator.device))
                counts = totals.new_tensor([batch.text_count, batch.audio_count])
                totals += torch.cat([torch.stack([made.text, made.audio]).float(), counts])
    finally:
        model.train(was_training)
    text, audio, texts, audios = ranks.summed(totals)
    losses = text / texts, audio / audios
    return Losses(*losses, text_weight * losses[0] + losses[1])
