"""A recogniser in a process of its own, so that a crash in its native code costs a restart and not the caller.

The other end of the pipe is ``recognisers.process``. What goes through is a line of JSON and bare samples: nothing that
arrives is ever executed.
"""

import dataclasses
import json
import logging
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar, cast

from utils.core.batching import batched
from utils.dataset.clip import Span
from utils.dataset.transcription import RATE, Engine, RecognitionError, Transcript, Word
from utils.runs.processes import identity, spawn

if TYPE_CHECKING:
    from utils.media.audio import Samples

T = TypeVar("T")
Reply = dict[str, Any]
logger = logging.getLogger(__name__)

GPU_TROUBLE = re.compile(r"cuda|cudnn|cublas|nvrtc|nvidia|device-side", re.IGNORECASE)


class Lost(Exception):  # noqa: N818  # what happened, not what it is
    """The process ended, or did not answer in time."""


class Fault(Exception):  # noqa: N818  # what happened, not what it is
    """The recogniser raised an error that is not one of ours."""


@dataclasses.dataclass(frozen=True)
class Patience:
    """How many seconds a process may take before it counts as stuck.

    Attributes:
        start: To load the model, a download of 3 GB included.
        call: To answer, whatever the clips are.
        per_second: To answer, for each second of sound; a large model on a slow CPU needs about ten.
    """

    start: float = 3600.0
    call: float = 60.0
    per_second: float = 60.0


