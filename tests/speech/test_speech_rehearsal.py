"""Speech on a GPU that is not there: no mixed devices, and one wait for the device per code."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.rehearsal import DeviceError, Recorder, fake_cuda
from tests.speech.small_decoder import SAMPLED, prompt, sentences, talking_gpt
from utils.config import SpeechConfig
from utils.speech import layers
from utils.speech.decoder import Decoder
from utils.speech.sampling import Sampler

READ = "decoder.Decoder._sample: copy to the host"


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """A GPU whose graphs are only computed."""
    monkeypatch.setattr(layers, "_graph_of", lambda compute: compute)
    with fake_cuda() as recorder:
        yield recorder


def decoder(recorder: Recorder) -> Decoder:
    decoder = Decoder(talking_gpt(2), "fp16", "cuda:0")
    assert decoder.uses_graphs
    recorder.clear()
    return decoder


def waits_of(recorder: Recorder, limit: int, config: SpeechConfig = SAMPLED) -> Any:
    speaker = decoder(recorder)
    generations = speaker.generate(sentences(limit=limit, grow=0), prompt(), config)
    assert {len(each.codes) for each in generations} == {limit}
    return recorder.waits


@pytest.mark.parametrize("top_k", [1, 50])
def test_each_code_waits_once(recorder: Recorder, top_k: int) -> None:
    few, many = (dict(waits_of(recorder, limit, SpeechConfig(top_k=top_k))) for limit in (5, 25))
    assert (few.pop(READ), many.pop(READ)) == (5, 25)
    assert few == many  # what is done once for each batch


def test_a_value_read_too_often_is_found_by_its_place(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = Sampler.choose

    def curious(sampler: Sampler, scores: torch.Tensor, numbers: torch.Tensor) -> Any:
        assert scores.isfinite().all()
        return choose(sampler, scores, numbers)

    monkeypatch.setattr(Sampler, "choose", curious)
    assert waits_of(recorder, 5)["decoder.Decoder._sample: item"] == 5


def test_numbers_that_stay_on_the_host_are_found(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = Sampler.choose
    monkeypatch.setattr(
        Sampler, "choose", lambda sampler, scores, numbers: choose(sampler, scores, torch.ones(len(numbers)))
    )
    with pytest.raises(DeviceError, match="mixes cuda and cpu"):
        waits_of(recorder, 5)


def test_given_codes_are_scored_on_the_device(recorder: Recorder) -> None:
    scores, latents = decoder(recorder).score(sentences()[0], prompt(), torch.tensor([5, 6, 7]))
    assert (scores.device.type, latents.device.type) == ("cuda", "cuda")
