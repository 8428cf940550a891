"""Speech on a GPU that is not there: no mixed devices, one wait for the device per code, and one per sound."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.rehearsal import Clock, DeviceError, Recorder, fake_cuda
from tests.speech.small_decoder import SAMPLED, prompt, sentence, sentences, talking_gpt
from tests.speech.small_vocoder import small_vocoder, vectors, voice
from utils.config import SpeechConfig
from utils.core.paths import TINY_MODEL
from utils.speech import precision, steps
from utils.speech.decoder import Decoder
from utils.speech.network import DecoderNetwork
from utils.speech.sampling import choose
from utils.speech.steps import DecodingStep, Shape
from utils.speech.synthesizer import Caches, open_voice
from utils.speech.vocoder import Vocoder
from utils.xtts import certificate
from utils.xtts.certificate import DECODING, GPT, VOCODING, Certificate, Check
from utils.xtts.device import Arrival, Lane

pytestmark = pytest.mark.slow

READ = "device.Arrival.wait: event"


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with fake_cuda() as recorder:
        yield recorder


@pytest.fixture
def growing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache grows, and whatever stops the graphs is a failure."""
    monkeypatch.setattr(steps, "COLUMNS", 64)
    monkeypatch.setattr(DecoderNetwork, "stop_graphs", lambda _network, problem: pytest.fail(problem))


def decoder(recorder: Recorder) -> Decoder:
    decoder = Decoder(talking_gpt(2), "fp16", "cuda:0")
    assert decoder.uses_graphs
    recorder.clear()
    return decoder


def waits_of(recorder: Recorder, limit: int, config: SpeechConfig = SAMPLED, then: int = 0) -> Any:
    speaker = decoder(recorder)
    for codes in (limit, then) if then else (limit,):
        generations = speaker.generate(sentences(limit=codes, grow=0), prompt(), config)
        assert {len(each.codes) for each in generations} == {codes}
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
        "steps.DecodingStep.__call__": 20,  # the latents, before they are overwritten
        "device.to_host": 20,  # the codes
    }


def on_gpu(part: Any) -> Any:
    return part.to("cuda:0", torch.float16)


def test_audio_is_read_once_for_a_sentence_or_chunk(recorder: Recorder) -> None:
    vocoder, latents, embedding = Vocoder(small_vocoder(), "fp16", "cuda:0"), on_gpu(vectors(40)), on_gpu(voice())
    recorder.clear()
    assert vocoder.sound(latents, embedding).size
    assert recorder.waits == {READ: 1}
    recorder.clear()
    stream = vocoder.stream(embedding)
    assert all(sound.size for sound in (stream.push(latents[:15]), stream.push(latents[15:]), stream.finish()))
    assert recorder.waits == {READ: 3}


@pytest.mark.usefixtures("growing")
@pytest.mark.parametrize("seed", [0, 1])
def test_sentences_that_join_leave_and_grow_at_random_meet_no_fault(recorder: Recorder, seed: int) -> None:
    chance, speaker = random.Random(seed), decoder(recorder)
    opened: list[Any] = []  # each request with what it generates
    for _ in range(4):
        request = speaker.request(prompt(), SpeechConfig(batch_size=chance.choice([1, 3])))
        made = [request.add(sentence(limit=chance.randint(1, 40))) for _ in range(chance.randint(1, 3))]
        opened.append((request, made))
        request.wait(lambda: bool(made[0].codes))  # noqa: B023  # called before the next one
        if chance.random() < 0.3:
            request.close()
    for request, made in opened:
        if not request.closed:
            request.wait(lambda: all(each.finished for each in made))  # noqa: B023
            request.close()
    assert not speaker.batch.rows