class Isolated:
    """A recogniser whose model lives in a child process, started when it is first needed.

    A process lost on a GPU, or a failure of CUDA, means CPU and int8 from then on; one lost on a CPU is started again,
    once for the same clips. The model stays in memory until ``close``, or the end of a ``with``.

    Args:
        engine: Which recogniser, and how.
        warn: Hears in a sentence what was lost and what is done about it.
        batch: Clips sent at a time.
        patience: When a process counts as stuck.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        warn: Callable[[str], None] = logger.warning,
        batch: int = 8,
        patience: Patience = Patience(),
    ) -> None:
        self.name = engine.name
        self.engine = _located(engine)
        self._warn = warn
        self._batch = batch
        self._patience = patience
        self._worker: Worker | None = None
        self._lock = threading.RLock()

    @property
    def device(self) -> str:
        """Say where it computes; auto until its model is loaded."""
        return self._worker.device if self._worker else self.engine.device

    @property
    def pid(self) -> int:
        """Return the number of its process; 0 when there is none."""
        return self._worker.pid if self._worker else 0

    def start(self) -> None:
        """Load the model, so that what is wrong with it shows before the work begins."""
        self._safely(lambda _worker: None)

    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        """Return what is said in each clip, which is mono at 16 kHz."""
        return [said for batch in batched(clips, self._batch) for said in self._heard(batch, language)]

    def close(self) -> None:
        """End the process and free its memory; the next call starts another."""
        with self._lock:
            if self._worker:
                self._worker.end()
            self._worker = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_reason: object) -> None:
        self.close()

    def _heard(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        request = {"language": language, "lengths": [clip.size for clip in clips]}
        seconds = self._patience.call + self._patience.per_second * sum(clip.size for clip in clips) / RATE
        reply = self._safely(lambda worker: worker.ask(request, clips, seconds))
        return [_transcript(said) for said in reply["transcripts"]]

    def _safely(self, work: Callable[["Worker"], T]) -> T:
        """Do something with the process, and once more when it is lost."""
        with self._lock:
            restarted = False
            while True:
                try:
                    return work(self._running())
                except (Lost, Fault) as failure:
                    device = self.device
                    if isinstance(failure, Fault) and (device == "cpu" or not GPU_TROUBLE.search(str(failure))):
                        raise RecognitionError(f"{self.name} failed: {failure}") from failure
                    self.close()
                    if device != "cpu":
                        self._fall_back(failure)
                    elif restarted:
                        raise self._given_up(failure) from failure
                    else:
                        restarted = True
                        self._warn(f"{self.name}: {failure} It is started again.")

    def _running(self) -> "Worker":
        if self._worker is None:
            logger.info("Loading %s.", self.name)
            self._worker = Worker(self.engine, self._patience.start)
        return self._worker

    def _fall_back(self, failure: Exception) -> None:
        self.engine = dataclasses.replace(self.engine, device="cpu", compute_type="int8")
        self._warn(f"{self.name} failed on the GPU and goes on more slowly on the CPU, in int8: {failure}")

    def _given_up(self, failure: Exception) -> RecognitionError:
        return RecognitionError(
            f"{self.name}: {failure} It happened twice with the same clips.",
            hint="Most often the memory is full: choose a smaller model, or close other programs.",
        )


class Worker:
    """One child process with a recogniser in it, which ends when this process does.

    Args:
        engine: What it loads.
        seconds: How long it may take to load it.
    """

    def __init__(self, engine: Engine, seconds: float) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process; a pipe nobody reads would block it
        self._process = spawn(
            ["-m", "utils.dataset.recognisers.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            new_session=True,  # Ctrl-C is for the caller
        )
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._replies = cast("IO[bytes]", self._process.stdout)
        self.pid = self._process.pid
        order = {"engine": dataclasses.asdict(engine), "parent": os.getpid(), "identity": identity(os.getpid())}
        try:
            self.device = str(self.ask(order, [], seconds)["device"])
        except BaseException:
            self.end()
            raise

    def ask(self, request: Mapping[str, object], clips: "Sequence[Samples]", seconds: float) -> Reply:
        """Send a request with its clips and wait for the reply.

        Raises:
            Lost: The process is gone, or was ended because it took too long.
            Fault: The recogniser failed; the process lives.
            RecognitionError: The recogniser said what is wrong.
        """
        late = threading.Timer(seconds, self._process.kill)
        late.daemon = True
        late.start()
        began = time.monotonic()
        try:
            line = self._exchange(request, clips)
        except BaseException:
            self._kill()  # a reply that nobody waited for would be taken for the next one
            raise
        finally:
            late.cancel()
        if not line.endswith(b"\n"):
            raise Lost(self._last_words(stuck=time.monotonic() - began >= seconds, seconds=seconds))
        reply: Reply = json.loads(line)
        if "fault" in reply:
            raise Fault(reply["fault"])
        if "error" in reply:
            raise RecognitionError(reply["error"], hint=reply["hint"])
        return reply

    def end(self) -> None:
        """Kill the process, which has nothing to save, and close what led to it."""
        self._kill()
        for pipe in (self._requests, self._replies, self._log):
            try:
                pipe.close()
            except OSError:  # what was not sent yet has nowhere to go
                continue

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _exchange(self, request: Mapping[str, object], clips: "Sequence[Samples]") -> bytes:
        """Return the line of the reply, without its end when the process is gone."""
        try:
            self._requests.write(json.dumps(request).encode() + b"\n")
            for clip in clips:
                self._requests.write(clip.astype("<f4").tobytes())
            self._requests.flush()
            return self._replies.readline()
        except OSError:
            return b""

    def _last_words(self, *, stuck: bool, seconds: float) -> str:
        """Say how the process ended."""
        code = self._process.wait()
        if stuck:
            return f"Its process did not answer within {seconds:.0f} s and was ended."
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 2000))
        lines = self._log.read().decode("utf-8", "replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
        return f"Its process ended with {_ending(code)} ({said[:300]})."


def _ending(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def _located(engine: Engine) -> Engine:
    """Name a folder so that it means the same from the folder in which the child works."""
    folder = Path(engine.model).expanduser()
    return dataclasses.replace(engine, model=str(folder.resolve())) if folder.exists() else engine


def _transcript(said: Reply) -> Transcript:
    words = (Word(word["text"], Span(**word["span"]), word["confidence"]) for word in said["words"])
    return Transcript(said["text"], said["confidence"], tuple(words))
