"""Write a picture of every tab in both languages, light and dark, wide and narrow, of a project with a voice.

Run it as ``python -m tests.ui.screenshots FOLDER``; it takes some minutes.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.ui.serving import Served, chromium, opened, serving, settle
from tests.ui.test_ui_whole_way import PATIENCE, choose_tiny, facts, open_tab, open_training
from utils.ui.i18n import LANGUAGES

SIZES = {1440: 900, 360: 800}
TABS = ("data", "training", "inference")
QUICK = {"num_epochs": "2", "batch_size": "2", "save_step": "4", "eval_step": "4"}  # enough for a curve


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=60_000)
    with tempfile.TemporaryDirectory() as scratch, serving(Path(scratch) / "output") as served, chromium() as browser:
        prepare(browser, served)
        for language in LANGUAGES:
            take(browser, served, folder, language)


def prepare(browser: Browser, served: Served) -> None:
    """Go the whole way once: a dataset, a training of the tiny base, its model, its voice."""
    with opened(browser, served) as seen:
        page = seen.page
        page.set_default_timeout(60_000)
        page.locator("#sample-project").click()
        expect(page.locator("#project input")).to_have_value("sample")
        expect(page.locator("#data-run-facts")).to_contain_text("finished", timeout=PATIENCE)
        open_training(page)
        choose_tiny(page, **QUICK)
        page.locator("#train").click()
        expect(facts(page)).to_contain_text("finished", timeout=PATIENCE)
        page.locator("#optimize").click()
        expect(page.locator("#optimized")).to_contain_text("model", timeout=PATIENCE)
        open_tab(page, "inference")
        page.locator("#speak").click()
        expect(page.locator("#speak-status")).to_contain_text("s of audio", timeout=PATIENCE)


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
                expect(page.locator("#clip-view audio")).to_be_visible()
            if name == "inference":
                expect(page.locator("#take-facts")).to_be_visible()
            settle(page)
            for width, height in SIZES.items():
                page.set_viewport_size({"width": width, "height": height})
                for colour in ("light", "dark"):
                    page.evaluate("dark => document.body.classList.toggle('dark', dark)", colour == "dark")
                    settle(page)
                    page.screenshot(path=folder / f"{name}-{language}-{width}-{colour}.png", full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
