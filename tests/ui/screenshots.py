"""Write a picture of every tab, light and dark, wide and narrow, in both languages.

Run it as ``python -m tests.ui.screenshots FOLDER``.
"""

import argparse
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.ui.serving import Served, chromium, serving

WIDTHS = (1440, 360)
COLOURS = ("light", "dark")
LANGUAGES = ("English", "አማርኛ")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(words).folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, serving(Path(scratch) / "output") as served, chromium() as browser:
        prepare(browser, served)
        for width, colour, language in product(WIDTHS, COLOURS, LANGUAGES):
            take(browser, served, folder, width, colour, language)


def prepare(browser: Browser, served: Served) -> None:
    """Leave a run at work and one that is over, so that there is something to see."""
    page = browser.new_page()
    page.goto(served.url)
    open_tab(page, -1)
    for seconds, ends in ((1, "finished"), (600, "running")):
        page.locator("#start-rehearsal").wait_for()
        page.get_by_label("Seconds").fill(str(seconds))
        page.locator("#start-rehearsal").click()
        expect(page.locator("#run-facts")).to_contain_text(ends, timeout=20_000)
    page.close()


def take(browser: Browser, served: Served, folder: Path, width: int, colour: str, language: str) -> None:
    """Visit every tab once with these looks and write its picture."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if colour == "dark" else "light"
    )
    page = context.new_page()
    page.goto(served.url)
    expect(page.locator("#readings")).to_contain_text("GiB")
    page.get_by_label(language).check()
    code = "am" if language == "አማርኛ" else "en"
    for number in range(page.get_by_role("tab").count()):
        open_tab(page, number)
        fill(page)
        page.screenshot(path=folder / f"{number}-{code}-{width}-{colour}.png", full_page=True)
    context.close()


def open_tab(page: Page, number: int) -> None:
    page.get_by_role("tab").nth(number).click()
    page.wait_for_timeout(500)


def fill(page: Page) -> None:
    """Have the tab show what it shows when it is used."""
    if page.locator("#examine").is_visible():
        page.locator("#examine").click()
        expect(page.locator("#doctor table")).to_be_visible(timeout=120_000)
        page.wait_for_timeout(6000)  # until the messages have gone


if __name__ == "__main__":
    main()
