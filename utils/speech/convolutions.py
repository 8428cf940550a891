"""coqui's HifiganGenerator once more, with the same weights and less to do.

What is different, and why:

- The norms of the weights are multiplied out once. coqui does it in every call.
- Time comes before channels in memory. Then convolutions read rows as they lie, and a transposed convolution is a
  plain one with a few taps that writes several samples side by side.
- What a voice adds to a layer goes into the bias; the division by the number of branches goes into the next weights.
- A part of a sentence brings a margin of frames on both sides, and each stage keeps just what those after it reach.

Measured on one core of a Zen 4 on 2026-11-21 with benchmarks/vocoding.py: fp32 is as fast as coqui's, since nearly all
of the time goes into products at 105 GFLOP/s, the limit of the core; bf16 makes them at 205, 2.2 times as fast as
coqui's, and 0.07 dB of log-mel apart. Tried and left: weights packed for oneDNN and activations fused into it (no gain
over all); eight-bit products (400 GFLOP/s, but rounding to them puts the sound 0.4-0.9 dB apart, and 25 dB where it is
soft); residuals kept in fp32 beside bf16 (2 dB less noise, which is 43 dB below the sound already). Not built: the
Toom-Cook scheme with tiles of four in fp32, whose steps, measured one by one, add up to 1.4 times the speed.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

Layer = nn.Conv1d | nn.ConvTranspose1d
SLOPE, LAST_SLOPE = 0.1, 0.01  # coqui's second one is torch's default, as it was published


class Convolution(NamedTuple):
    """A convolution over time of tensors of shape (1, channels, 1, time), channels last in memory."""

    weight: Tensor
    bias: Tensor | None
    padding: int
    dilation: int

    @classmethod
    def of(cls, layer: nn.Conv1d, dtype: torch.dtype, device: torch.device, divisor: int = 1) -> "Convolution":
        """Take over the weights of a Conv1d, normed or not."""
        bias = None if layer.bias is None else layer.bias.detach().to(device, dtype)
        weight = flat(layer.weight.detach().float() / divisor).to(device, dtype)
        return cls(weight, bias, int(layer.padding[0]), layer.dilation[0])

    @property
    def reach(self) -> int:
        """Return how far to one side it looks."""
        return self.padding

    def __call__(self, x: Tensor) -> Tensor:
        """Convolve, with zeros around."""
        return functional.conv2d(x, self.weight, self.bias, padding=(0, self.padding), dilation=(1, self.dilation))


class Widening(NamedTuple):
    """A transposed convolution, written as a plain one whose outputs are ``stride`` samples at once."""

    weight: Tensor
    stride: int
    cut: int
    taps: int

    @classmethod
    def of(cls, layer: nn.ConvTranspose1d, dtype: torch.dtype, device: torch.device, divisor: int = 1) -> "Widening":
        """Take over the weights of a ConvTranspose1d, normed or not."""
        weight, stride = layer.weight.detach().float() / divisor, layer.stride[0]
        taps = math.ceil(weight.shape[2] / stride)
        weight = functional.pad(weight, (0, taps * stride - weight.shape[2]))
        phases = weight.reshape(*weight.shape[:2], taps, stride).flip(2).permute(3, 1, 0, 2)  # stride, out, in, taps
        return cls(flat(phases.flatten(0, 1)).to(device, dtype), stride, int(layer.padding[0]), taps)

    def reach(self, samples: int) -> int:
        """Return how far its input has to go beyond a part, for the output to be right that much beyond it."""
        return math.ceil((samples + self.taps * self.stride - 1 - self.cut) / self.stride)

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        """Make ``stride`` samples of each one."""
        wide = functional.conv2d(x, self.weight, bias.repeat(self.stride), padding=(0, self.taps - 1))
        rows = wide.permute(0, 2, 3, 1).reshape(1, 1, -1, bias.shape[0])
        return rows[:, :, self.cut : self.cut + x.shape[3] * self.stride].permute(0, 3, 1, 2)


Branch = tuple[tuple[Convolution, Convolution], ...]


@dataclass(frozen=True)
class Stage:
    """One step up in rate, and the branches that shape the sound at it.

    Attributes:
        widening: The step.
        branches: What is added up; each is a chain of pairs of convolutions.
        margin: Samples beyond a part that the stages after it need.
    """

    widening: Widening
    branches: tuple[Branch, ...]
    margin: int

    @property
    def reach(self) -> int:
        """Return how far the branches look to one side."""
        return max(sum(first.reach + second.reach for first, second in branch) for branch in self.branches)

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        """Return the sum of the branches."""
        x = self.widening(functional.leaky_relu_(x, SLOPE), bias)
        lively = functional.leaky_relu(x, SLOPE)
        summed = _chain(x, lively, self.branches[0])
        for branch in self.branches[1:]:
            summed += _chain(x, lively, branch)
        return summed


def _chain(x: Tensor, lively: Tensor, branch: Branch) -> Tensor:
    for number, (first, second) in enumerate(branch):
        inner = first(functional.leaky_relu(x, SLOPE) if number else lively)
        x = second(functional.leaky_relu_(inner, SLOPE)).add_(x)
    return x


@dataclass(frozen=True)
class Generator:
    """The vocoder's network with weights in one precision.

    Attributes:
        dtype: What it computes in.
        before: The convolution at the rate of frames.
        stages: The steps up to the rate of sound.
        after: The convolution that leaves one channel, in float32: it costs next to nothing.
        voices: Weights and biases that turn a voice into a bias, for the first convolution and each stage.
    """

    dtype: torch.dtype
    before: Convolution
    stages: tuple[Stage, ...]
    after: Convolution
    voices: tuple[tuple[Tensor, Tensor], ...]

    @classmethod
    def of(cls, network: nn.Module, dtype: torch.dtype, device: torch.device) -> "Generator":
        """Take over the weights of coqui's HifiganGenerator."""
        generator: Any = network
        many, plain = generator.num_kernels, torch.float32
        after = Convolution.of(generator.conv_post, plain, device, many)
        margin, stages = after.reach, []
        for index in reversed(range(generator.num_upsamples)):
            blocks = generator.resblocks[index * many : (index + 1) * many]
            branches = tuple(_pairs(block, dtype, device) for block in blocks)
            widening = Widening.of(generator.ups[index], dtype, device, many if index else 1)
            stages.append(Stage(widening, branches, margin))
            margin = widening.reach(margin + stages[-1].reach)
        conditions = list(generator.conds) if generator.cond_in_each_up_layer else [None] * len(stages)
        pairs = zip([generator.conv_pre, *generator.ups], [generator.cond_layer, *conditions], strict=True)
        voices = tuple(_voicing(layer, condition, device) for layer, condition in pairs)
        return cls(dtype, Convolution.of(generator.conv_pre, dtype, device), tuple(reversed(stages)), after, voices)

    @property
    def hop(self) -> int:
        """Return the samples of a frame."""
        return math.prod(stage.widening.stride for stage in self.stages)

    @property
    def reach(self) -> int:
        """Return how many frames on either side a sample depends on."""
        return self.before.reach + self._margin

    @property
    def _margin(self) -> int:
        first = self.stages[0]
        return first.widening.reach(first.margin + first.reach)

    def biases(self, embedding: Tensor) -> list[Tensor]:
        """Return the biases of a voice; shape of the embedding: (1, 512, 1)."""
        voice = embedding.float().flatten().to(self.before.weight.device)
        return [(weight @ voice + bias).to(self.dtype) for weight, bias in self.voices]

    def __call__(self, frames: Tensor, left: int, right: int, biases: list[Tensor]) -> Tensor:
        """Return the sound of the frames between the margins, one number a sample in float32.

        Args:
            frames: One row a frame.
            left: How many of them are there only as margin, at the beginning.
            right: The same at the end.
            biases: Those of a voice.
        """
        x = frames.to(self.dtype).T[None, :, None]
        x = self.before._replace(bias=biases[0])(x)
        x, left, right = _narrowed(x, left, right, self._margin)
        for stage, bias in zip(self.stages, biases[1:], strict=True):
            x = stage(x, bias)
            step = stage.widening.stride
            x, left, right = _narrowed(x, left * step, right * step, stage.margin)
        sound = torch.tanh(self.after(functional.leaky_relu(x.float(), LAST_SLOPE))).flatten()
        return sound[left : len(sound) - right]


