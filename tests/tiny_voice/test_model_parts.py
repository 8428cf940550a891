"""A narrow vocoder in coqui's shapes is the same function in a small file, and is found there again."""

from typing import Any

import pytest
import torch
from torch import nn

from tools.tiny_voice.widen import widen
from tools.untrained import VocoderSize, new_vocoder
from utils.xtts.narrow_vocoder import without_silent_channels

FRAME = 256  # samples
SIZE = VocoderSize(dim=24, channels=64, filters=(8, 16, 32, 64))


def random_vocoder(size: VocoderSize) -> Any:
    """A vocoder with random norms and biases."""
    torch.manual_seed(0)
    decoder = new_vocoder(size)
    with torch.no_grad():
        for name, weight in decoder.named_parameters():
            if weight.ndim == 1 or name.endswith("original0"):
                weight.add_(torch.rand_like(weight) * 0.5)
    return decoder.eval()


@pytest.fixture(scope="module")
def pair() -> tuple[Any, Any]:
    """A narrow vocoder, and one of coqui's size that was filled from it."""
    narrow = random_vocoder(SIZE)
    wide: nn.Module = new_vocoder(VocoderSize(SIZE.dim))
    wide.load_state_dict(widen(narrow.state_dict(), SIZE.dim))
    return narrow, wide.eval()


@torch.no_grad()
def test_audio_and_speaker_embedding_are_the_same(pair: tuple[Any, Any]) -> None:
    latents, voice = torch.randn(2, 8, SIZE.dim), torch.randn(2, 512, 1) * 0.05
    narrow, wide = (decoder(latents, g=voice) for decoder in pair)
    assert (narrow - wide).abs().max() < 0.01 * narrow.abs().max()  # half precision, and nothing else
    sound = torch.randn(2, 16_000) * 0.1
    narrow, wide = (decoder.speaker_encoder(sound.clone(), l2_norm=True) for decoder in pair)
    assert nn.functional.cosine_similarity(narrow, wide).min() > 0.999


@torch.no_grad()
def test_the_narrow_generator_is_found_again(pair: tuple[Any, Any]) -> None:
    wide = pair[1]
    generator: Any = without_silent_channels(wide)
    assert generator.conv_pre.out_channels == SIZE.channels
    frames, voice = torch.randn(1, SIZE.dim, 16), torch.randn(1, 512, 1) * 0.05
    whole = wide.waveform_decoder(frames, g=voice)
    assert torch.allclose(generator(frames, g=voice), whole, atol=1e-4 * float(whole.abs().max()))
    assert without_silent_channels(pair[0]) is pair[0].waveform_decoder


@torch.no_grad()
def test_sound_repeats_itself_every_frame_while_the_latents_do_not_change() -> None:
    """Why the sound must follow from the change of the latents: docs/embedded-voice.md."""
    latents = torch.randn(1, 1, SIZE.dim).expand(1, 40, SIZE.dim)
    sound = random_vocoder(SIZE)(latents, g=torch.randn(1, 512, 1))[0, 0, 10_000:30_000]
    assert torch.allclose(sound[FRAME:], sound[:-FRAME], atol=1e-5)
    assert not torch.allclose(sound[FRAME // 2 :], sound[: -FRAME // 2], atol=1e-3)
