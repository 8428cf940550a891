"""Recognisers in a child process: transcripts arrive, and the caller survives whatever happens to the process."""

import os
import signal
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
from utils.dataset.recognisers import Device, RecogniserSpec, RecognitionError, Word, second_cer
from utils.dataset.recognisers.isolated import IsolatedRecogniser
from utils.media.audio import Samples

pytestmark = pytest.mark.slow

Fake = Callable[..., IsolatedRecogniser]


def silence(samples: int) -> Samples:
    return np.zeros(samples, np.float32)


def texts(recogniser: IsolatedRecogniser, *sizes: int) -> list[str]:
    return [transcript.text for transcript in recogniser.transcribe([silence(size) for size in sizes], "am")]


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def fake(warnings: list[str]) -> Iterator[Fake]:
    """Isolate a fake recogniser by its class name, and close it after the test."""
    opened: list[IsolatedRecogniser] = []

    def isolate(
        kind: str, model: object = "fake", device: Device = "auto", batch: int = 8, timeout: float = 60.0
    ) -> IsolatedRecogniser:
        spec = RecogniserSpec(str(model), device, factory=f"tests.dataset.fake_recognisers:{kind}")
        opened.append(IsolatedRecogniser(spec, warn=warnings.append, batch=batch, timeout=timeout))
        return opened[-1]

    yield isolate
    for recogniser in opened:
        recogniser.close()


def wait_for(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [
        ("ሰላም ለዓለም።", "ሰላምለዓለም", 0.0),  # spaces and punctuation do not count
        ("ሠላም ዓለም", "ሰላም አለም", 0.0),  # letters of the same sound
        ("Selam", "selam!", 0.0),
        ("ሰላ", "ሰላም", 1 / 3),
        ("", "። !", 0.0),
    ],
)
def test_disagreement_is_the_share_of_different_letters(first: str, second: str, share: float) -> None:
    assert second_cer(first, second) == pytest.approx(share)


def test_transcripts_come_back_in_order(fake: Fake) -> None:
    recogniser = fake("Counting", batch=3)
    assert texts(recogniser) == []
    assert recogniser.pid == 0, "without clips, no process is started"
    sizes = [16_000, 1, 0, 5, 70_000, 6, 7]
    transcripts = recogniser.transcribe([silence(size) for size in sizes], "am")
    assert [transcript.text for transcript in transcripts] == [f"{size} am cpu auto" for size in sizes]
    assert transcripts[0].words == (Word("ሰላም", Span(0.25, 0.5), 0.75),)
    assert (recogniser.name, recogniser.device) == ("Counting fake", "cpu")
    clips: list[Samples] = [np.array([0.1, -1.0, 1e-30], np.float32), np.arange(6, dtype=np.float32)[::2], silence(0)]
    transcripts = fake("Repeating").transcribe(clips, "am")
    assert [transcript.text for transcript in transcripts] == [repr(clip.tolist()) for clip in clips]


def test_prints_of_a_library_are_not_taken_for_replies(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    assert texts(fake("Chatty", batch=1), 1, 2) == ["1 am cpu auto", "2 am cpu auto"]
    assert "noise" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("RaisingOnGpu", "CUDNN_STATUS"), ("RaisingOnLoad", "driver version"), ("CrashingOnGpu", "libcudnn_ops")],
)
def test_after_a_gpu_failure_it_continues_on_the_cpu(fake: Fake, warnings: list[str], kind: str, reason: str) -> None:
    recogniser = fake(kind, device="cuda")
    assert texts(recogniser, 4) == texts(recogniser, 4) == ["4 am cpu int8"]
    (warning,) = warnings
    assert reason in warning


def test_a_killed_process_is_restarted(fake: Fake, warnings: list[str], tmp_path: Path) -> None:
    recogniser = fake("Sleeping", model=tmp_path / "seen")

    def kill() -> None:
        wait_for((tmp_path / "seen").exists)
        psutil.Process(recogniser.pid).kill()

    killer = threading.Thread(target=kill)
    killer.start()
    assert texts(recogniser, 9) == ["9 am cpu auto"]
    killer.join()
    (warning,) = warnings
    assert "SIGKILL" in warning


def test_clips_that_kill_it_twice_are_refused_and_others_transcribed(fake: Fake) -> None:
    recogniser = fake("Poisoned")
    with pytest.raises(RecognitionError, match=r"exit code 3.*twice"):
        texts(recogniser, 13)
    assert texts(recogniser, 14) == ["14 am cpu auto"]


def test_a_process_that_does_not_reply_is_restarted(fake: Fake, warnings: list[str], tmp_path: Path) -> None:
    recogniser = fake("Sleeping", model=tmp_path / "seen", timeout=1.0)
    assert texts(recogniser, 2) == ["2 am cpu auto"]
    assert "1 s" in warnings[0]


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("ours", "It knows only English. Choose another."),
        ("theirs", "Failing fake failed: IndexError: list index out of range"),
        ("few", "Failing fake failed: ValueError"),
    ],
)
def test_an_error_is_reported_and_the_process_lives_on(
    fake: Fake, warnings: list[str], language: str, message: str
) -> None:
    recogniser = fake("Failing")
    recogniser.start()
    pid = recogniser.pid
    with pytest.raises(RecognitionError) as caught:
        recogniser.transcribe([silence(1), silence(2)], language)
    assert message in str(caught.value)
    assert len(texts(recogniser, 1)) == 1
    assert (recogniser.pid, warnings) == (pid, [])


def test_an_interrupted_call_leaves_no_stale_reply(fake: Fake, tmp_path: Path) -> None:
    recogniser = fake("Sleeping", model=tmp_path / "seen")
    recogniser.start()
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores Ctrl-C
    try:
        threading.Timer(1.0, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            texts(recogniser, 1)
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert texts(recogniser, 2) == ["2 am cpu auto"]


def test_threads_share_one_process_and_closing_ends_it(fake: Fake) -> None:
    results = {}
    with fake("Counting") as recogniser:
        recogniser.start()
        process = psutil.Process(recogniser.pid)

        def transcribe(size: int) -> None:
            results[size] = texts(recogniser, *[size] * 20)

        threads = [threading.Thread(target=transcribe, args=(size,)) for size in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert recogniser.pid == process.pid
    assert results == {size: [f"{size} am cpu auto"] * 20 for size in range(1, 5)}
    assert not process.is_running()
    assert recogniser.pid == 0


PARENT = """
import os, sys, threading, time
from utils.dataset.recognisers.isolated import IsolatedRecogniser
from utils.dataset.recognisers import RecogniserSpec
import numpy as np
recogniser = IsolatedRecogniser(RecogniserSpec(sys.argv[1], factory="tests.dataset.fake_recognisers:Sleeping"))
recogniser.start()
threading.Thread(target=recogniser.transcribe, args=([np.zeros(1, np.float32)], "am"), daemon=True).start()
os.fork() or time.sleep(60)  # a child that was forked holds the pipe open
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
print(recogniser.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "seen")]
    parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    others = [process for process in psutil.Process(parent.pid).children() if process.pid != child.pid]
    assert child.is_running()
    parent.kill()
    parent.wait()
    try:
        wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    finally:
        for process in others:
            process.kill()
        parent.stdout.close()
