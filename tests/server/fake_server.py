"""A real server in its own process with a fake model that speaks tones; words in the text trigger errors."""

import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import httpx2 as httpx
import numpy as np

from tests.worded import worded
from utils.config import SpeechConfig
from utils.core.errors import TextError
from utils.core.paths import ROOT
from utils.media.audio import Samples
from utils.speech.planning import SpeechPlan

if TYPE_CHECKING:
    from utils.speech.session import Check
    from utils.speech.synthesizer import Synthesizer

START_SECONDS = 60.0
THIS = "tests.server.fake_server"
CHUNK = np.full(4800, 0.25, np.float32)  # a fifth of a second
SPEECH = "/v1/audio/speech"
SLOW, ENDLESS, UNREADABLE, BROKEN = "slow", "endless", "☃", "broken"


class FakeModel:
    """Speaks one tone per word, as loud as it is fast."""

    def __init__(self, check: "Check") -> None:
        self.check = check

    def voices(self) -> tuple[str, ...]:
        return ("Abebe", "Almaz")

    def stream(self, text: str | SpeechPlan, config: SpeechConfig) -> Iterator[Samples]:
        assert isinstance(text, str)
        if UNREADABLE in text:
            raise worded(TextError, f"/secret/place/vocab.json has no symbol for {UNREADABLE}.", "Write it in words.")
        for word in text.split() * (10_000 if ENDLESS in text else 1):
            self.check()
            if SLOW in text or ENDLESS in text:
                time.sleep(0.02)
            if word == BROKEN:
                raise ZeroDivisionError(f"while speaking {word}")
            yield CHUNK * np.float32(config.speed / 2)

    def utterances(self, text: str | SpeechPlan, config: SpeechConfig) -> Iterator[SimpleNamespace]:
        for chunk in self.stream(text, config):
            flags = ("too short",) if "doubtful" in str(text) else ()
            yield SimpleNamespace(samples=chunk, pause=0.5, flags=flags)


class Served:
    """The server, started with words as on the command line."""

    def __init__(self, *words: str, environment: dict[str, str] | None = None, module: str = THIS) -> None:
        command = [sys.executable, "-m", *module.split(), "--port", "0", *words]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
        )
        self.lines: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.url = self.wait_for(r"served at (\S+)/v1/audio/speech")
        self.http = httpx.Client(base_url=self.url, timeout=120, trust_env=False)

    def wait_for(self, pattern: str) -> str:
        """Wait until the output has a pattern, and return its group."""
        deadline = time.monotonic() + START_SECONDS
        while not (match := re.search(pattern, output := "".join(self.lines))):
            assert time.monotonic() < deadline, output
            time.sleep(0.01)
        return match[1]

    def exit_code(self, within: float) -> int:
        code = self.process.wait(within)
        self._listener.join()  # then ``lines`` has the whole output
        return code

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    def speak(self, text: str = "one two", **more: object) -> httpx.Response:
        return self.http.post(SPEECH, json={"input": text, **more})

    @contextlib.contextmanager
    def open_request(self, text: str, **more: object) -> Iterator[socket.socket]:
        """Send a request and read nothing of its response."""
        content = json.dumps({"input": text, **more})
        address = urlsplit(self.url)
        head = f"POST {SPEECH} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=30) as line:
            line.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n{content}".encode())
            yield line

    def counts(self) -> dict[str, object]:
        return dict(self.http.get("/health").json())

    def wait_until(self, *, within: float = START_SECONDS, **wanted: object) -> None:
        """Wait until the health endpoint reports these values."""
        deadline = time.monotonic() + within
        while not wanted.items() <= (counts := self.counts()).items():
            assert time.monotonic() < deadline, counts
            time.sleep(0.01)

    def close(self) -> None:
        self.http.close()
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def served(*words: str, environment: dict[str, str] | None = None, module: str = THIS) -> Iterator[Served]:
    with contextlib.closing(Served(*words, environment=environment, module=module)) as server:
        server.wait_until(status="ok")
        yield server


if __name__ == "__main__":
    from utils.__main__ import call
    from utils.cli import serve

    def load(config: SpeechConfig, check: "Check") -> "Synthesizer":
        if config.model == "late":
            time.sleep(1.0)
        if config.model == "missing":
            raise worded(TextError, "There is no such model.", "Name another.")
        return cast("Synthesizer", FakeModel(check))

    serve.load = load
    sys.exit(call("serve", sys.argv[1:]))
