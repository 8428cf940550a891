"""Recognisers in their own process: what they hear arrives, and whatever becomes of them, the caller lives."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from utils.core.paths import ROOT
from utils.dataset.clip import Span
from utils.dataset.recogniser_process import Isolated, Patience
from utils.dataset.transcription import Device, Engine, RecognitionError, Word, second_cer
from utils.media.audio import Samples

pytestmark = pytest.mark.slow

Fake = Callable[..., Isolated]


def silence(samples: int) -> Samples:
    return np.zeros(samples, np.float32)


@pytest.fixture
def said() -> list[str]:
    """What the recogniser warned of."""
    return []


@pytest.fixture
def fake(said: list[str]) -> Iterator[Fake]:
    """Isolate a fake by its name, and end it after the test."""
    made: list[Isolated] = []

    def make(
        kind: str, model: str = "fake", device: Device = "auto", batch: int = 8, patience: Patience | None = None
    ) -> Isolated:
        engine = Engine(model, device, factory=f"tests.dataset.fake_recognisers:{kind}")
        made.append(Isolated(engine, warn=said.append, batch=batch, patience=patience or Patience()))
        return made[-1]

    yield make
    for one in made:
        one.close()


def wait_for(fact: Callable[[], bool], seconds: float = 15.0) -> None:
    until = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < until, "it did not come to pass"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("ሰላም ለዓለም", "ሰላም ለዓለም", 0.0),
        ("ሰላም ለዓለም።", "ሰላምለዓለም", 0.0),  # spaces and punctuation are not heard
        ("ሠላም", "ሰላም", 0.0),  # one sound, two letters
        ("ዓለም", "አለም", 0.0),
        ("Selam", "selam!", 0.0),
        ("ሰላም", "ሰላ", 1 / 3),
        ("ሰላ", "ሰላም", 1 / 3),
        ("ሰላም", "በላም", 1 / 3),
        ("ሰላም", "", 1.0),
        ("", "ሰላም", 1.0),
        ("", "። !", 0.0),
        ("ab", "xyzw", 1.0),
        ("3 ቀን", "4 ቀን", 1 / 3),
    ],
)
def test_two_transcripts_differ_by_the_share_of_other_letters(one: str, other: str, share: float) -> None:
    assert second_cer(one, other) == pytest.approx(share)


def test_text_confidence_and_word_times_come_back_in_order(fake: Fake) -> None:
    recogniser = fake("Counting", batch=3)
    sizes = [16_000, 1, 0, 5, 70_000, 6, 7]
    heard = recogniser.transcribe([silence(size) for size in sizes], "am")
    assert [one.text for one in heard] == [f"{size} am cpu auto" for size in sizes]
    assert heard[0].words == (Word("ሰላም", Span(0.25, 0.5), 0.75),)
    assert heard[0].confidence == 0.5
    assert recogniser.name == "Counting fake"
    assert recogniser.device == "cpu"


def test_samples_arrive_as_they_are(fake: Fake) -> None:
    clips: list[Samples] = [np.array([0.1, -1.0, 1e-30], np.float32), np.arange(6, dtype=np.float32)[::2], silence(0)]
    heard = fake("Repeating").transcribe(clips, "am")
    assert [one.text for one in heard] == [repr(clip.tolist()) for clip in clips]


def test_nothing_to_hear_starts_no_process(fake: Fake) -> None:
    recogniser = fake("Counting")
    assert recogniser.transcribe([], "am") == []
    assert recogniser.pid == 0


def test_what_a_library_prints_is_no_reply(fake: Fake) -> None:
    recogniser = fake("Chatty", batch=1)
    assert [one.text for one in recogniser.transcribe([silence(1), silence(2)], "am")] == [
        "1 am cpu auto",
        "2 am cpu auto",
    ]


@pytest.mark.parametrize("kind", ["RaisingOnGpu", "RaisingOnLoad", "CrashingOnGpu"])
def test_a_failure_on_the_gpu_goes_on_on_the_cpu_in_int8_and_says_so(fake: Fake, said: list[str], kind: str) -> None:
    recogniser = fake(kind, device="cuda")
    for _ in range(2):
        assert [one.text for one in recogniser.transcribe([silence(4)], "am")] == ["4 am cpu int8"]
    (warning,) = said
    assert "on the CPU, in int8" in warning
    assert {"RaisingOnGpu": "CUDNN_STATUS", "RaisingOnLoad": "driver version", "CrashingOnGpu": "libcudnn_ops"}[
        kind
    ] in warning


def test_a_kill_in_the_midst_of_work_costs_a_restart(fake: Fake, said: list[str], tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    recogniser = fake("Sleeping", model=str(seen))

    def kill() -> None:
        wait_for(seen.exists)
        psutil.Process(recogniser.pid).kill()

    killer = threading.Thread(target=kill)
    killer.start()
    (heard,) = recogniser.transcribe([silence(9)], "am")
    killer.join()
    assert heard.text == "9 am cpu auto"
    assert [sentence for sentence in said if "SIGKILL" in sentence and "started again" in sentence] == said
    assert len(said) == 1


def test_clips_that_kill_it_twice_are_given_up_and_others_are_heard(fake: Fake) -> None:
    recogniser = fake("Poisoned")
    with pytest.raises(RecognitionError, match=r"exit code 3.*twice with the same clips"):
        recogniser.transcribe([silence(13)], "am")
    assert recogniser.transcribe([silence(14)], "am")[0].text == "14 am cpu auto"


@pytest.mark.slow
def test_a_process_that_does_not_answer_is_ended(fake: Fake, said: list[str], tmp_path: Path) -> None:
    recogniser = fake("Sleeping", model=str(tmp_path / "seen"), patience=Patience(call=1.0, per_second=0.0))
    assert recogniser.transcribe([silence(2)], "am")[0].text == "2 am cpu auto"
    assert "did not answer within 1 s" in said[0]


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("ours", "It knows only English. Choose another."),
        ("theirs", "Failing fake failed: IndexError: list index out of range"),
        ("few", "Failing fake failed: ValueError"),
    ],
)
def test_an_error_is_told_and_the_process_goes_on(fake: Fake, said: list[str], language: str, sentence: str) -> None:
    recogniser = fake("Failing")
    recogniser.start()
    process = recogniser.pid
    with pytest.raises(RecognitionError) as caught:
        recogniser.transcribe([silence(1), silence(2)], language)
    assert sentence in str(caught.value)
    assert len(recogniser.transcribe([silence(1)], "am")) == 1
    assert (recogniser.pid, said) == (process, [])


def test_an_unknown_factory_is_told(fake: Fake) -> None:
    with pytest.raises(RecognitionError, match="no attribute 'Missing'"):
        fake("Missing").start()


def test_an_interrupted_call_leaves_no_stale_reply(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    recogniser = fake("Counting")
    recogniser.start()
    worker = recogniser._worker
    assert worker is not None
    requests = worker._requests

    def interrupted(*_request: object) -> bytes:
        requests.write(b'{"language": "old", "lengths": [5]}\n' + bytes(20))
        requests.flush()
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "_exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        recogniser.transcribe([silence(1)], "am")
    monkeypatch.undo()
    assert recogniser.transcribe([silence(2)], "am")[0].text == "2 am cpu auto"


def test_threads_share_one_process(fake: Fake) -> None:
    recogniser, heard = fake("Counting"), {}

    def hear(size: int) -> None:
        heard[size] = recogniser.transcribe([silence(size)] * 20, "am")

    threads = [threading.Thread(target=hear, args=(size,)) for size in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one.text == f"{size} am cpu auto" for size, said in heard.items() for one in said)
    assert len(heard) == 4


def test_closing_ends_the_process(fake: Fake) -> None:
    with fake("Counting") as recogniser:
        recogniser.start()
        process = psutil.Process(recogniser.pid)
    assert not process.is_running()
    assert recogniser.pid == 0


PARENT = """
import os, sys, threading, time
from utils.dataset.recogniser_process import Isolated
from utils.dataset.transcription import Engine
import numpy as np
recogniser = Isolated(Engine(sys.argv[1], factory="tests.dataset.fake_recognisers:Sleeping"))
recogniser.start()
threading.Thread(target=recogniser.transcribe, args=([np.zeros(1, np.float32)], "am"), daemon=True).start()
if sys.argv[2] == "shared":
    os.fork() or time.sleep(60)  # a child that was forked holds the pipe open
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
print(recogniser.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("pipe", ["alone", "shared"])
def test_it_dies_with_its_parent(tmp_path: Path, pipe: str) -> None:
    words = [sys.executable, "-c", PARENT, str(tmp_path / "seen"), pipe]
    if pipe == "shared" and not hasattr(os, "fork"):
        pytest.skip("no fork here")
    parent = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    family = [one for one in psutil.Process(parent.pid).children() if one.pid != child.pid]
    assert child.is_running()
    parent.kill()
    parent.wait()
    try:
        wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    finally:
        for one in family:
            one.kill()
        parent.stdout.close()


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("larg-v3", "Did you mean large-v3?"),
        ("/no/such/folder", "there is no such folder"),
        ("large-v3", "give the folder of a model that is here"),
        ("somebody/whisper", "give the folder of a model that is here"),
    ],
)
def test_a_whisper_that_cannot_be_had_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, sentence: str
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(RecognitionError) as caught:
        Isolated(Engine(model)).start()
    assert sentence in str(caught.value)


def test_a_whisper_that_is_not_converted_is_explained(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RecognitionError, match=r"no model.bin and no tokenizer.json.*ct2-transformers-converter"):
        Isolated(Engine(str(tmp_path))).start()
