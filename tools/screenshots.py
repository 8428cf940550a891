"""Write a picture of every tab in both languages, light and dark, wide and narrow, of a project with a voice.

Run it as ``python -m tools.screenshots FOLDER``; it takes some minutes.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.ui.serving import Served, chromium, opened, serving, settle
from tests.ui.test_ui_whole_way import WAY, click_through, open_tab
from utils.ui.i18n import LANGUAGES

SIZES = {1440: 900, 360: 800}
TABS = ("data", "training", "inference")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=60_000)
    with tempfile.TemporaryDirectory() as scratch, serving(Path(scratch) / "output") as served, chromium() as browser:
        prepare(browser, served)
        for language in LANGUAGES:
            take(browser, served, folder, language)


def prepare(browser: Browser, served: Served) -> None:
    """Go the whole way once, from an empty page to the sound of a fine-tuned voice, without typing."""
    with opened(browser, served) as seen:
        page = seen.page
        page.set_default_timeout(60_000)
        clicks = click_through(page, ("[data-act=sample]", "#data-run-facts", "finished"), *WAY)
        sys.stdout.write(f"Clicks from the first page to the sound of the fine-tuned sample: {clicks}\n")


def take(browser: Browser, served: Served, folder: Path, language: str) -> None:
    """Visit every tab in one language and write its four pictures."""
    with opened(browser, served) as seen:
        page = seen.page
        page.set_default_timeout(60_000)
        page.locator("#project input").click()
        page.get_by_role("option", name="sample").click()
        page.get_by_label(LANGUAGES[language]).check()
        expect(page.locator("html")).to_have_attribute("lang", language)
        for name in TABS:
            open_tab(page, name)
            if name == "data":
                page.locator("#clips [data-clip]").first.click()
                expect(page.locator("#clip-editor audio")).to_be_visible()
            if name == "inference":
                expect(page.locator("#takes .cards")).to_be_visible()
            settle(page)
            for width, height in SIZES.items():
                page.set_viewport_size({"width": width, "height": height})
                for colour in ("light", "dark"):
                    page.evaluate("dark => document.body.classList.toggle('dark', dark)", colour == "dark")
                    settle(page)
                    page.screenshot(path=folder / f"{name}-{language}-{width}-{colour}.png", full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
