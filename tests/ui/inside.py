"""The page inside the process of a test, for tests that need no browser."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from utils.server import page as page_server
from utils.ui import app


@contextlib.contextmanager
def environment() -> Iterator[None]:
    """What the page sets in the environment is taken back at the end."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GRADIO_TEMP_DIR", "GRADIO_EXAMPLES_CACHE", "NO_PROXY"):
            patch.setenv(name, os.environ.get(name, ""))
        yield


class Address(NamedTuple):
    url: str
    port: int
    token: str

    @property
    def headers(self) -> dict[str, str]:
        """What a program sends instead of the cookie of a browser."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    @property
    def cookie(self) -> str:
        return f"amharic-tts-{self.port}={self.token}"


@contextlib.contextmanager
def launched(output: Path, port: int, who: page_server.Credentials | None = None) -> Iterator[Address]:
    """The page, answering on a port or on the next one that is free."""
    with environment():
        page = app.launch(output, host="127.0.0.1", port=port, share=False, who=who)
        try:
            yield Address(page.url, page.port, page.token)
        finally:
            page.close()
