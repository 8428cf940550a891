"""The vocoder computes the same audio as coqui's, whole or in chunks."""

import subprocess
import sys
from itertools import cycle
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.precision import distance
from tests.speech.small_vocoder import small_vocoder, vectors, voice
from utils.core.paths import ROOT
from utils.media.audio import Samples, resample
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE, RATE
from utils.speech import vocoder as vocoder_module
from utils.speech.hifigan import HifiGan
from utils.speech.precision import multiplies_bf16
from utils.speech.vocoder import WINDOWS, PaddedFrames, Vocoder, windows

SAME = 1e-4
needs_bf16 = pytest.mark.skipif(not multiplies_bf16(), reason="this processor does not multiply bf16")


@pytest.fixture(scope="module")
def decoder() -> Any:
    return small_vocoder()


@pytest.fixture(scope="module")
def vocoder(decoder: Any) -> Vocoder:
    return Vocoder(decoder)


def of_coqui(decoder: Any, latents: torch.Tensor, embedding: torch.Tensor) -> Samples:
    with torch.inference_mode():
        sound: Samples = decoder(latents[None], g=embedding)[0, 0].numpy()
    return sound


@pytest.mark.parametrize("codes", [1, 2, 3, 13, 50, 147, 604])
def test_the_sound_is_that_of_coqui_whose_vocoder_is_unchanged(codes: int, decoder: Any, vocoder: Vocoder) -> None:
    sound = vocoder.sound(vectors(codes), voice())
    assert sound.dtype == np.float32
    assert sound.std() > 0.01  # or everything would be the same
    np.testing.assert_allclose(sound, of_coqui(decoder, vectors(codes), voice()), atol=SAME, rtol=0)
    torch.testing.assert_close(decoder.state_dict(), small_vocoder().state_dict(), atol=0, rtol=0)


@pytest.mark.slow
def test_the_sound_of_the_published_size_is_that_of_coqui() -> None:
    decoder = small_vocoder(1024, 512)
    wanted = of_coqui(decoder, vectors(30, 1024), voice())
    np.testing.assert_allclose(Vocoder(decoder).sound(vectors(30, 1024), voice()), wanted, atol=SAME, rtol=0)


@pytest.mark.parametrize("sizes", [(1,), (1, 13, 1, 2), (1000,)])
@pytest.mark.parametrize("codes", [0, 1, 31])
def test_chunks_joined_are_the_whole(codes: int, sizes: tuple[int, ...], vocoder: Vocoder) -> None:
    stream, latents, chunks = vocoder.stream(voice()), vectors(codes), []
    for size in cycle(sizes):
        chunks.append(stream.push(latents[:size]))
        latents = latents[size:]
        if not len(latents):
            break
    whole = vocoder.sound(vectors(codes), voice())
    np.testing.assert_allclose(np.concatenate([*chunks, stream.finish()]), whole, atol=SAME, rtol=0)


def test_a_vocoder_of_another_rate_is_heard_at_24_khz() -> None:
    decoder = small_vocoder()
    decoder.output_sample_rate = decoder.input_sample_rate
    vocoder, latents = Vocoder(decoder), vectors(31)
    whole, stream = vocoder.sound(latents, voice()), vocoder.stream(voice())
    wanted = resample(of_coqui(decoder, latents, voice()), RATE, OUTPUT_RATE)
    assert len(whole) == pytest.approx(31 * CODE_SECONDS * OUTPUT_RATE, abs=1)
    np.testing.assert_allclose(whole, wanted, atol=SAME, rtol=0)
    chunks = [stream.push(latents[:7]), stream.push(latents[7:]), stream.finish()]
    np.testing.assert_allclose(np.concatenate(chunks), whole, atol=SAME, rtol=0)


def test_threads_share_a_sentence(
    decoder: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    torch.set_num_threads(2)
    request.addfinalizer(lambda: torch.set_num_threads(1))
    monkeypatch.setattr(vocoder_module, "MAX_FRAMES_CPU", 50)
    shared = Vocoder(decoder)
    assert torch.get_num_threads() == 2
    assert shared.threads is not None
    sentences = [vectors(60), vectors(5, seed=1), vectors(31, seed=2)]
    sounds = [shared.sound(latents, voice()) for latents in sentences]
    assert set(shared.threads.map(lambda _: torch.get_num_threads(), range(4))) == {1}
    torch.set_num_threads(1)
    for sound, latents in zip(sounds, sentences, strict=True):
        np.testing.assert_allclose(sound, of_coqui(decoder, latents, voice()), atol=SAME, rtol=0)


@needs_bf16
def test_bf16_sounds_the_same(decoder: Any, vocoder: Vocoder) -> None:
    sound, half = (each.sound(vectors(60), voice()) for each in (vocoder, Vocoder(decoder, "bf16")))
    assert 0 < distance(sound, half) < 0.3


def test_numbers_too_large_for_fp16_are_computed_in_fp32_from_then_on(decoder: Any, vocoder: Vocoder) -> None:
    half = Vocoder(decoder)
    half.network = HifiGan.of(decoder.waveform_decoder, torch.float16, torch.device("cpu"))
    quiet = half.sound(vectors(9), voice())
    assert np.isfinite(quiet).all()
    assert half.network.dtype == torch.float16
    loud = vectors(9) * 1e5
    np.testing.assert_allclose(half.sound(loud, voice()), vocoder.sound(loud, voice()), atol=SAME, rtol=0)
    assert half.network.dtype == torch.float32


@pytest.mark.parametrize("size", [9, 64, 70, 149, 1024, 2600])
@pytest.mark.parametrize("margins", [(0, 0), (5, 14)])
def test_windows_of_few_sizes_sound_the_same(size: int, margins: tuple[int, int], vocoder: Vocoder) -> None:
    left, right = (min(margin, size // 3) for margin in margins)
    whole = PaddedFrames(torch.randn(size, 24, generator=torch.Generator().manual_seed(0)), left, right)
    parts = list(windows(whole, vocoder.network.reach))
    assert len({len(part.frames) for part in parts}) == 1
    assert len(parts[0].frames) in {size, *WINDOWS}
    biases = vocoder.network.biases(voice())
    joined = torch.cat([vocoder.network(*part, biases) for part in parts])
    torch.testing.assert_close(joined, vocoder.network(*whole, biases), atol=SAME, rtol=0)


GROWTH = """
import psutil, torch
from utils.core.paths import TINY_MODEL
from utils.speech.synthesizer import open_voice

torch.set_num_threads(1)
spoken = open_voice(TINY_MODEL, precision="fp32")
sizes = []
for codes in range(20, 80):
    spoken.vocoder.sound(torch.randn(codes, spoken.decoder.stack.dim), spoken.voice().embedding)
    sizes.append(psutil.Process().memory_info().rss >> 20)
print(sizes[-1] - sizes[5])
"""


@pytest.mark.long
def test_memory_hardly_grows_with_the_number_of_lengths() -> None:
    done = subprocess.run([sys.executable, "-c", GROWTH], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200, done.stdout  # MiB; measured 56, and 630 without a limit of the cache of oneDNN
