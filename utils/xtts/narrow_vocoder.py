"""Finds the narrow vocoder in one of coqui's widths.

coqui builds its vocoder with fixed widths. ``tools.tiny_voice`` trains one with fewer channels, which may be of any
number in each stage, and stores it in coqui's shapes with silent channels; computing only the others gives the same
audio several times faster.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import torch
from torch import Tensor, nn

EMBEDDING = 512  # of the speaker
STEP = 8  # of a stage's channels


def without_silent_channels(decoder: nn.Module) -> nn.Module:
    """Return the generator of a HifiDecoder without its silent channels, or unchanged when there are none."""
    generator: Any = decoder.get_submodule("waveform_decoder")
    channels = _used_channels(generator)
    if channels == [generator.conv_pre.out_channels, *(up.out_channels for up in generator.ups)]:
        return decoder.get_submodule("waveform_decoder")
    narrow = _new_generator(generator.conv_pre.in_channels)
    for name, inputs, outputs in _layers(generator, channels):
        parent, _, own = name.rpartition(".")
        setattr(narrow.get_submodule(parent), own, _cut(generator.get_submodule(name), inputs, outputs))
    return narrow.to(next(generator.parameters()).device).eval()


def _used_channels(generator: nn.Module) -> list[int]:
    """Return the channels of each stage up to the last one that is not silent."""
    parts: Any = generator
    counts = [_count_used(parts.conv_pre.weight, parts.conv_pre.bias, parts.cond_layer.weight, parts.cond_layer.bias)]
    known = [parts.conv_pre.out_channels, *(up.out_channels for up in parts.ups)]
    for up, condition in zip(parts.ups, parts.conds, strict=True):
        weight = up.weight.transpose(0, 1)[:, : counts[-1]]
        counts.append(_count_used(weight, up.bias, condition.weight, condition.bias))
    return [min(-(-count // STEP) * STEP, most) for count, most in zip(counts, known, strict=True)]


def _count_used(*weights: Tensor) -> int:
    """Return the number of outputs up to the last one that is not silent."""
    used = torch.stack([weight.detach().flatten(1).any(1) if weight.ndim > 1 else weight != 0 for weight in weights])
    indices = used.any(0).nonzero()
    return int(indices.max()) + 1 if len(indices) else 1


def _layers(generator: nn.Module, channels: Sequence[int]) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each convolution with its inputs and outputs."""
    parts: Any = generator
    yield "conv_pre", parts.conv_pre.in_channels, channels[0]
    yield "cond_layer", EMBEDDING, channels[0]
    for stage, (before, after) in enumerate(pairwise(channels)):
        yield f"ups.{stage}", before, after
        yield f"conds.{stage}", EMBEDDING, after
    for number, block in enumerate(parts.resblocks):
        width = channels[1 + number * len(parts.ups) // len(parts.resblocks)]
        for kind, layer in product(("convs1", "convs2"), range(len(block.convs1))):  # of equal length
            yield f"resblocks.{number}.{kind}.{layer}", width, width
    yield "conv_post", channels[-1], 1


def _new_generator(inputs: int) -> nn.Module:
    """Build the generator as HifiDecoder does, but narrow, and without the speaker encoder: that takes 0.1 s."""
    from TTS.vocoder.models.hifigan_generator import HifiganGenerator

    blocks = {"resblock_dilation_sizes": [[1, 3, 5]] * 3, "resblock_kernel_sizes": [3, 7, 11]}
    steps = {"upsample_kernel_sizes": [16, 16, 4, 4], "upsample_factors": [8, 8, 2, 2], "inference_padding": 0}
    without = dict.fromkeys(("conv_pre_weight_norm", "conv_post_weight_norm", "conv_post_bias"), False)
    widths = {"upsample_initial_channel": 16, "cond_channels": EMBEDDING, "cond_in_each_up_layer": True}
    generator: nn.Module = HifiganGenerator(inputs, 1, "1", **blocks, **steps, **widths, **without)
    return generator


def _cut(wide: nn.Module, inputs: int, outputs: int) -> nn.Module:
    """Return a convolution with the first inputs and outputs of another, whose norm is multiplied out."""
    source: Any = wide
    transposed = isinstance(wide, nn.ConvTranspose1d)
    rows, columns = (inputs, outputs) if transposed else (outputs, inputs)
    settings = source.kernel_size, source.stride, source.padding
    layer: Any = (
        nn.ConvTranspose1d(inputs, outputs, *settings, bias=source.bias is not None)
        if transposed
        else nn.Conv1d(inputs, outputs, *settings, source.dilation, bias=source.bias is not None)
    )
    with torch.no_grad():
        layer.weight.copy_(source.weight[:rows, :columns])
        if source.bias is not None:
            layer.bias.copy_(source.bias[:outputs])
    found: nn.Module = layer
    return found
