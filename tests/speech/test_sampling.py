"""Codes are sampled from the distribution that transformers' generate samples from."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GenerationConfig

from tests.speech.small_decoder import prepared, talking_gpt
from utils.config import SpeechConfig
from utils.speech.sampling import choose, probabilities, random_numbers, row_settings

CODES = 60
CPU = torch.device("cpu")
SETTINGS = [
    SpeechConfig(),
    SpeechConfig(temperature=1.3, top_k=CODES, top_p=1.0, repetition_penalty=1.0),
    SpeechConfig(temperature=0.3, top_k=5, top_p=1.0, repetition_penalty=2.0),
    SpeechConfig(top_p=1e-6),
    SpeechConfig(top_k=1026),
    SpeechConfig(top_k=1),
]


@pytest.fixture(scope="module")
def generator() -> Iterator[Any]:
    """coqui's GPT with transformers' own generate."""
    gpt = talking_gpt()
    with prepared(gpt, 5):
        yield gpt.gpt_inference


def transformers_probabilities(
    generator: Any, row: torch.Tensor, used: list[int], config: SpeechConfig
) -> torch.Tensor:
    """Return the probabilities after the processors of generate, in its order."""
    names = ("temperature", "top_k", "top_p", "repetition_penalty")
    values = {name: getattr(config, name) for name in names}
    settings = GenerationConfig(do_sample=True, **values)  # type: ignore[no-untyped-call]
    generator._prepare_special_tokens(settings, device=CPU)
    processors = generator._get_logits_processor(settings, input_ids_seq_length=1)
    processed: Tensor = processors(torch.LongTensor([used]), row[None].clone())
    return processed.softmax(1)[0]


def scores() -> Tensor:
    return torch.randn(1, CODES, generator=torch.Generator().manual_seed(3)) * 3


def rows_of(used: list[int], *configs: SpeechConfig) -> tuple[Tensor, Tensor, tuple[int, int]]:
    """Return used codes, settings, and the smallest and the largest top k of rows."""
    marks = torch.zeros(len(configs), CODES, dtype=torch.bool)
    marks[:, used] = True
    settings = torch.stack([row_settings(config, CODES) for config in configs])
    return marks, settings, (int(settings[:, 3].min()), int(settings[:, 3].max()))


@pytest.mark.parametrize("used", [[], [1, 2, 5, 8, 13], list(range(CODES))], ids=len)
@pytest.mark.parametrize("config", SETTINGS, ids=range(len(SETTINGS)))
def test_the_distribution_is_that_of_transformers(generator: Any, config: SpeechConfig, used: list[int]) -> None:
    chances, codes = probabilities(scores(), *rows_of(used, config))
    ours = torch.zeros(CODES).scatter_(0, codes[0], chances[0])
    wanted = transformers_probabilities(generator, scores()[0], used, config)
    torch.testing.assert_close(ours, wanted, atol=1e-6, rtol=1e-5)
    for number in (0.0, 1 - 2**-53):  # the smallest and the largest random number
        (code,), _ = choose(scores(), torch.tensor([number]), *rows_of(used, config))
        assert ours[code] > 0


def test_codes_come_as_often_as_they_are_likely(generator: Any) -> None:
    config = SpeechConfig(temperature=1.0, top_k=8, top_p=0.9, repetition_penalty=1.0)
    rows = 4000
    codes = choose(scores().expand(rows, -1), random_numbers(5, rows), *rows_of([], *[config] * rows))[0]
    shares = torch.bincount(codes, minlength=CODES) / rows
    wanted = transformers_probabilities(generator, scores()[0], [], config)
    torch.testing.assert_close(shares, wanted, atol=0.03, rtol=0)
