"""Narrow copies of coqui's vocoder, speaker encoder and DVAE, and how to lay them into the shapes that coqui fixes.

``Xtts`` builds its ``HifiDecoder`` with fixed widths, 23 million numbers, whatever config.json says. A network of a
quarter of that width is the same function as one of the full width whose other channels are silent, so a narrow one is
trained and then laid into the wide shapes. In the file the wide weights are views onto hardly more numbers than the
narrow ones have: where a channel is silent, its weights meet nothing but zeros and may be anything, so the rows of a
weight overlap. Plain coqui loads such a file as any other, and ``narrowed`` finds the narrow network in it again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

if TYPE_CHECKING:
    from TTS.tts.layers.xtts.dvae import DiscreteVAE

CHANNELS = 512  # of the vocoder's first layer, as coqui has it
FILTERS = (32, 64, 128, 256)  # of the speaker encoder
FEWEST = (8, 8, 8, 8)  # where nobody hears a voice
BLOCKS = (3, 4, 6, 3)  # its residual blocks
MELS, EMBEDDING = 64, 512
AUDIO = {  # what its speaker encoder hears, as HifiDecoder has it
    "fft_size": 512,
    "win_length": 400,
    "hop_length": 160,
    "sample_rate": 16_000,
    "preemphasis": 0.97,
    "num_mels": MELS,
}
LENGTH, DIRECTION = ".parametrizations.weight.original0", ".parametrizations.weight.original1"
SPECTRUM = ".torch_spec."
STEP = 16  # four halvings of the channels have to come out even
ANYTHING = 0.01  # stands where no number matters; a row of zeros would have no direction


@dataclass(frozen=True)
class Width:
    """How wide the parts of the vocoder are.

    Attributes:
        dim: Numbers of a latent of the GPT.
        channels: Channels of the vocoder's first layer; each step up in rate halves them.
        filters: Filters of the four stages of the speaker encoder.
    """

    dim: int
    channels: int = CHANNELS
    filters: tuple[int, int, int, int] = FILTERS


def new_dvae(hidden: int, codes: int, width: int) -> "DiscreteVAE":
    """Build coqui's discrete VAE as its GPTTrainer does, but for the sizes.

    Args:
        hidden: Channels of its first layer.
        codes: How many codes there are.
        width: Numbers of a code.
    """
    from TTS.tts.layers.xtts.dvae import DiscreteVAE

    return DiscreteVAE(
        channels=80,
        normalization=None,
        positional_dims=1,
        num_tokens=codes,
        codebook_dim=width,
        hidden_dim=hidden,
        num_resnet_blocks=3,
        kernel_size=3,
        num_layers=2,
        use_transposed_convs=False,
    )


def new_vocoder(width: Width) -> nn.Module:
    """Build coqui's HifiDecoder in a width of ours, its speaker encoder included."""
    from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder

    decoder: Any = HifiDecoder(decoder_input_dim=width.dim, upsample_initial_channel_decoder=width.channels)
    if width.filters != FILTERS:
        decoder.speaker_encoder = new_speaker_encoder(width.filters)
    module: nn.Module = decoder
    return module


def new_speaker_encoder(filters: tuple[int, int, int, int]) -> nn.Module:
    """Build coqui's ResNet that hears whose voice it is, with so many filters in its four stages."""
    from TTS.encoder.models.resnet import ResNetSpeakerEncoder

    encoder: nn.Module = ResNetSpeakerEncoder(
        input_dim=MELS,
        proj_dim=EMBEDDING,
        layers=list(BLOCKS),
        num_filters=list(filters),
        log_input=True,
        use_torch_spec=True,
        audio_config=AUDIO,
    )
    return encoder


def widened(narrow: nn.Module, width: Width) -> dict[str, Tensor]:
    """Return the weights of a narrow HifiDecoder in coqui's shapes, in half precision and in few bytes."""
    small = {name: weight.detach().float().cpu() for name, weight in narrow.state_dict().items()}
    shapes = {name: weight.shape for name, weight in new_vocoder(Width(width.dim)).state_dict().items()}
    wide: dict[str, Tensor] = {}
    for name, weight in small.items():
        if name.endswith(LENGTH):
            wide |= _normed(name.removesuffix(LENGTH), small, shapes)
        elif not name.endswith(DIRECTION):
            wide[name] = _laid(name, weight, shapes[name])
    return {name: wide[name] for name in small}


def narrowed(decoder: nn.Module) -> nn.Module:
    """Return the generator of a HifiDecoder without the channels that are always silent; without any, as it is."""
    full: Any = decoder
    generator: Any = full.waveform_decoder
    channels = generator.conv_pre.out_channels
    used = _sounding(generator)
    if used >= channels:
        return decoder.get_submodule("waveform_decoder")
    slim = new_vocoder(Width(generator.conv_pre.in_channels, used, FEWEST)).get_submodule("waveform_decoder")
    with torch.no_grad():
        for name, layer in slim.named_modules():
            if isinstance(layer, nn.Conv1d | nn.ConvTranspose1d):
                _copy_corner(generator.get_submodule(name), layer)
    return slim.to(next(generator.parameters()).device)


