"""With several beams the reading is that of transformers' beam search."""

from typing import Any

import pytest
import torch

from tests.speech.small_decoder import TEXTS, asked, prompt, talking_gpt
from tests.training.small_gpt import START_AUDIO
from utils.speech.decoder import Decoder
from utils.speech.types import Sampling
from utils.training.sample_speaker import lent


@pytest.fixture(scope="module")
def gpt() -> Any:
    return talking_gpt(2, end=3.0)


@pytest.fixture(scope="module")
def ours(gpt: Any) -> Decoder:
    made = Decoder.of(gpt)
    made.said = (1, START_AUDIO)  # as coqui's prefix has it
    return made


@pytest.mark.parametrize("beams", [2, 4])
@pytest.mark.parametrize("length_penalty", [1.0, 0.0, -1.0, 3.0])
@pytest.mark.parametrize("penalty", [1.0, 2.0])
def test_the_codes_are_those_of_transformers(
    gpt: Any, ours: Decoder, beams: int, length_penalty: float, penalty: float
) -> None:
    with lent(gpt, 16), torch.no_grad():
        wanted = gpt.generate(
            cond_latents=prompt(),
            text_inputs=torch.tensor([TEXTS[0]]),
            do_sample=False,
            num_beams=beams,
            length_penalty=length_penalty,
            repetition_penalty=penalty,
        )[0]
    sampling = Sampling(beams=beams, length_penalty=length_penalty, repetition_penalty=penalty)
    assert ours.generate([asked(TEXTS[0], sampling, limit=16)])[0].codes.tolist() == wanted.tolist()


def test_its_latents_and_logprobs_belong_to_its_codes(ours: Decoder) -> None:
    request = asked(sampling=Sampling(beams=3, repetition_penalty=2.0), limit=12)
    said = ours.generate([request])[0]
    scores, latents = ours.retold(request, said.codes)
    torch.testing.assert_close(said.latents, latents[:-1], atol=1e-4, rtol=0)
    wanted = scores[:-1].log_softmax(1).gather(1, said.codes[:, None]).sum()
    assert said.logprob == pytest.approx(float(wanted), abs=1e-3)


def test_texts_with_and_without_beams_are_said_in_one_go(ours: Decoder) -> None:
    requests = [asked(ids, Sampling(beams=1 + number % 2), seed=number, limit=6) for number, ids in enumerate(TEXTS)]
    for request, said in zip(requests, ours.generate(requests), strict=True):
        assert said.codes.tolist() == ours.generate([request])[0].codes.tolist()
