"""A recogniser in a child process, so that a crash in native code costs a restart and not the run."""

import contextlib
import functools
import importlib
import logging
import os
import re
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from utils.core.batching import batched
from utils.core.errors import AmharicTtsError
from utils.core.facts import Report, ignore
from utils.core.paths import expand_home
from utils.core.workers import Worker
from utils.media.audio import Samples
from utils.recognition.facts import RecogniserChanged, RecogniserError, RecognitionError
from utils.recognition.recognisers import RATE, Device, RecogniserSpec, Transcript
from utils.recognition.recognisers.choice import CTC_PREFIX, Kind, choose

logger = logging.getLogger(__name__)

GPU_ERROR = re.compile(r"cuda|cudnn|cublas|nvrtc|nvidia|device-side", re.IGNORECASE)
SECONDS_TO_LOAD = 3600.0  # including a 3 GB download
SECONDS_PER_SECOND = 60.0  # to wait for a reply, per second of audio; a large model on a slow CPU needs about ten
LOG_BYTES = 2000  # of what the process printed, in which its last words are searched


class _RecogniserFailedError(Exception):
    """The recogniser raised an error that is not one of ours; its process is alive."""


class _ProcessLostError(Exception):
    """The child process ended, or did not reply in time."""


class IsolatedRecogniser:
    """A recogniser whose model lives in a child process, started on first use.

    If the process dies on a GPU, or CUDA fails, it continues on the CPU in int8. If it dies on the CPU, it is
    restarted, once per batch of clips. The model stays in memory until ``close`` or the end of a ``with`` block.
    """

    def __init__(
        self,
        spec: RecogniserSpec,
        *,
        report: Report = ignore,
        batch: int = 8,  # clips per request
        timeout: float = 60.0,  # seconds to wait for a reply, besides those for the audio
    ) -> None:
        folder = expand_home(spec.model)
        self.name, self.spec = spec.name, replace(spec, model=str(folder)) if folder.is_dir() else spec
        self._report = report
        self._batch = batch
        self._timeout = timeout
        self._process: _RecogniserProcess | None = None
        self._missing: RecognitionError | None = None  # why it cannot be loaded: the next call would wait in vain
        self._lock = threading.RLock()

    @property
    def pid(self) -> int:
        """Return the id of the child process, 0 if there is none."""
        return self._process.pid if self._process else 0

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        """Transcribe mono clips at 16 kHz."""
        transcripts = []
        for batch in batched(clips, self._batch):
            with self._lock:
                transcripts += self._transcribe(batch, language)
        return transcripts

    def close(self) -> None:
        """End the process and free its memory; the next call starts another."""
        with self._lock:
            if self._process:
                self._process.close()
            self._process = self._missing = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_reason: object) -> None:
        self.close()

    # Long because each way in which a process may fail leads to another attempt of the same loop.
    def _transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        """Transcribe one batch; if the process is lost, once more with a new one."""
        seconds = self._timeout + SECONDS_PER_SECOND * sum(clip.size for clip in clips) / RATE
        restarted = False
        while True:
            if self._missing:
                raise self._missing
            try:
                process = self._process or self._load()
                return list(process.request((clips, language), seconds))
            except (_ProcessLostError, _RecogniserFailedError) as failure:
                on_cpu = (self._process.device if self._process else self.spec.device) == "cpu"
                is_lost = isinstance(failure, _ProcessLostError)
                if not is_lost and (on_cpu or not GPU_ERROR.search(str(failure))):
                    raise RecogniserError(self.name, "failed", str(failure)) from failure
                self.close()
                if not on_cpu:
                    self.spec = replace(self.spec, device="cpu", compute_type="int8")
                    self._report(RecogniserChanged(self.name, "fell_back", str(failure)))
                elif restarted:
                    raise RecogniserError(self.name, "failed_twice", str(failure)) from failure
                else:
                    restarted = True
                    self._report(RecogniserChanged(self.name, "restarted", str(failure)))

    def _load(self) -> "_RecogniserProcess":
        logger.info("Loading %s.", self.name)
        try:
            self._process = _RecogniserProcess(self.spec)
        except RecognitionError as error:
            self._missing = error
            raise
        return self._process


