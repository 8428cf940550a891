"""An update that learns nothing: a model of random numbers and the longest clips there may be, to see what it takes."""

import numpy as np
import torch
from torch import nn

from utils.config import TrainConfig
from utils.training.batch_size import Trial, try_step
from utils.training.ema import Ema
from utils.training.memory_parts import Longest, ModelShape
from utils.training.packing import (
    AUDIO_EXTRA,
    MEL_BANDS,
    TEXT_EXTRA,
    Example,
    PackedBatch,
    PackedGpt,
    SpecialTokens,
    Sums,
    pack,
)
from utils.training.speedups.optimizers import make_optimizer


def random_gpt(shape: ModelShape) -> nn.Module:
    """Build coqui's GPT of this size with its own random weights."""
    from utils.xtts.modules import GPT

    gpt: nn.Module = GPT(
        layers=shape.layers,
        model_dim=shape.dim,
        heads=shape.heads,
        number_text_tokens=shape.text_rows,
        start_text_token=shape.text_rows - 1,
        stop_text_token=0,
        num_audio_tokens=shape.audio_rows,
        start_audio_token=shape.audio_rows - 2,
        stop_audio_token=shape.audio_rows - 1,
        max_text_tokens=shape.text_positions - 2,
        max_mel_tokens=shape.audio_positions - 3,
        use_perceiver_resampler=True,
    )
    return gpt


def longest_batch(tokens: SpecialTokens, longest: Longest, clips: int) -> PackedBatch:
    """Make a batch in which every clip is the longest."""
    example = Example(
        np.ones(longest.text - TEXT_EXTRA, np.int32),
        np.ones(longest.audio - AUDIO_EXTRA, np.int16),
        np.zeros((longest.frames, MEL_BANDS), np.float16),
    )
    return pack([example] * clips, tokens)


class UnderAutocast(nn.Module):
    """A model whose forward pass, and no more, runs under autocast, as ``accelerate`` has it.

    Args:
        model: The model.
        device: Where it is.
        dtype: What matrix products compute in; float32 for no autocast.
    """

    def __init__(self, model: PackedGpt, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self.device, self.dtype = model, device, dtype

    def forward(self, batch: PackedBatch) -> Sums:
        """Return the summed losses of a batch."""
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            sums: Sums = self.model(batch)
        return sums


class Rehearsal:
    """A model that is ready to be updated, as a run would have it.

    Args:
        gpt: coqui's GPT, with all switches applied.
        config: The settings of the run.
        longest: The longest clip.
        device: Where to compute.
        dtype: What matrix products compute in.
    """

    def __init__(
        self, gpt: nn.Module, config: TrainConfig, longest: Longest, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.tokens, self.longest, self.device = SpecialTokens.of(gpt), longest, device
        self.model = UnderAutocast(PackedGpt(gpt.to(device), config.label_smoothing), device, dtype).train()
        self.optimizer, _ = make_optimizer(self.model, config, device)
        self.ema = Ema(gpt, config.ema_decay, config.ema_device) if config.enable_ema else None

    def measure(self, clips: int) -> Trial:
        """Take an update with so many clips and say what it took; the model is as good as before, being random."""
        batch = longest_batch(self.tokens, self.longest, clips).to(self.device)
        return try_step(self.model, self.optimizer, batch, undo=False)
