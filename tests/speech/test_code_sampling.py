"""Codes are drawn from the distribution that transformers' generate draws from."""

from typing import Any

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

from utils.speech.sampling import Batch, draws
from utils.speech.types import Sampling

CODES = 60
CPU = torch.device("cpu")
SETTINGS = [
    Sampling(),
    Sampling(temperature=1.3, top_k=CODES, top_p=1.0, repetition_penalty=1.0),
    Sampling(temperature=0.3, top_k=5, top_p=1.0, repetition_penalty=2.0),
    Sampling(temperature=1.0, top_k=20, top_p=0.3, repetition_penalty=10.0),
    Sampling(top_p=1e-6),
    Sampling(top_k=1026),
    Sampling(top_k=1),
]
SAID = [[], [3, 4], [1, 2, 5, 8, 13], list(range(CODES))]


def scores(rows: int = 1) -> torch.Tensor:
    return torch.randn(rows, CODES, generator=torch.Generator().manual_seed(3)) * 3


def transformers_chances(row: torch.Tensor, said: list[int], sampling: Sampling) -> torch.Tensor:
    """Return the probabilities of transformers' own processors, in the order in which generate takes them."""
    processors = LogitsProcessorList(
        [
            RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty),
            TemperatureLogitsWarper(sampling.temperature),
            TopKLogitsWarper(sampling.top_k),
            TopPLogitsWarper(sampling.top_p),
        ]
    )
    bent: torch.Tensor = processors(torch.LongTensor([said]), row[None].clone())
    return bent.softmax(1)[0]


def our_chances(batch: Batch, given: torch.Tensor) -> torch.Tensor:
    chances, codes = batch.likely(given)
    return torch.zeros_like(given).scatter_(1, codes, chances)


@pytest.mark.parametrize("said", SAID, ids=len)
@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_the_distribution_is_that_of_transformers(sampling: Sampling, said: list[int]) -> None:
    found = our_chances(Batch([sampling], CODES, said, CPU), scores())
    torch.testing.assert_close(found[0], transformers_chances(scores()[0], said, sampling), atol=1e-6, rtol=1e-5)


def test_rows_with_different_settings_do_not_disturb_each_other() -> None:
    given, batch = scores(len(SETTINGS)), Batch(SETTINGS, CODES, [7], CPU)
    for row, sampling in enumerate(SETTINGS):
        wanted = transformers_chances(given[row], [7], sampling)
        torch.testing.assert_close(our_chances(batch, given)[row], wanted, atol=1e-6, rtol=1e-5)
    kept = torch.tensor([3, 0])
    batch.keep(kept)
    torch.testing.assert_close(
        our_chances(batch, given[kept]), our_chances(Batch(SETTINGS, CODES, [7], CPU), given)[kept]
    )


def test_the_order_is_that_of_transformers_generate() -> None:
    from tests.speech.small_decoder import talking_gpt
    from utils.training.sample_speaker import SETTINGS as COQUI
    from utils.training.sample_speaker import lent

    gpt = talking_gpt()
    with lent(gpt, 5):
        settings: Any = GenerationConfig
        config = settings(**{name: COQUI[name] for name in ("do_sample", "temperature", "top_k", "top_p")})
        config.repetition_penalty = 10.0
        gpt.gpt_inference._prepare_special_tokens(config, device=CPU)
        made = gpt.gpt_inference._get_logits_processor(config, input_ids_seq_length=1)
    assert [type(one).__name__.split("Logits")[0] for one in made] == [
        "RepetitionPenalty",
        "Temperature",
        "TopK",
        "TopP",
    ]


def test_codes_come_as_often_as_they_are_likely() -> None:
    sampling = Sampling(temperature=1.0, top_k=8, top_p=0.9, repetition_penalty=1.0)
    rows = 4000
    given = scores().expand(rows, -1)
    codes = Batch([sampling] * rows, CODES, [], CPU).pick(given, draws(5, rows)).codes
    found = torch.bincount(codes, minlength=CODES) / rows
    torch.testing.assert_close(found, transformers_chances(given[0], [], sampling), atol=0.03, rtol=0)


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53])
@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_the_first_and_the_last_number_fall_on_codes_that_are_possible(sampling: Sampling, number: float) -> None:
    batch = Batch([sampling], CODES, [], CPU)
    chances = our_chances(batch, scores())
    assert chances[0, batch.pick(scores(), [number]).codes] > 0


def test_what_was_picked_counts_as_said() -> None:
    batch = Batch([Sampling(top_k=1)] * 2, CODES, [0], CPU)
    picked = batch.pick(scores(2), [0.0, 0.0])
    assert batch.said.sum(1).tolist() == [2, 2]
    assert all(batch.said[row, code] for row, code in enumerate(picked.codes))
    wanted = scores(2).log_softmax(1).gather(1, picked.codes[:, None])[:, 0]
    torch.testing.assert_close(picked.logprobs, wanted)


def test_random_numbers_depend_on_the_seed_alone() -> None:
    assert draws(1, 5) == draws(1, 9)[:5]
    assert draws(1, 5) != draws(2, 5)
    assert all(0 <= number < 1 for number in draws(3, 1000))
