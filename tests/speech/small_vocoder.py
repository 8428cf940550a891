"""Builds coqui's own vocoder with few channels, or its published number, and weights that let sound through."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LIVELY, CALM = 1.4, 0.7  # of the convolutions that are followed by leaky_relu, and of those that are added


def small_vocoder(dim: int = 24, channels: int = 32) -> Any:
    """Build it. coqui's first weights all but swallow what comes in; these keep its strength from layer to layer."""
    from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        decoder = HifiDecoder(decoder_input_dim=dim, upsample_initial_channel_decoder=channels).eval()
        network = decoder.waveform_decoder
        _fill(network.conv_pre, 1.0)
        for layer in network.ups:
            _fill(layer, LIVELY)
        for block in network.resblocks:
            for first, second in zip(block.convs1, block.convs2, strict=True):
                _fill(first, LIVELY)
                _fill(second, CALM)
        _fill(network.conv_post, 0.3)
    return decoder


def voice(seed: int = 0) -> Tensor:
    return functional.normalize(torch.randn(1, 512, 1, generator=torch.Generator().manual_seed(seed)), dim=1)


def vectors(codes: int, dim: int = 24, seed: int = 0) -> Tensor:
    """Make what the GPT would say: it changes slowly, and so does its strength."""
    chance = torch.Generator().manual_seed(seed)
    slow = torch.randn(codes // 3 + 1, dim, generator=chance).repeat_interleave(3, 0)[:codes]
    strength = torch.randn(codes // 6 + 1, 1, generator=chance).repeat_interleave(6, 0)[:codes]
    return (slow + 0.3 * torch.randn(codes, dim, generator=chance)) * (1.2 * strength - 0.5).exp()


def _fill(layer: Any, gain: float) -> None:
    transposed = isinstance(layer, nn.ConvTranspose1d)
    inputs = layer.in_channels * (2 if transposed else layer.kernel_size[0])
    weight = torch.randn(layer.weight.shape) * gain / inputs**0.5
    if hasattr(layer, "parametrizations"):
        layer.weight = weight
    else:
        layer.weight.data = weight
    if layer.bias is not None:
        layer.bias.data = torch.randn(layer.bias.shape) * 0.05