def _normed(name: str, small: Mapping[str, Tensor], shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    """Lay out a weight with a norm: silent rows get the length 0, so only the columns of the others matter."""
    length, direction = small[name + LENGTH], small[name + DIRECTION]
    shape = shapes[name + DIRECTION]
    weight = (direction * (length / direction.flatten(1).norm(dim=1)[:, None, None])).half()
    view = _rising(weight, shape) if ".ups." in f".{name}" else _overlapping(weight, shape)
    lengths = torch.zeros(shape[0], 1, 1)
    lengths[: len(weight)] = view[: len(weight)].float().flatten(1).norm(dim=1)[:, None, None]
    return {name + LENGTH: lengths, name + DIRECTION: view}


def _overlapping(weight: Tensor, shape: torch.Size) -> Tensor:
    """View a weight whose rows are outputs: each row runs on into the next ones, where it meets silent inputs."""
    row, after = weight[0].numel(), shape[1:].numel()
    run = torch.full(((shape[0] - 1) * row + after,), ANYTHING, dtype=weight.dtype)
    run[: weight.numel()] = weight.flatten()
    inner = [shape[2:].numel(), *(shape[place + 1 :].numel() for place in range(2, len(shape)))]
    return run.as_strided(shape, [row, *inner])


def _rising(weight: Tensor, shape: torch.Size) -> Tensor:
    """View a transposed weight, whose rows are inputs: the outputs beyond the narrow ones have to be zero."""
    inputs, _, taps = weight.shape
    run = torch.zeros((shape[1] - 1) * inputs * taps + shape[0] * taps, dtype=weight.dtype)
    run[: weight.numel()] = weight.transpose(0, 1).flatten()
    run[shape[1] * inputs * taps :] = ANYTHING  # only rows of silent inputs reach so far
    return run.as_strided(shape, [taps, inputs * taps, 1])


def _laid(name: str, weight: Tensor, shape: torch.Size) -> Tensor:
    """Lay a weight without a norm into its wide shape."""
    if SPECTRUM in f".{name}" or not weight.ndim:
        return weight if weight.ndim else weight.long()
    if name == "speaker_encoder.fc.weight":
        return _mean_and_spread(weight, shape)
    if name.startswith("speaker_encoder.layer") and weight.ndim == 4:
        return _overlapping(weight.half(), shape)  # the norm behind it silences the other outputs
    kind = torch.float16 if weight.ndim > 1 else torch.float32  # variances may be too small for half precision
    filled = torch.full(shape, float(name.endswith("running_var")), dtype=kind)
    filled[tuple(slice(size) for size in weight.shape)] = weight.to(kind)
    return filled


def _mean_and_spread(weight: Tensor, shape: torch.Size) -> Tensor:
    """Lay out the last layer of the speaker encoder, whose inputs are all means and then all spreads."""
    filled = torch.zeros(shape, dtype=torch.float16)
    narrow, wide = weight.shape[1] // 2, shape[1] // 2
    filled[:, :narrow] = weight[:, :narrow].half()
    filled[:, wide : wide + narrow] = weight[:, narrow:].half()
    return filled


def _sounding(generator: nn.Module) -> int:
    """Return how many channels of the first layer a generator of the same function needs."""
    parts: Any = generator
    needed = _last(parts.conv_pre.weight, parts.conv_pre.bias, parts.cond_layer.weight, parts.cond_layer.bias)
    for index, (up, condition) in enumerate(zip(parts.ups, parts.conds, strict=True)):
        weight = up.weight.transpose(0, 1)[:, : needed >> index]
        needed = max(needed, _last(weight, up.bias, condition.weight, condition.bias) << (index + 1))
    return -(-needed // STEP) * STEP


def _last(*weights: Tensor) -> int:
    """Return the number of outputs up to the last one that is not silent."""
    heard = torch.stack([weight.detach().flatten(1).any(1) if weight.ndim > 1 else weight != 0 for weight in weights])
    found = heard.any(0).nonzero()
    return int(found.max()) + 1 if len(found) else 1


def _copy_corner(wide: nn.Module, narrow: nn.Module) -> None:
    """Take over what a narrow layer has of a wide one."""
    source: Any = wide
    target: Any = narrow
    weight = source.weight[tuple(slice(size) for size in target.weight.shape)]
    if is_parametrized(narrow):
        target.weight = weight  # the norm takes it apart
    else:
        target.weight.copy_(weight)
    if target.bias is not None:
        target.bias.copy_(source.bias[: len(target.bias)])


def dvae_mel(wave: Tensor) -> Tensor:
    """Return the logarithm of the mel that coqui's DVAE reads, its bands as they are; shape (waves, 80, frames)."""
    from TTS.tts.layers.xtts.dvae import dvae_wav_to_mel

    mel: Tensor = dvae_wav_to_mel(wave, mel_norms=torch.ones(80))
    return mel
