"""Measure the page of one or more checkouts in turn: when it is painted, and what each tab holds.

Run it as ``python -m tools.page_figures ROUNDS CHECKOUT...``. The folder of the projects is
empty, the window 1440 x 900.
"""

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Page, expect

from tests.ui.serving import Served, chromium, settle

TABS = ("Data", "Fine-tuning", "Inference")
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
COUNT = """() => {
  const panel = [...document.querySelectorAll("[role=tabpanel]")].find(panel => panel.checkVisibility());
  const controls = [...panel.querySelectorAll("input, textarea, select, button")];
  const visible = controls.filter(control => control.checkVisibility());
  return [visible.length, document.documentElement.scrollHeight, document.querySelectorAll("*").length];
}"""


class Checkout(Served):
    """The page of another checkout."""

    def __init__(self, root: Path, output: Path, port: int) -> None:
        self.root = root
        output.mkdir()
        super().__init__(output, "--port", str(port))


@contextlib.contextmanager
def fresh(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1440, "height": 900})  # in a profile of its own, without a cache
    yield page
    page.close()


def times(browser: Browser, served: Served) -> tuple[float, float]:
    """Return the seconds until the first contentful paint, and until the tabs are visible."""
    with fresh(browser) as page:
        began = time.perf_counter()
        page.goto(served.link)
        expect(page.get_by_role("tab", name="Inference")).to_be_visible(timeout=60_000)
        seconds = time.perf_counter() - began
        return float(page.evaluate(PAINT)), seconds


def holdings(browser: Browser, served: Served, tab: str) -> list[float]:
    """Return visible controls of a tab, the page's height, its nodes, and the heap of scripts in MB."""
    with fresh(browser) as page:
        page.goto(served.link)
        page.locator(f"#steps [role=tab]:has-text('{tab}')").click()
        expect(page.locator("#readings")).to_contain_text("GiB", timeout=60_000)
        settle(page)
        devtools = page.context.new_cdp_session(page)
        devtools.send("HeapProfiler.collectGarbage")
        used = devtools.send("Runtime.getHeapUsage")["usedSize"]
        return [*page.evaluate(COUNT), round(used / 1e6, 1)]


def main(rounds: int, roots: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as scratch, chromium() as browser, contextlib.ExitStack() as ends:
        pages = {}
        for number, root in enumerate(roots):
            pages[root] = Checkout(root.resolve(), Path(scratch) / str(number), 7900 + 10 * number)
            ends.callback(pages[root].kill)
        for served in pages.values():
            times(browser, served)  # the first page of a server is slow
        measured = {root: list[tuple[float, float]]() for root in roots}
        for _ in range(rounds):
            for root, served in pages.items():
                measured[root].append(times(browser, served))
        for root, served in pages.items():
            paint, tabs = zip(*measured[root], strict=True)
            sys.stdout.write(
                f"{root}: first paint {min(paint):.2f} / {median(paint):.2f} s, "
                f"tabs visible {min(tabs):.2f} / {median(tabs):.2f} s (best / median of {rounds})\n"
            )
            for tab in TABS:
                controls, height, nodes, heap = holdings(browser, served, tab)
                sys.stdout.write(f"  {tab}: {controls} controls, {height} px, {nodes} nodes, {heap} MB of heap\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", type=int, help="how often each page is opened")
    parser.add_argument("checkouts", type=Path, nargs="+", help="folders of the versions to compare")
    arguments = parser.parse_args()
    main(arguments.rounds, arguments.checkouts)
