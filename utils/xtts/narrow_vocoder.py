"""Finds the narrow vocoder in one of coqui's widths.

coqui builds its vocoder with fixed widths. ``tools.tiny_voice`` trains a narrow one and stores it in coqui's shapes
with silent channels; computing only the others gives the same audio several times faster.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.parametrize import is_parametrized

STEP = 16  # of a narrow vocoder's channels: four halvings must come out even
EMBEDDING = 512  # of the speaker


def without_silent_channels(decoder: nn.Module) -> nn.Module:
    """Return the generator of a HifiDecoder without its silent channels, or unchanged when there are none."""
    from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder

    generator: Any = decoder.get_submodule("waveform_decoder")
    first, channels = _used_channels(generator)
    if channels >= 2 * generator.ups[0].out_channels:
        return decoder.get_submodule("waveform_decoder")
    dim = generator.conv_pre.in_channels
    narrow: nn.Module = HifiDecoder(decoder_input_dim=dim, upsample_initial_channel_decoder=channels).waveform_decoder
    set_first_width(narrow, first)
    with torch.no_grad():
        for name, layer in narrow.named_modules():
            if isinstance(layer, nn.Conv1d | nn.ConvTranspose1d):
                _copy_weights(generator.get_submodule(name), layer)
    return narrow.to(next(generator.parameters()).device)


def set_first_width(generator: nn.Module, width: int) -> None:
    """Give a new generator a first layer that is not twice as wide as the second."""
    parts: Any = generator
    parts.conv_pre = nn.Conv1d(parts.conv_pre.in_channels, width, 7, padding=3)
    parts.cond_layer = nn.Conv1d(EMBEDDING, width, 1)
    parts.ups[0] = weight_norm(nn.ConvTranspose1d(width, parts.ups[0].out_channels, 16, 8, padding=4))


def _used_channels(generator: nn.Module) -> tuple[int, int]:
    """Return the width of the first layer, and twice that of the second, which the others halve again."""
    parts: Any = generator
    first = used = _count_used(parts.conv_pre.weight, parts.conv_pre.bias, *parts.cond_layer.parameters())
    needed = 0
    for index, (up, condition) in enumerate(zip(parts.ups, parts.conds, strict=True)):
        used = _count_used(up.weight.transpose(0, 1)[:, :used], up.bias, *condition.parameters())
        needed = max(needed, used << (index + 1))
    return first, -(-needed // STEP) * STEP


def _count_used(*weights: Tensor) -> int:
    """Return the number of outputs up to the last one that is not silent."""
    used = torch.stack([weight.detach().flatten(1).any(1) if weight.ndim > 1 else weight != 0 for weight in weights])
    indices = used.any(0).nonzero()
    return int(indices.max()) + 1 if len(indices) else 1


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
