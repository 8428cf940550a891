"""Finds the narrow vocoder in one of coqui's widths.

coqui builds its vocoder with fixed widths. ``tools.tiny_voice`` trains a narrow one and stores it in coqui's shapes
with silent channels; computing only the others gives the same audio several times faster.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

EMBEDDING = 512  # of the speaker
STEP = 16  # of a narrow vocoder's channels: four halvings must come out even


def without_silent_channels(decoder: nn.Module) -> nn.Module:
    """Return the generator of a HifiDecoder without its silent channels, or unchanged when there are none."""
    generator: Any = decoder.get_submodule("waveform_decoder")
    channels = _used_channels(generator)
    if channels >= generator.conv_pre.out_channels:
        return decoder.get_submodule("waveform_decoder")
    narrow = _new_generator(generator.conv_pre.in_channels, channels)
    with torch.no_grad():
        for name, layer in narrow.named_modules():
            if isinstance(layer, nn.Conv1d | nn.ConvTranspose1d):
                _copy_weights(generator.get_submodule(name), layer)
    return narrow.to(next(generator.parameters()).device)


def _used_channels(generator: nn.Module) -> int:
    parts: Any = generator
    needed = _count_used(parts.conv_pre.weight, parts.conv_pre.bias, parts.cond_layer.weight, parts.cond_layer.bias)
    for index, (up, condition) in enumerate(zip(parts.ups, parts.conds, strict=True)):
        weight = up.weight.transpose(0, 1)[:, : needed >> index]
        needed = max(needed, _count_used(weight, up.bias, condition.weight, condition.bias) << (index + 1))
    return -(-needed // STEP) * STEP


def _count_used(*weights: Tensor) -> int:
    """Return the number of outputs up to the last one that is not silent."""
    used = torch.stack([weight.detach().flatten(1).any(1) if weight.ndim > 1 else weight != 0 for weight in weights])
    indices = used.any(0).nonzero()
    return int(indices.max()) + 1 if len(indices) else 1


def _new_generator(inputs: int, channels: int) -> nn.Module:
    """Build the generator as HifiDecoder does, with other widths, but not its speaker encoder: that takes 0.1 s."""
    from TTS.vocoder.models.hifigan_generator import HifiganGenerator

    blocks = {"resblock_dilation_sizes": [[1, 3, 5]] * 3, "resblock_kernel_sizes": [3, 7, 11]}
    steps = {"upsample_kernel_sizes": [16, 16, 4, 4], "upsample_factors": [8, 8, 2, 2], "inference_padding": 0}
    without = dict.fromkeys(("conv_pre_weight_norm", "conv_post_weight_norm", "conv_post_bias"), False)
    widths = {"upsample_initial_channel": channels, "cond_channels": EMBEDDING, "cond_in_each_up_layer": True}
    generator: nn.Module = HifiganGenerator(inputs, 1, "1", **blocks, **steps, **widths, **without)
    return generator


def _copy_weights(wide: nn.Module, narrow: nn.Module) -> None:
    source: Any = wide
    target: Any = narrow
    weight = source.weight[tuple(slice(size) for size in target.weight.shape)]
    if is_parametrized(narrow):
        target.weight = weight  # the parametrization splits it
    else:
        target.weight.copy_(weight)
    if target.bias is not None:
        target.bias.copy_(source.bias[: len(target.bias)])