def flat(weight: Tensor) -> Tensor:
    """Return the weight of a convolution in one dimension as one of an image of height 1, channels last."""
    return weight[:, :, None].contiguous(memory_format=torch.channels_last)


def _pairs(block: nn.Module, dtype: torch.dtype, device: torch.device) -> Branch:
    layers: Any = block
    return tuple(
        (Convolution.of(first, dtype, device), Convolution.of(second, dtype, device))
        for first, second in zip(layers.convs1, layers.convs2, strict=True)
    )


def _voicing(layer: Layer, condition: nn.Conv1d | None, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return what gives the bias of a layer together with what a voice adds to its output."""
    bias = _plain_bias(layer).to(device)
    if condition is None:
        return torch.zeros(len(bias), 1, device=device), bias
    weight = condition.weight.detach().float().flatten(1).to(device)
    return weight, bias + _plain_bias(condition).to(device)


def _plain_bias(layer: Layer) -> Tensor:
    return torch.zeros(layer.out_channels) if layer.bias is None else layer.bias.detach().float()


def _narrowed(x: Tensor, left: int, right: int, margin: int) -> tuple[Tensor, int, int]:
    """Cut off what exceeds a margin; return what it is then on both sides. At the ends of a sentence there is less."""
    start, stop = max(0, left - margin), max(0, right - margin)
    return x[..., start : x.shape[3] - stop], left - start, right - stop
