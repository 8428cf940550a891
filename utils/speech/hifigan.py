"""coqui's HifiganGenerator with the same weights and less work.

- Weight norms are multiplied out once; coqui does it in every call.
- Time comes before channels in memory, so convolutions read rows as they are, and a transposed convolution is a plain
  one with a few taps that writes several samples side by side.
- What a voice adds to a layer goes into the bias, and the division by the number of branches into the next weights.
- A part of a sentence has a margin of frames on both sides, and each stage keeps only what the later ones need.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from utils.xtts.device import to_device

Layer = nn.Conv1d | nn.ConvTranspose1d
SLOPE, LAST_SLOPE = 0.1, 0.01  # coqui's second one is torch's default, as it was published


class Convolution(NamedTuple):
    """A convolution over time for tensors of shape (1, channels, 1, time), channels last in memory."""

    weight: Tensor
    bias: Tensor | None
    padding: int  # how many samples on one side an output depends on
    dilation: int

    @classmethod
    def of(cls, layer: nn.Conv1d, dtype: torch.dtype, device: torch.device, divisor: int = 1) -> Self:
        bias = None if layer.bias is None else layer.bias.detach().to(device, dtype)
        weight = flat(layer.weight.detach().float() / divisor).to(device, dtype)
        return cls(weight, bias, int(layer.padding[0]), layer.dilation[0])

    def __call__(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight, self.bias, padding=(0, self.padding), dilation=(1, self.dilation))


class TransposedConvolution(NamedTuple):
    """A transposed convolution, as a plain one whose outputs are ``stride`` samples at once."""

    weight: Tensor
    stride: int
    cut: int
    taps: int

    @classmethod
    def of(cls, layer: nn.ConvTranspose1d, dtype: torch.dtype, device: torch.device, divisor: int = 1) -> Self:
        weight = layer.weight.detach().float() / divisor
        stride = layer.stride[0]
        taps = math.ceil(weight.shape[2] / stride)
        weight = functional.pad(weight, (0, taps * stride - weight.shape[2]))
        phases = weight.reshape(*weight.shape[:2], taps, stride).flip(2).permute(3, 1, 0, 2)  # stride, out, in, taps
        return cls(flat(phases.flatten(0, 1)).to(device, dtype), stride, int(layer.padding[0]), taps)

    def reach(self, samples: int) -> int:
        """Return how many inputs beyond a part are needed for this many correct samples beyond it."""
        return math.ceil((samples + self.taps * self.stride - 1 - self.cut) / self.stride)

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        wide = functional.conv2d(x, self.weight, bias.repeat(self.stride), padding=(0, self.taps - 1))
        rows = wide.permute(0, 2, 3, 1).reshape(1, 1, -1, bias.shape[0])
        return rows[:, :, self.cut : self.cut + x.shape[3] * self.stride].permute(0, 3, 1, 2)


Branch = tuple[tuple[Convolution, Convolution], ...]


@dataclass(frozen=True)
class UpsamplingStage:
    """One upsampling step and its residual branches."""

    upsample: TransposedConvolution
    branches: tuple[Branch, ...]  # chains of pairs of convolutions, which are summed
    margin: int  # samples beyond a part that the later stages need

    @property
    def reach(self) -> int:
        """Return how many samples on one side the branches depend on."""
        return max(sum(first.padding + second.padding for first, second in branch) for branch in self.branches)

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        x = self.upsample(functional.leaky_relu_(x, SLOPE), bias)
        activated = functional.leaky_relu(x, SLOPE)
        summed = _chain(x, activated, self.branches[0])
        for branch in self.branches[1:]:
            summed += _chain(x, activated, branch)
        return summed


def _chain(x: Tensor, activated: Tensor, branch: Branch) -> Tensor:
    for number, (first, second) in enumerate(branch):
        inner = first(functional.leaky_relu(x, SLOPE) if number else activated)
        x = second(functional.leaky_relu_(inner, SLOPE)).add_(x)
    return x


@dataclass(frozen=True)
class HifiGan:
    """The HiFi-GAN generator in one precision."""

    dtype: torch.dtype
    before: Convolution  # at the frame rate
    stages: tuple[UpsamplingStage, ...]
    after: Convolution  # to one channel, in float32: it costs next to nothing
    voices: tuple[tuple[Tensor, Tensor], ...]  # turn a voice into a bias of the first convolution and each stage

    # Long because stages are built from the last to the first, as each needs the margin of the next.
    @classmethod
    def of(cls, network: nn.Module, dtype: torch.dtype, device: torch.device) -> Self:
        generator: Any = network
        kernels = generator.num_kernels
        plain = torch.float32
        after = Convolution.of(generator.conv_post, plain, device, kernels)
        margin = after.padding
        stages = []
        for index in reversed(range(generator.num_upsamples)):
            blocks = generator.resblocks[index * kernels : (index + 1) * kernels]
            branches = tuple(
                tuple(
                    (Convolution.of(first, dtype, device), Convolution.of(second, dtype, device))
                    for first, second in zip(block.convs1, block.convs2, strict=True)
                )
                for block in blocks
            )
            upsample = TransposedConvolution.of(generator.ups[index], dtype, device, kernels if index else 1)
            stages.append(UpsamplingStage(upsample, branches, margin))
            margin = upsample.reach(margin + stages[-1].reach)
        conditions = list(generator.conds) if generator.cond_in_each_up_layer else [None] * len(stages)
        pairs = zip([generator.conv_pre, *generator.ups], [generator.cond_layer, *conditions], strict=True)
        voices = tuple(_voice_bias(layer, condition, device) for layer, condition in pairs)
        return cls(dtype, Convolution.of(generator.conv_pre, dtype, device), tuple(reversed(stages)), after, voices)

    @property
    def reach(self) -> int:
        """Return how many frames on either side a sample depends on."""
        return self.before.padding + self._margin

    @property
    def _margin(self) -> int:
        first = self.stages[0]
        return first.upsample.reach(first.margin + first.reach)

    def biases(self, embedding: Tensor) -> list[Tensor]:
        """Return the biases of a voice, whose embedding has the shape (1, 512, 1)."""
        voice = to_device(embedding, self.before.weight.device).float().flatten()
        return [(weight @ voice + bias).to(self.dtype) for weight, bias in self.voices]

    def __call__(self, frames: Tensor, left: int, right: int, biases: list[Tensor]) -> Tensor:
        """Return the audio in float32, without that of the margins of ``left`` and ``right`` frames.

        Where a number was too large for the format, it is NaN instead of noise at full volume.
        """
        x = frames.to(self.dtype).T[None, :, None]
        x = self.before._replace(bias=biases[0])(x)
        x, left, right = _narrowed(x, left, right, self._margin)
        for stage, bias in zip(self.stages, biases[1:], strict=True):
            x = stage(x, bias)
            step = stage.upsample.stride
            x, left, right = _narrowed(x, left * step, right * step, stage.margin)
        levels = self.after(functional.leaky_relu(x.float(), LAST_SLOPE)).flatten()
        sound = torch.tanh(levels).masked_fill_(levels.isinf(), torch.nan)
        return sound[left : len(sound) - right]


def flat(weight: Tensor) -> Tensor:
    """Return the weight of a 1D convolution as that of an image of height 1, channels last."""
    return weight[:, :, None].contiguous(memory_format=torch.channels_last)


def _voice_bias(layer: Layer, condition: nn.Conv1d | None, device: torch.device) -> tuple[Tensor, Tensor]:
    def bias_of(layer: Layer) -> Tensor:
        plain = torch.zeros(layer.out_channels) if layer.bias is None else layer.bias.detach().float()
        return plain.to(device)

    bias = bias_of(layer)
    if condition is None:
        return torch.zeros(len(bias), 1, device=device), bias
    return condition.weight.detach().float().flatten(1).to(device), bias + bias_of(condition)


def _narrowed(x: Tensor, left: int, right: int, margin: int) -> tuple[Tensor, int, int]:
    """Cut off what exceeds a margin and return the new margins; at the ends of a sentence there is less."""
    start = max(0, left - margin)
    stop = max(0, right - margin)
    return x[..., start : x.shape[3] - stop], left - start, right - stop
