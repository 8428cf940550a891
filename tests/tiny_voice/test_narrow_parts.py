"""A narrow vocoder laid into coqui's shapes is the same function, in few bytes, and is found there again."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from utils.xtts.narrow import Width, narrowed, new_vocoder, widened

WIDTH = Width(dim=24, channels=64, filters=(8, 16, 32, 64))


def lively(width: Width) -> Any:
    """A vocoder whose norms and biases are not those of the beginning either."""
    torch.manual_seed(0)
    decoder = new_vocoder(width)
    with torch.no_grad():
        for name, weight in decoder.named_parameters():
            if weight.ndim == 1 or name.endswith("original0"):
                weight.add_(torch.rand_like(weight) * 0.5)
    return decoder.eval()


@pytest.fixture(scope="module")
def pair() -> tuple[Any, Any]:
    """A narrow vocoder, and one of coqui's size that was filled from it."""
    narrow = lively(WIDTH)
    wide: nn.Module = new_vocoder(Width(WIDTH.dim))
    wide.load_state_dict(widened(narrow, WIDTH))
    return narrow, wide.eval()


@torch.no_grad()
def test_the_sound_is_the_same(pair: tuple[Any, Any]) -> None:
    latents, voice = torch.randn(2, 8, WIDTH.dim), torch.randn(2, 512, 1) * 0.05
    narrow, wide = (decoder(latents, g=voice) for decoder in pair)
    assert (narrow - wide).abs().max() < 0.01 * narrow.abs().max()  # half precision, and nothing else


@torch.no_grad()
def test_a_voice_is_heard_the_same(pair: tuple[Any, Any]) -> None:
    sound = torch.randn(2, 16_000) * 0.1
    narrow, wide = (decoder.speaker_encoder(sound.clone(), l2_norm=True) for decoder in pair)
    assert nn.functional.cosine_similarity(narrow, wide).min() > 0.999


@torch.no_grad()
def test_the_narrow_generator_is_found_again(pair: tuple[Any, Any]) -> None:
    wide = pair[1]
    found: Any = narrowed(wide)
    assert found.conv_pre.out_channels == WIDTH.channels
    frames, voice = torch.randn(1, WIDTH.dim, 16), torch.randn(1, 512, 1) * 0.05
    whole = wide.waveform_decoder(frames, g=voice)
    assert torch.allclose(found(frames, g=voice), whole, atol=1e-4 * float(whole.abs().max()))


def test_a_vocoder_of_coqui_stays_as_it_is() -> None:
    decoder: Any = new_vocoder(Width(dim=16, channels=64, filters=(8, 8, 8, 8)))
    assert narrowed(decoder) is decoder.waveform_decoder


def test_the_file_is_hardly_larger_than_the_narrow_network(pair: tuple[Any, Any], tmp_path: Path) -> None:
    torch.save(widened(pair[0], WIDTH), tmp_path / "wide.pth")
    numbers = sum(weight.numel() for weight in pair[1].state_dict().values())
    assert (tmp_path / "wide.pth").stat().st_size < 0.35 * 2 * numbers
