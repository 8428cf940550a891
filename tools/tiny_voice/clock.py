"""A clock in the latents of the GPT, without which the vocoder has no pitch of its own.

A HiFi-GAN has no clock but its frame: where its input does not change, it repeats the same 256 samples. So three
dimensions of the latents turn with the position of the code, one turn in eight frames. The vocoder gets straight lines
between the codes, which are 4.35 frames apart; a linear filter over seven frames still finds the turn of each frame in
them.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from utils.media.rates import CODE_SECONDS, OUTPUT_RATE, RATE

FRAME = 256  # samples of the output
TURN = 8  # frames
CODE_FRAMES = CODE_SECONDS * OUTPUT_RATE / FRAME
FACTORS = (CODE_SECONDS * RATE / FRAME, OUTPUT_RATE / RATE)  # of both interpolations in coqui's HifiDecoder
TAPS = 7  # of the first convolution of the vocoder
UNEVEN = 0.1  # deviation of the size of latents that the filter allows for
HANDS = np.exp(2j * np.pi * np.arange(3) / 3)  # a third of a turn apart
SMALL = 0.1  # size of the clock in the position embeddings, as their other dimensions have
GAIN = 4.0  # of the first layer
FINAL = 2.5  # of the last norm
OUTSIDE = (
    "text_embedding.weight",
    "mel_embedding.weight",
    "text_pos_embedding.emb.weight",
    "mel_pos_embedding.emb.weight",
    "mel_head.weight",
    "text_head.weight",
)


def clock(codes: int) -> npt.NDArray[np.complex128]:
    """Return where the clock is at the middle of each code: one turn in ``TURN`` frames."""
    return np.asarray(np.exp(2j * np.pi * CODE_FRAMES / TURN * (np.arange(codes) + 0.5)))


def frame_filter() -> npt.NDArray[np.complex128]:
    """Return the taps that find the clock of each frame in interpolated latents."""
    random = np.random.default_rng(0)
    turned = clock(3_000)
    turned = turned * (1 + UNEVEN * random.standard_normal(len(turned)))
    found = interpolate(torch.from_numpy(np.stack([turned.real, turned.imag])).float()).double().numpy()
    frames = found[0] + 1j * found[1]
    windows = np.lib.stride_tricks.sliding_window_view(frames, TAPS)
    middle = np.arange(len(windows)) + TAPS // 2
    return np.asarray(np.linalg.lstsq(windows, np.exp(2j * np.pi * middle / TURN), rcond=None)[0])


def interpolate(latents: Tensor) -> Tensor:
    """Bring latents (dim, codes) to frames, as coqui's HifiDecoder does."""
    for factor in FACTORS:
        latents = functional.interpolate(latents[None], scale_factor=[factor], mode="linear")[0]
    return latents


def hands(turned: npt.NDArray[np.complex128]) -> npt.NDArray[np.float64]:
    """Return the clock as three values a third of a turn apart: what a layer norm adds to all of them cancels."""
    return np.asarray((turned[:, None] * HANDS.conj()).real)


def read_hands(values: npt.NDArray[np.float32]) -> npt.NDArray[np.complex128]:
    """Return the clock of three values."""
    return np.asarray(values @ HANDS / 1.5)


def find_clock(latents: npt.NDArray[np.float32]) -> tuple[list[int], float]:
    """Return the dimensions of a clip's latents that hold the clock, and its size."""
    turned = clock(len(latents))
    dims = [int(dim) for dim in (hands(turned).T @ latents).argmax(1)]
    return dims, float((read_hands(latents[:, dims]) / turned).real.mean())


def isolate(weights: Mapping[str, Tensor], dims: Sequence[int]) -> dict[str, Tensor]:
    """Return the weights of a GPT in which nothing reads or writes some dimensions."""
    changed = {name: weight.detach().clone().float() for name, weight in weights.items()}
    isolated = list(dims)
    for name, weight in changed.items():
        if name.endswith((".c_attn.weight", ".c_fc.weight", ".c_proj.bias")):
            weight[isolated] = 0
        elif name.endswith(".c_proj.weight") or name in OUTSIDE:
            weight[:, isolated] = 0
    return changed


def add_clock(weights: Mapping[str, Tensor], dims: Sequence[int]) -> dict[str, Tensor]:
    """Give a GPT the clock in three dimensions, which nothing else reads or writes from then on.

    The position embeddings hold a small clock, which the first layer makes as large as the other dimensions are from
    there on: gelu(x) - gelu(-x) is x, so two of its units add a multiple of one dimension.
    """
    changed, own = isolate(weights, dims), list(dims)
    for norm, size in (("gpt.h.0.ln_2", 1.0), ("gpt.ln_f", 1.0), ("final_norm", FINAL)):
        changed[f"{norm}.weight"][own], changed[f"{norm}.bias"][own] = size, 0.0
    positions = changed["mel_pos_embedding.emb.weight"]
    positions[:, own] = SMALL * torch.from_numpy(hands(clock(len(positions)))).float()
    into, out = changed["gpt.h.0.mlp.c_fc.weight"], changed["gpt.h.0.mlp.c_proj.weight"]
    units = out.norm(dim=1).argsort()[: 2 * len(own)].tolist()
    into[:, units], out[units], changed["gpt.h.0.mlp.c_fc.bias"][units] = 0.0, 0.0, 0.0
    for place, unit in enumerate(units):
        dim, sign = own[place // 2], 1.0 - 2 * (place % 2)
        into[dim, unit], out[unit, dim] = sign, sign * GAIN
    return changed
