"""A recogniser in a child process, so that a crash in native code costs a restart and not the run.

The other end of the pipe is ``recognisers.child``. Messages are lines of JSON and raw samples; nothing received is ever
executed.
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
from typing import IO, TYPE_CHECKING, Any, Self, cast

from utils.core.batching import batched
from utils.dataset.clip import Span
from utils.dataset.recognisers import RATE, RecogniserSpec, RecognitionError, Transcript, Word
from utils.runs.processes import identity, spawn

if TYPE_CHECKING:
    from utils.media.audio import Samples

Reply = dict[str, Any]
logger = logging.getLogger(__name__)

GPU_ERROR = re.compile(r"cuda|cudnn|cublas|nvrtc|nvidia|device-side", re.IGNORECASE)


class ProcessLostError(Exception):
    """The child process ended, or did not reply in time."""


class RecogniserFailedError(Exception):
    """The recogniser raised an error that is not one of ours; its process is alive."""


@dataclasses.dataclass(frozen=True)
class Timeouts:
    """How many seconds to wait for the child process.

    Attributes:
        start: For loading the model, including a 3 GB download.
        call: For a reply, whatever the clips.
        per_second: For a reply, per second of audio; a large model on a slow CPU needs about ten.
    """

    start: float = 3600.0
    call: float = 60.0
    per_second: float = 60.0


class IsolatedRecogniser:
    """A recogniser whose model lives in a child process, started on first use.

    If the process dies on a GPU, or CUDA fails, it continues on the CPU in int8. If it dies on the CPU, it is
    restarted, once per batch of clips. The model stays in memory until ``close`` or the end of a ``with`` block.

    Args:
        spec: Which recogniser, and how to load it.
        warn: Called with a message about every restart.
        batch: Clips per request.
        timeouts: When the process counts as stuck.
    """

    def __init__(
        self,
        spec: RecogniserSpec,
        *,
        warn: Callable[[str], None] = logger.warning,
        batch: int = 8,
        timeouts: Timeouts = Timeouts(),
    ) -> None:
        self.name = spec.name
        folder = Path(spec.model).expanduser()  # the child may work in another folder
        self.spec = dataclasses.replace(spec, model=str(folder.resolve())) if folder.exists() else spec
        self._warn = warn
        self._batch = batch
        self._timeouts = timeouts
        self._process: RecogniserProcess | None = None
        self._lock = threading.RLock()

    @property
    def device(self) -> str:
        """Return the device in use; auto until the model is loaded."""
        return self._process.device if self._process else self.spec.device

    @property
    def pid(self) -> int:
        """Return the id of the child process, 0 if there is none."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Load the model now, so that a broken one is reported before the work begins."""
        self._with_restart(lambda _: {})

    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        """Transcribe mono clips at 16 kHz."""
        return [transcript for batch in batched(clips, self._batch) for transcript in self._request(batch, language)]

    def close(self) -> None:
        """End the process and free its memory; the next call starts another."""
        with self._lock:
            if self._process:
                self._process.close()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_reason: object) -> None:
        self.close()

    def _request(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        request = {"language": language, "lengths": [clip.size for clip in clips]}
        seconds = self._timeouts.call + self._timeouts.per_second * sum(clip.size for clip in clips) / RATE
        reply = self._with_restart(lambda process: process.request(request, clips, seconds))
        return [_parse_transcript(transcript) for transcript in reply["transcripts"]]

    def _with_restart(self, action: Callable[["RecogniserProcess"], Reply]) -> Reply:
        """Do something with the process; if it is lost, once more with a new one."""
        with self._lock:
            restarted = False
            while True:
                try:
                    return action(self._running())
                except (ProcessLostError, RecogniserFailedError) as failure:
                    device = self.device
                    is_lost = isinstance(failure, ProcessLostError)
                    if not is_lost and (device == "cpu" or not GPU_ERROR.search(str(failure))):
                        raise RecognitionError(f"{self.name} failed: {failure}") from failure
                    self.close()
                    if device == "cpu" and restarted:
                        raise RecognitionError(
                            f"{self.name}: {failure} It happened twice with the same clips.",
                            hint="Memory is probably full. Choose a smaller model or close other programs.",
                        ) from failure
                    restarted = device == "cpu"
                    self._prepare_restart(device, failure)

    def _prepare_restart(self, device: str, failure: Exception) -> None:
        if device == "cpu":
            self._warn(f"{self.name}: {failure} Restarting it.")
            return
        self.spec = dataclasses.replace(self.spec, device="cpu", compute_type="int8")
        self._warn(f"{self.name} failed on the GPU. Continuing on the CPU in int8, which is slower: {failure}")

    def _running(self) -> "RecogniserProcess":
        if self._process is None:
            logger.info("Loading %s.", self.name)
            self._process = RecogniserProcess(self.spec, self._timeouts.start)
        return self._process


class RecogniserProcess:
    """A child process with a loaded recogniser, which ends when this process does.

    Args:
        spec: What to load.
        seconds: How long loading may take.
    """

    def __init__(self, spec: RecogniserSpec, seconds: float) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process; a pipe nobody reads blocks
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
        first = {"spec": dataclasses.asdict(spec), "parent": os.getpid(), "identity": identity(os.getpid())}
        try:
            self.device = str(self.request(first, [], seconds)["device"])
        except BaseException:
            self.close()
            raise

    def request(self, request: Mapping[str, object], clips: "Sequence[Samples]", seconds: float) -> Reply:
        """Send a request with its clips and wait for the reply.

        Raises:
            ProcessLostError: The process ended, or was killed because it took too long.
            RecogniserFailedError: The recogniser failed; the process is alive.
            RecognitionError: The recogniser reported what is wrong.
        """
        timer = threading.Timer(seconds, self._process.kill)
        timer.daemon = True
        timer.start()
        started = time.monotonic()
        try:
            line = self._exchange(request, clips)
        except BaseException:
            self._kill()  # a reply that nobody waited for would be taken for the next one
            raise
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            raise ProcessLostError(self._exit_reason(timed_out=time.monotonic() - started >= seconds, seconds=seconds))
        reply: Reply = json.loads(line)
        if "failure" in reply:
            raise RecogniserFailedError(reply["failure"])
        if "error" in reply:
            raise RecognitionError(reply["error"], hint=reply["hint"])
        return reply

    def close(self) -> None:
        """Kill the process, which has nothing to save, and close its pipes."""
        self._kill()
        for pipe in (self._requests, self._replies, self._log):
            try:
                pipe.close()
            except OSError:  # unsent data of a dead process
                continue

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _exchange(self, request: Mapping[str, object], clips: "Sequence[Samples]") -> bytes:
        """Return the line of the reply; without a line end if the process is gone."""
        try:
            self._requests.write(json.dumps(request).encode() + b"\n")
            for clip in clips:
                self._requests.write(clip.astype("<f4").tobytes())
            self._requests.flush()
            return self._replies.readline()
        except OSError:
            return b""

    def _exit_reason(self, *, timed_out: bool, seconds: float) -> str:
        code = self._process.wait()
        if timed_out:
            return f"Its process did not reply within {seconds:.0f} s and was stopped."
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 2000))
        lines = [line.strip() for line in self._log.read().decode("utf-8", "replace").split("\n")]
        last = next(filter(None, reversed(lines)), "no output")
        return f"Its process ended with {_exit_name(code)} ({last[:300]})."


def _exit_name(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def _parse_transcript(fields: Reply) -> Transcript:
    words = (Word(word["text"], Span(**word["span"]), word["confidence"]) for word in fields["words"])
    return Transcript(fields["text"], fields["confidence"], tuple(words))
