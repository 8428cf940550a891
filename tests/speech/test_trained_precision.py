"""A trained model says the same in the cheaper precisions as in fp32, in codes and in audio."""

from typing import Any

import pytest
import torch

from benchmarks.precision import agreement, sound_distance
from testing import random_model
from tests.speech.small_decoder import sentence
from tests.training.running import events, trained
from tests.training.trainable import WORDS, write_dataset
from utils.config import SpeechConfig
from utils.speech.decoder import Decoder
from utils.speech.loading import LoadedModel, open_model
from utils.speech.precision import multiplies_bf16
from utils.speech.types import Voice
from utils.speech.vocoder import Vocoder
from utils.speech.voices import voice_from
from utils.studio.models import find_model

STEPS, LEARNED = 80, 0.6  # updates, and what they have to make of the loss
CHEAP = ["int8", pytest.param("bf16", marks=pytest.mark.skipif(not multiplies_bf16(), reason="no bf16 here"))]


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
