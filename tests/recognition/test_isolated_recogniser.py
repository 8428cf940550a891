"""Recognisers in a child process: transcripts arrive, and the caller survives whatever happens to the process."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.waiting import wait_for
from utils.core.facts import Fact
from utils.core.paths import ROOT
from utils.recognition.facts import RecognitionError
from utils.recognition.recognisers import Device, RecogniserSpec
from utils.recognition.recognisers.isolated import IsolatedRecogniser

pytestmark = pytest.mark.slow

Fake = Callable[..., IsolatedRecogniser]


def texts(recogniser: IsolatedRecogniser, *sizes: int, language: str = "am") -> list[str]:
    clips = [np.zeros(size, np.float32) for size in sizes]
    return [transcript.text for transcript in recogniser.transcribe(clips, language)]


@pytest.fixture
def warnings() -> list[Fact]:
    return []


@pytest.fixture
def fake(warnings: list[Fact]) -> Iterator[Fake]:
    """Isolate a fake recogniser by its class name, and close it after the test."""
    with contextlib.ExitStack() as opened:

        def isolate(kind: str, model: object = "fake", device: Device = "auto", **more: Any) -> IsolatedRecogniser:
            spec = RecogniserSpec(str(model), device, factory=f"tests.recognition.fake_recognisers:{kind}")
            return opened.enter_context(IsolatedRecogniser(spec, report=warnings.append, **more))

        yield isolate


def run_when_created(path: Path, action: Callable[[], None]) -> None:
    """Call ``action`` in a thread as soon as the recogniser sleeps over a request."""

    def wait() -> None:
        wait_for(path.exists, 15)
        action()

    threading.Thread(target=wait).start()


def test_only_transcripts_come_back(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    recogniser = fake("Counting", batch=3)
    assert texts(recogniser) == []
    assert recogniser.pid == 0, "without clips, no process is started"
    sizes = [16_000, 1, 0, 5, 70_000, 6, 7]
    assert texts(recogniser, *sizes) == [f"{size} am cpu auto" for size in sizes]
    assert recogniser.name == "Counting fake"
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("model", "reason"), [("raise", "CUDNN_STATUS"), ("load", "driver version"), ("crash", "libcudnn_ops")]
)
def test_after_a_gpu_failure_it_continues_on_the_cpu(fake: Fake, warnings: list[Fact], model: str, reason: str) -> None:
    recogniser = fake("FailingOnGpu", model, "cuda")
    assert texts(recogniser, 4) == texts(recogniser, 4) == ["4 am cpu int8"]
    (warning,) = warnings
    assert reason in str(warning)


@pytest.mark.parametrize(("timeout", "reason"), [(60.0, "SIGKILL"), (1.0, "1 s")])
def test_a_process_that_is_killed_or_does_not_reply_is_restarted(
    fake: Fake, warnings: list[Fact], tmp_path: Path, timeout: float, reason: str
) -> None:
    recogniser = fake("Sleeping", tmp_path / "seen", timeout=timeout)
    if reason == "SIGKILL":
        run_when_created(tmp_path / "seen", lambda: psutil.Process(recogniser.pid).kill())
    assert texts(recogniser, 9) == ["9 am cpu auto"]
    (warning,) = warnings
    assert reason in str(warning)


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("ours", r"tiny supports only English\. Choose a size without"),
        ("theirs", "Failing fake failed: IndexError: list index out of range"),
        ("few", "Failing fake failed: ValueError"),
        ("crash", "twice.*exit code 3"),
    ],
)
def test_an_error_ends_only_its_own_clip(fake: Fake, warnings: list[Fact], language: str, message: str) -> None:
    recogniser = fake("Failing")
    assert texts(recogniser, 13) == ["13 am cpu auto"]
    pid = recogniser.pid
    with pytest.raises(RecognitionError, match=message):
        texts(recogniser, 1, 2, language=language)
    assert texts(recogniser, 14) == ["14 am cpu auto"]
    assert (recogniser.pid != pid) == bool(warnings) == (language == "crash")


def test_an_interrupted_call_leaves_no_stale_reply(fake: Fake, tmp_path: Path) -> None:
    recogniser, thread = fake("Sleeping", tmp_path / "seen"), threading.get_ident()
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores Ctrl-C
    try:
        run_when_created(tmp_path / "seen", lambda: signal.pthread_kill(thread, signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            texts(recogniser, 1)
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert texts(recogniser, 2) == ["2 am cpu auto"]


def test_threads_share_one_process(fake: Fake) -> None:
    with fake("Counting") as recogniser, ThreadPoolExecutor(4) as pool:
        texts(recogniser, 0)
        process = psutil.Process(recogniser.pid)
        results = list(pool.map(lambda size: texts(recogniser, *[size] * 20), range(4)))
        assert results == [[f"{size} am cpu auto"] * 20 for size in range(4)]
        assert recogniser.pid == process.pid
    assert not process.is_running()
    assert recogniser.pid == 0


PARENT = """
import os, sys, threading, time
import numpy as np
from tests.recognition.test_isolated_recogniser import IsolatedRecogniser, RecogniserSpec
recogniser = IsolatedRecogniser(RecogniserSpec(sys.argv[1], factory="tests.recognition.fake_recognisers:Sleeping"))
threading.Thread(target=recogniser.transcribe, args=([np.zeros(1, np.float32)], "am"), daemon=True).start()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
os.fork() or time.sleep(60)  # a child that was forked holds the pipe open
print(recogniser.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "seen")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        others = [process for process in psutil.Process(parent.pid).children() if process.pid != child.pid]
        assert child.is_running()
        parent.kill()
        parent.wait()
        try:
            wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, 15)
        finally:
            for process in others:
                process.kill()
