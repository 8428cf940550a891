"""A real page in a process of its own, and a real browser that never downloads anything."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.serving import CHROMIUM, Seen, Served, chromium, opened, serving


@pytest.fixture(scope="module", autouse=True)
def usual_patience() -> None:
    """As long as an action: a child process takes seconds on a busy machine."""
    expect.set_options(timeout=20_000)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "output", "--port", "7900") as page:
        yield page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip("Debian's chromium is not installed")
    with chromium() as found:
        yield found


@pytest.fixture
def seen(browser: Browser, served: Served) -> Iterator[Seen]:
    """The page open in a fresh browser profile, 1440 pixels wide."""
    with opened(browser, served) as seen:
        yield seen