def test_a_vocoder_that_does_not_wait_for_its_latents_is_found(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocoder, latents = Vocoder(small_vocoder(), "fp16", "cuda:0"), on_gpu(vectors(40))
    monkeypatch.setattr(Clock, "wait_stream", lambda _clock, _other: None)
    with pytest.raises(DeviceError, match="another stream may still write"):
        vocoder.sound(latents, on_gpu(voice()))


def test_a_capture_that_fails_ends_the_graphs_with_one_warning(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "graph", fail)
    speaker = decoder(recorder)
    assert {len(each.codes) for each in speaker.generate(sentences(5, 0), prompt(), SAMPLED)} == {5}
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert not speaker.uses_graphs


def test_graphs_return_once_memory_is_free_again(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    capture, failures = torch.cuda.graph, [torch.OutOfMemoryError("CUDA out of memory")]

    def graph(*given: Any, **named: Any) -> Any:
        if failures:
            raise failures.pop()
        return capture(*given, **named)

    monkeypatch.setattr(torch.cuda, "graph", graph)
    speaker = decoder(recorder)
    for graphs in (0, 1):
        assert {len(each.codes) for each in speaker.generate(sentences(5, 0), prompt(), SAMPLED)} == {5}
        assert len(speaker.batch._step.graphs) == graphs
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_all_graphs_are_captured_when_a_model_is_loaded(recorder: Recorder) -> None:
    speaker = decoder(recorder)
    speaker.batch.warm_up()
    known = dict(speaker.batch._step.graphs)
    speaker.generate(sentences(limit=60), prompt(), SpeechConfig(top_k=20, batch_size=16))
    assert speaker.batch._step.graphs == known
    assert {shape.rows for shape in known} == {1, 2, 4, 8, 16}


def test_numbers_copied_from_memory_that_is_not_pinned_are_found(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "to_device", lambda part, device: part.to(device, non_blocking=True))
    assert waits_of(recorder, 5)["steps.DecodingStep.add: copy of unpinned memory to the device"] == 4


def without_waiting(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Arrival, "wait", lambda arrival: arrival.part)


def with_graphs_of_an_older_cache(patch: pytest.MonkeyPatch) -> None:
    newest = property(lambda step: step.cache.layers[0], lambda _step, _value: None)
    patch.setattr(DecodingStep, "captured", newest, raising=False)


def with_graphs_of_one_row(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "Shape", lambda _rows, *others, **named: Shape(1, *others, **named))


def with_random_numbers_of_the_device(patch: pytest.MonkeyPatch) -> None:
    def choose_by_chance(scores: torch.Tensor, numbers: torch.Tensor, *others: Any) -> Any:
        return choose(scores, torch.rand(len(numbers), device=scores.device), *others)

    patch.setattr(steps, "choose", choose_by_chance)


def with_a_trim_during_the_capture(patch: pytest.MonkeyPatch) -> None:
    def choose_and_trim(*given: Any) -> Any:
        torch.cuda.empty_cache()
        return choose(*given)

    patch.setattr(steps, "choose", choose_and_trim)


def in_the_thread_of_the_caller(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lane, "run", Lane._run)


@pytest.mark.usefixtures("growing")
@pytest.mark.parametrize(
    ("plant", "error"),
    [
        (without_waiting, "uses what another stream may still write"),
        (with_graphs_of_an_older_cache, "memory that was freed"),
        (with_graphs_of_one_row, "shorter"),
        (with_random_numbers_of_the_device, "random numbers"),
        (with_a_trim_during_the_capture, "freed during a capture"),
        (in_the_thread_of_the_caller, "not done by the thread that owns the GPU"),
    ],
)
def test_a_planted_fault_of_streams_and_graphs_is_found(
    recorder: Recorder, plant: Any, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((DeviceError, ValueError), match=error):
        waits_of(recorder, 5, then=90)


def test_what_failed_the_test_of_the_gpu_is_not_used_for_speech(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(precision, "choose_device", lambda name: name)
    monkeypatch.setattr(certificate, "machine", lambda _device: "a GPU")
    failed = tuple(Check(name, passed=False, detail="differs by 3.0e+00") for name in (DECODING, GPT, VOCODING))
    seen = Check("fused attention", passed=True, detail="", kernels=("math in float32",))
    Certificate("a GPU", "2026-11-29", (*failed, seen)).write(tmp_path / "gpu.json")
    opened = open_voice(TINY_MODEL, "cuda:0", "fp16", caches=Caches(certificate=tmp_path / "gpu.json"))
    assert not opened.decoder.uses_graphs
    assert (opened.precision.gpt, opened.precision.vocoder) == ("fp32", "fp32")
    assert opened.vocoder.network.dtype == torch.float32
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3  # one for each


def test_every_copy_from_a_device_without_events_is_waited_for() -> None:
    recorder = Recorder("meta")  # as MPS and XPU
    with torch.inference_mode(), recorder:
        speaker, vocoder = Decoder(talking_gpt(2), "fp32", "meta"), Vocoder(small_vocoder(), "fp32", "meta")
        recorder.clear()
        speaker.generate(sentences(limit=5, grow=0), prompt(), SAMPLED)
        assert vocoder.sound(vectors(40), voice()).size
    assert recorder.waits["device.to_host: copy to the host"] == 5 + 1  # codes of all rows, and a sound


def test_given_codes_are_scored_on_the_device(recorder: Recorder) -> None:
    scores, latents = decoder(recorder).score(sentences()[0], prompt(), torch.tensor([5, 6, 7]))
    assert (scores.device.type, latents.device.type) == ("cuda", "cuda")
