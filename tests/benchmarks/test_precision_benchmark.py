"""How near the cheaper precisions are to fp32, in codes and in audio."""

from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.precision import Agreement, Spoken, agreement, distance, main, sound_distance
from tests.speech.small_decoder import sentence
from tests.speech.small_vocoder import small_vocoder, voice
from tests.training.running import events, trained
from tests.training.small_gpt import small_gpt
from tests.training.trainable import WORDS, write_dataset
from tools import random_model
from utils.config import SpeechConfig
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech.decoder import Decoder
from utils.speech.loading import LoadedModel, open_model
from utils.speech.precision import multiplies_bf16
from utils.speech.types import Voice
from utils.speech.vocoder import Vocoder
from utils.speech.voices import voice_from
from utils.studio.models import find_model

DIM = 64
STEPS, LEARNED = 80, 0.6  # updates, and what they have to make of the loss
CHEAP = ["int8", pytest.param("bf16", marks=pytest.mark.skipif(not multiplies_bf16(), reason="no bf16 here"))]
PROMPT = 0.1 * torch.randn(1, 32, DIM, generator=torch.Generator().manual_seed(0))
VOICE = Voice(PROMPT, voice(), "voice", "key")


def spoken(count: int = 3, codes: int = 20) -> Spoken:
    chance = torch.Generator().manual_seed(0)
    return [(sentence([3 + n, 9, 7]), torch.randint(1024, (codes,), generator=chance)) for n in range(count)]


def tone(hertz: float, seconds: float = 0.5) -> Samples:
    return np.sin(2 * np.pi * hertz * np.arange(round(seconds * OUTPUT_RATE)) / OUTPUT_RATE).astype(np.float32)


def test_a_model_agrees_with_itself_and_less_with_a_coarser_one() -> None:
    exact, vocoder = Decoder(small_gpt(dim=DIM).eval()), Vocoder(small_vocoder(DIM))
    int8, other = Decoder(small_gpt(dim=DIM).eval(), "int8"), Decoder(small_gpt(dim=DIM, seed=1).eval())
    same, near, far = (agreement(exact, each, spoken(), PROMPT) for each in (exact, int8, other))
    assert same == Agreement(63, 1.0, 0.0)  # 20 codes and what follows them, three times
    assert far.share < near.share <= 1
    assert 0 < near.divergence < 0.01
    assert near.divergence < far.divergence
    assert sound_distance((exact, vocoder), (exact, vocoder), spoken(), VOICE) == 0
    assert 0 < sound_distance((exact, vocoder), (int8, vocoder), spoken(), VOICE) < 1


@pytest.mark.parametrize(
    ("first", "second", "least", "most"),
    [
        (tone(440), tone(440), 0, 0),
        (tone(440), tone(440) / 2, 0.1, 6.1),  # a half is 6 dB, wherever the tone is heard
        (tone(440), tone(2000), 5, 60),
        (tone(440), tone(440) + np.float32(1e-5), 0, 0.01),  # far below the loudest: silence
        (tone(440)[:0], tone(440)[:0], 0, 0),
        (tone(440)[:50], tone(440)[:50], 0, 0),  # shorter than a window
        (tone(440) * 0, tone(440) * 0, 0, 0),
    ],
)
def test_distances_of_sounds(first: Samples, second: Samples, least: float, most: float) -> None:
    assert least <= distance(first, second) <= most


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedModel, Voice]:
    """Train a GPT of 4 layers until it has learned to say what it reads."""
    folder = tmp_path_factory.mktemp("learned")
    size = random_model.RandomModelSize(layers=4, dim=128, heads=4)
    base = random_model.build(folder / "base", sizes=size)
    dataset = write_dataset(folder / "dataset", train=16)
    run = trained(folder, dataset, custom_model=str(base), batch_size=4, grad_acumm=1, max_steps=STEPS, save_step=STEPS)
    losses = [float(str(event["loss"])) for event in events(run, "evaluation")]
    assert losses[-1] < LEARNED * losses[0]
    model = open_model(find_model(run.folder))
    return model, voice_from(model, [dataset / "wavs" / "eval0.wav"], folder / "voices")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("precision", CHEAP)
def test_a_trained_model_says_the_same_in_a_cheap_precision(learned: tuple[LoadedModel, Voice], precision: Any) -> None:
    model, speaker = learned
    exact, cheap = (Decoder(model.gpt, name) for name in ("fp32", precision))
    vocoders = [Vocoder(model.vocoder, "bf16" if name == "bf16" else "fp32") for name in ("fp32", precision)]
    texts = [" ".join(WORDS[first : first + 3]) for first in range(10)] * 3
    given = [sentence(model.tokenizer.encode(text, "am"), seed=n, limit=60) for n, text in enumerate(texts)]
    made = exact.generate(given, speaker.prompt, SpeechConfig())
    pairs = [
        (each, torch.tensor(generation.codes[: len(generation.codes) - generation.ended]))
        for each, generation in zip(given, made, strict=True)
    ]
    agreed = agreement(exact, cheap, pairs, speaker.prompt)
    decibels = sound_distance((exact, vocoders[0]), (cheap, vocoders[1]), pairs[:3], speaker)
    assert agreed.positions > 300
    assert agreed.is_enough, agreed
    assert decibels < 1


@pytest.mark.long
def test_the_command_compares_a_model_with_fp32(
    learned: tuple[LoadedModel, Voice], capsys: pytest.CaptureFixture[str]
) -> None:
    base = learned[0].folder
    recording = base.parent / "dataset" / "wavs" / "eval0.wav"
    options = ["--language", "en", "--reference", str(recording), "--precision", "int8"]
    main(["Hello there.", "--model", str(base), *options])
    assert "GPT in int8" in capsys.readouterr().out
