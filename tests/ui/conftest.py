"""A page: built here, or in a process of its own with a real browser that never downloads anything."""

from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import pytest
from playwright.sync_api import Browser, expect

from tests.ui import inside
from tests.ui.serving import CHROMIUM, Seen, Served, chromium, emptied, opened, serving
from utils.ui import app


@pytest.fixture(scope="module", autouse=True)
def usual_patience() -> None:
    """As long as an action: a child process takes seconds on a busy machine."""
    expect.set_options(timeout=30_000)  # milliseconds


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("output")


@pytest.fixture(scope="module")
def blocks(output: Path) -> Iterator[gr.Blocks]:
    """The whole page, built and not launched."""
    with inside.environment():
        yield app.build(output)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The whole page, for all tests of it: its start takes longer than most of them."""
    with serving(tmp_path_factory.mktemp("whole") / "output", "--port", "7900") as page:
        yield page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip("Debian's chromium is not installed")
    with chromium() as browser:
        yield browser


@pytest.fixture
def seen(browser: Browser, served: Served) -> Iterator[Seen]:
    """The page without any project, open in a fresh browser profile."""
    emptied(served.output)
    with opened(browser, served) as seen:
        yield seen
