"""Speech on a GPU that is not there: no mixed devices, one wait for the device per code, and one per sound."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch

from tests.rehearsal import Recorder, fake_cuda
from tests.speech.small_decoder import SAMPLED, prompt, sentences, talking_gpt
from tests.speech.small_vocoder import small_vocoder, vectors, voice
from tests.training.small_gpt import small_gpt
from utils.config import SpeechConfig
from utils.core.paths import SAMPLE_SPEECH
from utils.speech.decoder import Decoder
from utils.speech.vocoder import Vocoder
from utils.speech.voices import ConditioningSettings, encode_speaker

if TYPE_CHECKING:
    from utils.speech.loading import LoadedModel

pytestmark = pytest.mark.slow

READ = "batching.Batch._sample: event"


@pytest.fixture
def recorder() -> Iterator[Recorder]:
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


def test_the_host_starts_one_graph_and_two_copies_for_each_code(recorder: Recorder) -> None:
    kernels = [waits_of(recorder, limit) and recorder.kernels.copy() for limit in (5, 25)]
    assert kernels[1] - kernels[0] == {
        "steps.capture.<locals>.replay": 20,
        "steps.DecodingStep.__call__": 2 * 20,  # the codes to the host, and the latents before they are overwritten
    }


def test_given_codes_are_scored_on_the_device(recorder: Recorder) -> None:
    scores, latents = decoder(recorder).score(sentences()[0], prompt(), torch.tensor([5, 6, 7]))
    assert (scores.device.type, latents.device.type) == ("cuda", "cuda")


def on_gpu(part: Any) -> Any:
    return part.to("cuda:0", torch.float16)


def test_audio_is_read_once_for_a_sentence_or_chunk(recorder: Recorder) -> None:
    vocoder, latents, embedding = Vocoder(small_vocoder(), "fp16", "cuda:0"), on_gpu(vectors(40)), on_gpu(voice())
    read = "vocoder.Vocoder.run.<locals>.run_part: copy to the host"
    recorder.clear()
    assert vocoder.sound(latents, embedding).size
    assert recorder.waits == {read: 1}
    recorder.clear()
    stream = vocoder.stream(embedding)
    assert all(sound.size for sound in (stream.push(latents[:15]), stream.push(latents[15:]), stream.finish()))
    assert recorder.waits == {read: 3}


def test_a_voice_is_computed_with_one_wait_for_each_result(recorder: Recorder) -> None:
    gpt, vocoder = small_gpt().to("cuda:0"), small_vocoder().to("cuda:0")
    parts = SimpleNamespace(gpt=gpt, vocoder=vocoder, mel_stats=torch.ones(80))
    settings = ConditioningSettings(gpt_cond_len=12, gpt_cond_chunk_len=4, max_ref_len=10)
    recorder.clear()
    tensors = encode_speaker(cast("LoadedModel", parts), [SAMPLE_SPEECH], settings)
    assert {tensor.device.type for tensor in tensors.values()} == {"cpu"}
    assert recorder.waits == {
        "voices._prompt: copy to the device": 2,  # whole chunks, and the last one
        "voices._prompt: copy to the host": 1,
        "voices._embedding.<locals>.<listcomp>: copy to the device": 1,
        "voices._embedding: copy to the host": 1,
    }
