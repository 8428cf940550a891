"""Builds coqui's own GPT with the token numbers of XTTS v2 and a few small layers of random weights."""

from typing import Any

import torch
from torch import nn

from utils.training.model_size import ModelSize, random_gpt

START_AUDIO, STOP_AUDIO = 1024, 1025


def small_gpt(layers: int = 2, dim: int = 64, heads: int = 4, *, seed: int = 0, **sizes: int) -> Any:
    """Build it; dropout is on until ``eval()``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        gpt = random_gpt(ModelSize(layers, dim, heads, text_rows=100, **sizes))
        liven(gpt.get_submodule("conditioning_encoder"))
    return gpt


def liven(encoder: nn.Module) -> None:
    """Fill the weights that coqui starts at zero; with those, an error in the encoder's attention would not show."""
    for name, weight in encoder.named_parameters():
        if "proj_out" in name:
            nn.init.normal_(weight, std=0.05)
