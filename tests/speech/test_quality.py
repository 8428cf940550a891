"""How far a cheap precision is from fp32 is measured where it counts: in the codes, and in the sound."""

import logging
import re
from typing import Any

import numpy as np
import pytest
import torch

from tests.speech.small_vocoder import small_vocoder, voice
from tests.training.running import events, trained
from tests.training.small_gpt import small_gpt
from tests.training.trainable import WORDS, write_dataset
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech.decoder import Decoder, Request
from utils.speech.open_model import Opened, open_model
from utils.speech.precision import multiplies_bf16
from utils.speech.quality import Agreement, Mouth, Saying, agreement, compare, distance
from utils.speech.types import Sampling, Voice
from utils.speech.vocoder import Vocoder
from utils.speech.voices import voice_from
from utils.xtts import random_model

DIM = 64
STEPS, LEARNED = 100, 0.6  # updates, and what they have to make of the loss
CHEAP = ["int8", pytest.param("bf16", marks=pytest.mark.skipif(not multiplies_bf16(), reason="no bf16 here"))]


@pytest.fixture(scope="module")
def exact() -> Mouth:
    return Mouth(Decoder.of(small_gpt(dim=DIM).eval()), Vocoder.of(small_vocoder(DIM)))


def sayings(count: int = 3, codes: int = 20) -> list[Saying]:
    chance = torch.Generator().manual_seed(0)
    prompt = 0.1 * torch.randn(1, 32, DIM, generator=chance)
    texts = [Request([3 + number, 9, 7], prompt, Sampling(), 0, codes) for number in range(count)]
    return [Saying(text, torch.randint(1024, (codes,), generator=chance)) for text in texts]


def tone(hertz: float, seconds: float = 0.5) -> Samples:
    return np.sin(2 * np.pi * hertz * np.arange(round(seconds * OUTPUT_RATE)) / OUTPUT_RATE).astype(np.float32)


def test_a_precision_agrees_with_itself(exact: Mouth) -> None:
    found = compare(exact, exact, sayings(), voice())
    assert found.agreement == Agreement(63, 1.0, 0.0)  # 20 codes and what follows them, three times
    assert found.decibels == 0
    assert found.seconds == pytest.approx(3 * 20 * 1024 / 22_050, rel=0.01)


def test_a_coarser_model_agrees_less(exact: Mouth) -> None:
    other = Decoder.of(small_gpt(dim=DIM, seed=1).eval())
    whole = Decoder.of(small_gpt(dim=DIM).eval(), "int8")
    near, far = (agreement(exact.decoder, each, sayings()) for each in (whole, other))
    assert far.share < near.share <= 1
    assert 0 < near.divergence < far.divergence
    assert near.divergence < 0.01


def test_the_result_is_said_in_a_sentence(exact: Mouth) -> None:
    cheap = Mouth(Decoder.of(small_gpt(dim=DIM).eval(), "int8"), exact.vocoder)
    said = str(compare(exact, cheap, sayings(), voice()))
    assert re.fullmatch(
        r"int8 against fp32: \d+\.\d% of 63 codes are the same \(divergence \d\.\de-\d\d nats\); "
        r"the sound of the same codes is \d\.\d\d dB apart",
        said,
    )


@pytest.mark.parametrize(("share", "enough"), [(0.97, True), (0.99, True), (0.9699, False)])
def test_what_is_enough(share: float, enough: bool) -> None:
    assert Agreement(100, share, 0.0).enough is enough


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
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Opened, Voice]:
    """Train a GPT of 4 layers until it has learned to say what it reads."""
    folder = tmp_path_factory.mktemp("learned")
    base = random_model.build(folder / "base", sizes=random_model.RandomModelSize(layers=4, dim=128, heads=4))
    dataset = write_dataset(folder / "dataset", train=16)
    run = trained(folder, dataset, custom_model=str(base), batch_size=4, grad_acumm=1, max_steps=STEPS, save_step=STEPS)
    losses = [float(str(event["loss"])) for event in events(run, "evaluation")]
    assert losses[-1] < LEARNED * losses[0]
    opened = open_model(run.folder)
    return opened, voice_from(opened, [dataset / "wavs" / "eval0.wav"], folder / "voices")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("precision", CHEAP)
def test_a_trained_model_says_the_same_in_a_cheap_precision(learned: tuple[Opened, Voice], precision: Any) -> None:
    opened, speaker = learned
    exact, cheap = (Decoder.of(opened.gpt, name) for name in ("fp32", precision))
    sounds = [Vocoder.of(opened.vocoder, "bf16" if name == "bf16" else "fp32") for name in ("fp32", precision)]
    said = spoken(exact, opened, speaker)
    agreed = agreement(exact, cheap, said)
    heard = compare(Mouth(exact, sounds[0]), Mouth(cheap, sounds[1]), said[:3], speaker.embedding)
    logging.getLogger(__name__).info("%s: %s; %s", precision, agreed, heard)
    assert agreed.positions > 300
    assert agreed.enough, agreed
    assert heard.decibels < 1, heard


def spoken(decoder: Decoder, opened: Opened, speaker: Voice) -> list[Saying]:
    """Let the model say a few sentences, drawn as in real speech."""
    texts = [" ".join(WORDS[first : first + 3]) for first in range(10)] * 3
    requests = [
        Request(opened.tokenizer.encode(text, "am"), speaker.prompt, Sampling(), seed, 60)
        for seed, text in enumerate(texts)
    ]
    said = decoder.generate(requests)
    return [
        Saying(request, one.codes[: len(one.codes) - one.ended]) for request, one in zip(requests, said, strict=True)
    ]
