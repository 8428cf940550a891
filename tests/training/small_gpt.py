"""Builds coqui's own GPT with the token numbers of XTTS v2 and a few small layers of random weights."""

from typing import Any

import torch
from torch import nn

START_AUDIO, STOP_AUDIO, STOP_TEXT = 1024, 1025, 0


def small_gpt(
    layers: int = 2, dim: int = 64, heads: int = 4, text_tokens: int = 100, *, seed: int = 0, **changes: Any
) -> Any:
    """Build it; the last row of the text is its start token, as coqui does it. Dropout is on until ``eval()``."""
    from TTS.tts.layers.xtts.gpt import GPT

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        gpt = GPT(
            **{
                "layers": layers,
                "model_dim": dim,
                "heads": heads,
                "number_text_tokens": text_tokens,
                "start_text_token": text_tokens - 1,
                "stop_text_token": STOP_TEXT,
                "num_audio_tokens": 1026,
                "start_audio_token": START_AUDIO,
                "stop_audio_token": STOP_AUDIO,
                "max_text_tokens": 402,
                "max_mel_tokens": 605,
                "max_prompt_tokens": 70,
                "use_perceiver_resampler": True,
                "code_stride_len": 1024,
                **changes,
            }
        )
        liven(gpt.conditioning_encoder)
    return gpt


def liven(encoder: nn.Module) -> None:
    """Fill the weights that coqui starts at zero; with those, a fault in the encoder's attention would not show."""
    for name, weight in encoder.named_parameters():
        if "proj_out" in name:
            nn.init.normal_(weight, std=0.05)
