"""The clock in the latents of a GPT, and how the vocoder reads it."""

from typing import Any

import numpy as np
import torch

from tools.random_model import small_vocabulary
from tools.tiny_voice.clock import (
    CODE_FRAMES,
    TURN,
    add_clock,
    clock,
    find_clock,
    frame_filter,
    interpolate,
    read_hands,
)
from tools.tiny_voice.gpt import initial_gpt
from tools.untrained import GptSize, new_config
from utils.xtts.model import new_gpt

CODES, DIMS = 60, [3, 17, 40]


def test_the_frame_is_read_from_lines_between_the_codes() -> None:
    turned = clock(CODES)
    found = interpolate(torch.from_numpy(np.stack([turned.real, turned.imag])).float()).numpy()
    windows = np.lib.stride_tricks.sliding_window_view(found[0] + 1j * found[1], len(frame_filter()))
    frames = 3 + np.arange(len(windows))
    inner = slice(round(2 * CODE_FRAMES), -round(2 * CODE_FRAMES))
    error = np.abs(windows @ frame_filter() - np.exp(2j * np.pi * frames / TURN))[inner]
    assert error.max() < 0.2


def test_the_latents_of_a_gpt_turn_with_the_clock() -> None:
    torch.manual_seed(0)
    vocabulary = small_vocabulary()
    config = new_config(GptSize(layers=2, dim=64, heads=2, codes=32), vocabulary)
    gpt: Any = new_gpt(config.model_args, vocabulary).eval()
    gpt.load_state_dict(add_clock(initial_gpt(config, vocabulary, pace=1.0), DIMS))
    with torch.no_grad():
        latents = gpt(
            torch.randint(1, 20, (1, 12)),
            torch.tensor([12]),
            torch.randint(0, 32, (1, CODES)),
            torch.tensor([CODES * gpt.code_stride_len]),
            cond_latents=torch.randn(1, 32, 64),
            return_latent=True,
        )[0].numpy()
    dims, size = find_clock(latents)
    assert dims == DIMS
    turned = read_hands(latents[:, dims]) / clock(CODES) / size
    assert np.abs(turned - 1).mean() < 0.2