def open_recogniser(
    model: str,
    language: str,
    report: Report,
    *,
    kind: Kind = "auto",
    device: Device = "auto",
    compute_type: str = "auto",
) -> IsolatedRecogniser:
    """Return the recogniser that a setting names, such as ``large-v3`` or ``ctc:MODEL``."""
    if model.startswith(CTC_PREFIX):
        kind = "ctc"
        model = model.removeprefix(CTC_PREFIX)
    spec = choose(kind, model, language, device=device, compute_type=compute_type, report=report)
    return IsolatedRecogniser(spec, report=report)


class _RecogniserProcess:
    """A child process with a loaded recogniser."""

    def __init__(self, spec: RecogniserSpec) -> None:
        self._log = tempfile.NamedTemporaryFile(suffix=".log", delete=False)  # noqa: SIM115  # closed by close()
        self._worker = Worker(_serve, Path(self._log.name))
        self.name = spec.name
        self.pid = self._worker.process.pid or 0
        try:
            self.device: str = self.request(spec, SECONDS_TO_LOAD)
        except BaseException:
            self.close()
            raise

    def request(self, message: object, seconds: float) -> Any:  # noqa: ANN401  # the device, or transcripts
        """Send a message and wait for the reply; a process that takes too long is killed."""
        try:
            self._worker.pipe.send(message)
            in_time = self._worker.pipe.poll(seconds)
            result, error = self._worker.pipe.recv() if in_time else (None, "")
        except (EOFError, OSError) as lost:
            raise _ProcessLostError(self._exit_reason()) from lost
        except BaseException:
            self._worker.kill()  # its late reply would be mistaken for the reply to the next request
            raise
        if not in_time:
            self._worker.kill()
            raise _ProcessLostError(f"no reply within {seconds:.0f} s")
        if isinstance(error, AmharicTtsError):
            is_ours = isinstance(error, RecognitionError)
            raise error if is_ours else RecogniserError(self.name, "failed", str(error)) from error
        if error:
            raise _RecogniserFailedError(error)
        return result

    def close(self) -> None:
        """Kill the process, which has nothing to save."""
        self._worker.kill()
        self._log.close()
        with contextlib.suppress(OSError):  # on Windows another program may have it open
            Path(self._log.name).unlink(missing_ok=True)

    def _exit_reason(self) -> str:
        self._worker.process.join()
        code = self._worker.process.exitcode or 0
        status = signal.Signals(-code).name if -code in set(signal.Signals) else f"exit code {code}"
        self._log.seek(0)
        printed = self._log.read()[-LOG_BYTES:].decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(printed) if line.strip()), "no output")
        return f"{status} ({last[:300]})"


def _serve(pipe: Connection, log: Path) -> None:
    """Run in the child: load the recogniser that the first message describes, then answer the others."""
    with log.open("ab") as file:  # whatever a library prints
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if os.name == "posix":
        log.unlink(missing_ok=True)  # a killed parent leaves no file; both have it open
    spec: RecogniserSpec = pipe.recv()
    module, _, name = spec.factory.partition(":")
    recogniser, error = _attempt(lambda: getattr(importlib.import_module(module), name)(spec))
    pipe.send((recogniser and recogniser.device, error))

    def transcribe(clips: Sequence[Samples], language: str) -> list[Transcript]:
        return [transcript for _, transcript in zip(clips, recogniser.transcribe(clips, language), strict=True)]

    while True:
        pipe.send(_attempt(functools.partial(transcribe, *pipe.recv())))


def _attempt(action: Callable[[], Any]) -> tuple[Any, AmharicTtsError | str]:
    """Return a result and an error, of which one is empty; other errors than ours may not be picklable."""
    try:
        return action(), ""
    except AmharicTtsError as error:
        return None, error
    except Exception as error:  # noqa: BLE001  # the parent reports it
        traceback.print_exception(error)
        return None, f"{type(error).__name__}: {error}"
