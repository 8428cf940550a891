"""Speech on the GPUs of Apple and Intel: rehearsed with tensors on the processor, NOT RUN THERE."""

import logging
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.fake_gpus import FakeGpu, Redirected
from utils.config import SpeechConfig
from utils.speech.synthesizer import Synthesizer, open_voice
from utils.speech.vocoder import Vocoder
from utils.xtts import device
from utils.xtts.device import UNTESTED, Lane, choose_device, to_device, to_host, trim_memory
from utils.xtts.facts import GpuMissingError

TEXT = "ሰላም ለዓለም"
SETTINGS = SpeechConfig(tries=1, trim=False)


@pytest.fixture(params=UNTESTED)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    FakeGpu(monkeypatch, request.param).in_every_thread(monkeypatch)
    return str(request.param)


@pytest.mark.slow
def test_auto_speaks_there_what_it_says_on_a_processor(kind: str, model: Synthesizer) -> None:
    wanted = model.speak(TEXT, SETTINGS)
    with Redirected(kind) as there:
        voice = open_voice(model.model.folder)
        assert (voice.precision.device, voice.precision.gpt, voice.precision.vocoder) == (kind, "fp32", "fp32")
        assert not voice.decoder.uses_graphs
        before = there.placed
        spoken = voice.speak(TEXT, SETTINGS)
    assert there.placed > before
    assert np.abs(spoken.samples - wanted.samples).max() < 1e-3


@pytest.mark.slow
def test_a_gpu_that_cannot_speak_is_replaced_by_the_processor(
    kind: str, model: Synthesizer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sound = Vocoder.sound

    def refuse(vocoder: Vocoder, *arguments: Any) -> object:
        if vocoder.device.type == kind:
            raise NotImplementedError("Output channels > 65536 not supported at the MPS device.")
        return sound(vocoder, *arguments)

    monkeypatch.setattr(Vocoder, "sound", refuse)
    with Redirected(kind), caplog.at_level(logging.WARNING):
        voice = open_voice(model.model.folder, kind, "fp32")
        assert voice.precision.device == "cpu"
        assert voice.precision.gpt_reason.why == "requested"
        assert voice.speak(TEXT, SETTINGS).samples.size
    assert "Speech runs on the CPU because it does not work on this GPU: Output channels > 65536" in caplog.text


@pytest.mark.parametrize("kind", UNTESTED)
def test_one_thread_does_all_work_of_a_gpu(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FakeGpu(monkeypatch, kind)
    names = {Lane(torch.device(kind)).run(lambda: threading.current_thread().name) for _ in range(2)}
    trim_memory()
    assert names == set(gpu.emptied)
    assert names.isdisjoint({threading.current_thread().name})


@pytest.mark.parametrize("kind", UNTESTED)
def test_copies_are_waited_for(kind: str) -> None:
    copies: list[dict[str, object]] = []
    part = SimpleNamespace(device=torch.device(kind), to=lambda *_, **how: copies.append(how))
    assert to_host(part).event is None  # type: ignore[arg-type]
    to_device(part, torch.device(kind))  # type: ignore[arg-type]
    assert not any(how.get("non_blocking") for how in copies)


def test_without_a_gpu_auto_is_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "found_gpus", dict)
    assert choose_device() == "cpu"


def test_a_device_that_does_not_exist_is_refused() -> None:
    with pytest.raises(GpuMissingError):
        choose_device("gpu")
