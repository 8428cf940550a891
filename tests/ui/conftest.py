"""A real page in a process of its own, and a real browser that never downloads anything."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.serving import CHROMIUM, Seen, Served, chromium, serving, watch


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
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(20_000)
    seen = watch(page, served.url)
    page.goto(served.url)
    expect(page.locator("#readings")).to_contain_text("GiB free")
    yield seen
    context.close()
