"""How far a cheap precision is from fp32 is measured where it counts: in the codes, and in the sound."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.synthesis.small_vocoder import small_vocoder, voice
from tests.training.running import trained
from tests.training.small_gpt import small_gpt
from tests.training.trainable import WORDS, write_dataset
from utils.audio import Samples
from utils.synthesis.decoder import Decoder, Request
from utils.synthesis.opening import open_model
from utils.synthesis.precision import multiplies_bf16
from utils.synthesis.quality import ENOUGH, Agreement, Mouth, Saying, agreement, compare, distance
from utils.synthesis.speech import RATE, Sampling
from utils.synthesis.vocoding import Vocoder
from utils.synthesis.voices import own_voices

DIM = 64
CHEAP = ["int8", pytest.param("bf16", marks=pytest.mark.skipif(not multiplies_bf16(), reason="no bf16 here"))]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def exact(one_thread: None) -> Mouth:
    return Mouth(Decoder.of(small_gpt(dim=DIM).eval()), Vocoder.of(small_vocoder(DIM)))


def sayings(count: int = 3, codes: int = 20) -> list[Saying]:
    chance = torch.Generator().manual_seed(0)
    prompt = 0.1 * torch.randn(1, 32, DIM, generator=chance)
    texts = [Request([3 + number, 9, 7], prompt, Sampling(), 0, codes) for number in range(count)]
    return [Saying(text, torch.randint(1024, (codes,), generator=chance)) for text in texts]


def tone(hertz: float, seconds: float = 0.5) -> Samples:
    return np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE).astype(np.float32)


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
        r"int8 against fp32: \d+\.\d% of 63 codes are the same \(divergence 0\.\d{4} nats\); "
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


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("precision", CHEAP)
def test_a_trained_model_says_the_same_in_a_cheap_precision(learned: "tuple[Path, Path]", precision: str) -> None:
    found = measured(learned, precision)
    print(found)  # noqa: T201  # the figures for the log
    assert found.agreement.positions > 300
    assert found.agreement.share >= ENOUGH
    assert found.decibels < 1
