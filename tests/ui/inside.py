"""The page inside the process of a test, for tests that need no browser."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from utils.ui import app, gradio_server

SET = ("GRADIO_TEMP_DIR", "GRADIO_EXAMPLES_CACHE", "NO_PROXY")


@contextlib.contextmanager
def environment() -> Iterator[None]:
    """What the page sets in the environment is taken back at the end."""
    with pytest.MonkeyPatch.context() as patch:
        for name in SET:
            patch.setenv(name, os.environ.get(name, ""))
        yield


@contextlib.contextmanager
def launched(output: Path, port: int, who: gradio_server.Credentials | None = None) -> Iterator[app.Address]:
    """The page, answering on a port or on the next one that is free."""
    with environment():
        blocks, found = app.launch(output, host="127.0.0.1", port=port, share=False, who=who)
        try:
            yield found
        finally:
            blocks.close(verbose=False)
