from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.xtts.exporting import plain_model
from utils.core.errors import AudioError, TextError
from utils.media.rates import OUTPUT_RATE
from utils.training import sample_speaker
from utils.training.sample_speaker import Speaker
from utils.xtts import random_model
from utils.xtts.model import load_gpt
from utils.xtts.tokenizer import Tokenizer

VOICE = random_model.synthetic_speech(1.0, seed=11)
pytestmark = pytest.mark.slow


class QuickVocoder(torch.nn.Module):
    """Gives 1024 samples a code, the sum of what coqui's vocoder would hear."""

    def speaker_encoder(self, voice: torch.Tensor, l2_norm: bool) -> torch.Tensor:
        return voice.mean(dim=1, keepdim=True) if l2_norm else voice

    def forward(self, latents: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return latents.sum(dim=2).repeat_interleave(1024, dim=1) + g[..., 0]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that a vocoder was loaded from."""
    folders: list[Path] = []

    def load(folder: Path) -> tuple[torch.nn.Module, torch.Tensor]:
        folders.append(folder)
        return QuickVocoder(), torch.ones(80)

    monkeypatch.setattr(sample_speaker, "load_vocoder", load)
    return folders


@pytest.fixture
def speaker(tiny_folder: Path, amharic: Tokenizer, loaded: list[Path]) -> Speaker:
    return Speaker(tiny_folder, amharic)


@pytest.fixture
def gpt(tiny_folder: Path, amharic: Tokenizer) -> Any:
    """A GPT in the middle of its training: gradients there, one part frozen and in eval mode."""
    gpt = load_gpt(tiny_folder, amharic).train()
    gpt.conditioning_encoder.eval()
    gpt.mel_head.weight.grad = torch.ones_like(gpt.mel_head.weight)
    return gpt


def state_of(gpt: Any) -> tuple[Any, ...]:
    return (
        [(name, module.training) for name, module in gpt.named_modules()],
        [(name, weight.clone(), weight.requires_grad) for name, weight in gpt.named_parameters()],
        sorted(name for name in vars(gpt) if name not in {"_parameters", "_modules", "_buffers"}),
        gpt.max_gen_mel_tokens,
        gpt.mel_head.weight.grad.clone(),
        torch.random.get_rng_state(),
    )


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


@pytest.mark.parametrize("wte", [False, True], ids=["as coqui leaves it", "with wte put back for checkpointing"])
def test_the_gpt_is_given_back_exactly_as_it_was(speaker: Speaker, gpt: Any, wte: bool) -> None:
    if wte:
        gpt.gpt.wte = gpt.mel_embedding
    before = state_of(gpt)
    speaker.speak(gpt, "ሰላም", "am", VOICE, seconds_at_most=0.3)
    assert equal(state_of(gpt), before)
    assert hasattr(gpt.gpt, "wte") == wte
    assert not hasattr(gpt, "gpt_inference")


def test_an_error_while_speaking_leaves_no_trace_either(speaker: Speaker, gpt: Any, monkeypatch: Any) -> None:
    before = state_of(gpt)
    monkeypatch.setattr(type(gpt), "generate", lambda *_a, **_k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        speaker.speak(gpt, "ሰላም", "am", VOICE)
    assert equal(state_of(gpt), before)


def test_the_seed_decides_and_the_limit_holds(speaker: Speaker, gpt: Any) -> None:
    one, again, other = (
        speaker.speak(gpt, "ሰላም ለዓለም", "amh", VOICE, seconds_at_most=0.4, seed=seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(one.codes, again.codes)
    assert np.array_equal(one.samples, again.samples)
    assert not np.array_equal(one.codes, other.codes)
    assert (one.codes.size, one.ended) == (9, False)
    assert one.samples.dtype == np.float32
    assert one.samples.size == 9 * 1024


def test_a_gpt_that_stops_at_once_is_heard_to_end(speaker: Speaker, gpt: Any) -> None:
    with torch.no_grad():
        gpt.mel_head.bias[gpt.stop_audio_token] = 1e4
    speech = speaker.speak(gpt, "ሰላም", "am", VOICE)
    assert (speech.codes.size, speech.ended) == (0, True)


@pytest.mark.slow
def test_it_says_what_coqui_says(tiny_folder: Path) -> None:
    """The same ids, weights, voice and seed give the codes and the sound of Xtts.inference."""

    tokenizer, gpt = Tokenizer.load(tiny_folder), load_gpt(tiny_folder)
    spoken = Speaker(tiny_folder, tokenizer).speak(gpt, "hello there.", "en", VOICE, seconds_at_most=0.3, seed=4)
    model = plain_model(tiny_folder)
    model.gpt.max_gen_mel_tokens = spoken.codes.size
    prompt = model.get_gpt_cond_latents(torch.from_numpy(VOICE)[None], 22_050)
    embedding = model.get_speaker_embedding(torch.from_numpy(VOICE)[None], 22_050)
    torch.manual_seed(4)
    theirs = model.inference("hello there.", "en", prompt, embedding)["wav"]
    assert theirs.std() > 0
    assert np.abs(theirs - spoken.samples).max() < 1e-4
    assert spoken.samples.size / OUTPUT_RATE == pytest.approx(spoken.codes.size * 1024 / 22_050, abs=0.01)


def test_the_vocoder_is_loaded_at_the_first_sentence_and_freed(speaker: Speaker, gpt: Any, loaded: list[Path]) -> None:
    assert loaded == []
    for _ in range(2):
        speaker.speak(gpt, "ሰላም", "am", VOICE, seconds_at_most=0.1)
    assert len(loaded) == 1
    speaker.close()
    speaker.speak(gpt, "ሰላም", "am", VOICE, seconds_at_most=0.1)
    assert len(loaded) == 2


def test_what_cannot_be_said_is_refused(speaker: Speaker, gpt: Any) -> None:
    with pytest.raises(TextError, match="too many"):
        speaker.speak(gpt, "ሰላም ለዓለም " * 40, "am", VOICE)
    with pytest.raises(AudioError, match="shorter than"):
        speaker.speak(gpt, "ሰላም", "am", VOICE[:5000])
