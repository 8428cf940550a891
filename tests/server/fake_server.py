"""A real server in its own process with a fake model that speaks tones; words in the text trigger errors."""

import contextlib
import json
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import httpx2 as httpx
import numpy as np

from tests.program import START_SECONDS, Program
from tests.waiting import wait_for
from tests.worded import worded
from utils.config import SpeechConfig
from utils.core.errors import TextError
from utils.media.audio import Samples
from utils.speech.planning import SpeechPlan

if TYPE_CHECKING:
    from utils.speech.session import Check
    from utils.speech.synthesizer import Synthesizer

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


class Served(Program):
    """The server, started with words as on the command line."""

    def __init__(self, *words: str, environment: dict[str, str] | None = None, module: str = THIS) -> None:
        self.folder = tempfile.TemporaryDirectory()
        log = Path(self.folder.name) / "log"
        self.launch(log, "-m", *module.split(), "--port", "0", *words, environment=environment)
        self.url = self.wait_for(r"served at (\S+)/v1/audio/speech")
        self.http = httpx.Client(base_url=self.url, timeout=120, trust_env=False)

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
        wait_for(lambda: wanted.items() <= self.counts().items(), within, self.counts)

    def close(self) -> None:
        self.http.close()
        self.kill()


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
