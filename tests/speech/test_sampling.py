"""Codes are sampled from the distribution that transformers' generate samples from."""

import pytest
import torch
from transformers import GenerationConfig
from transformers.generation.logits_process import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from tests.speech.small_decoder import COQUI, prepared, talking_gpt
from utils.config import SpeechConfig
from utils.speech.sampling import Sampler, random_numbers

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


def scores(rows: int = 1) -> torch.Tensor:
    return torch.randn(rows, CODES, generator=torch.Generator().manual_seed(3)) * 3


def transformers_probabilities(row: torch.Tensor, used: list[int], config: SpeechConfig) -> torch.Tensor:
    """Return the probabilities of transformers' own processors, in the order of generate."""
    processors = LogitsProcessorList(
        [
            RepetitionPenaltyLogitsProcessor(config.repetition_penalty),
            TemperatureLogitsWarper(config.temperature),
            TopKLogitsWarper(config.top_k),
            TopPLogitsWarper(config.top_p),
        ]
    )
    processed: torch.Tensor = processors(torch.LongTensor([used]), row[None].clone())
    return processed.softmax(1)[0]


def our_probabilities(sampler: Sampler, given: torch.Tensor) -> torch.Tensor:
    chances, codes = sampler.probabilities(given)
    return torch.zeros_like(given).scatter_(1, codes, chances)


@pytest.mark.parametrize("used", [[], [1, 2, 5, 8, 13], list(range(CODES))], ids=len)
@pytest.mark.parametrize("config", SETTINGS, ids=range(len(SETTINGS)))
def test_the_distribution_is_that_of_transformers(config: SpeechConfig, used: list[int]) -> None:
    ours = our_probabilities(Sampler(config, 1, CODES, used, CPU), scores())
    torch.testing.assert_close(ours[0], transformers_probabilities(scores()[0], used, config), atol=1e-6, rtol=1e-5)


def test_the_order_is_that_of_transformers_generate() -> None:
    gpt = talking_gpt()
    with prepared(gpt, 5):
        names = ("do_sample", "temperature", "top_k", "top_p", "repetition_penalty")
        config = GenerationConfig(**{name: COQUI[name] for name in names})  # type: ignore[no-untyped-call]
        gpt.gpt_inference._prepare_special_tokens(config, device=CPU)
        processors = gpt.gpt_inference._get_logits_processor(config, input_ids_seq_length=1)
    order = [type(processor).__name__.split("Logits")[0] for processor in processors]
    assert order == ["RepetitionPenalty", "Temperature", "TopK", "TopP"]


def test_codes_come_as_often_as_they_are_likely() -> None:
    config = SpeechConfig(temperature=1.0, top_k=8, top_p=0.9, repetition_penalty=1.0)
    rows = 4000
    codes = Sampler(config, rows, CODES, [], CPU).choose(scores().expand(rows, -1), random_numbers(5, rows))[0]
    shares = torch.bincount(codes, minlength=CODES) / rows
    torch.testing.assert_close(shares, transformers_probabilities(scores()[0], [], config), atol=0.03, rtol=0)


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53])
@pytest.mark.parametrize("config", SETTINGS, ids=range(len(SETTINGS)))
def test_the_smallest_and_the_largest_number_choose_possible_codes(config: SpeechConfig, number: float) -> None:
    sampler = Sampler(config, 1, CODES, [], CPU)
    chances = our_probabilities(sampler, scores())
    assert chances[0, sampler.choose(scores(), [number])[0]] > 0


def test_a_chosen_code_counts_as_used() -> None:
    sampler = Sampler(SpeechConfig(top_k=1), 2, CODES, [0], CPU)
    codes, logprobs = sampler.choose(scores(2), [0.0, 0.0])
    assert sampler.used.sum(1).tolist() == [2, 2]
    assert all(sampler.used[row, code] for row, code in enumerate(codes))
    wanted = scores(2).log_softmax(1).gather(1, codes[:, None])[:, 0]
    torch.testing.assert_close(logprobs, wanted)
