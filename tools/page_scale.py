"""Measure how long the page takes with a large project, against a small one in the same run.

Run it as ``python -m tools.page_scale [ROUNDS]``. The large project has 50,000 clips in use, 200 runs, and logs of a
gigabyte; the small one 225 clips, three runs and logs of a kilobyte.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, expect

from tests.ui.serving import Served, chromium, opened, serving, settle
from tests.ui.test_ui_audit_speed import CLIPS, RUNS, make_dataset, make_runs
from tests.ui.test_ui_whole_way import open_tab
from utils.studio.paths import Project

SIZES = {"small": (225, 3, 1024), "large": (CLIPS, RUNS, 1 << 30)}  # clips in use, runs, bytes of a log

Step = Callable[[Page], None]


def main(rounds: int) -> None:
    expect.set_options(timeout=60_000)
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "output"
        for name, (clips, count, size) in SIZES.items():
            make_runs(Project(output / name), count, size)
            make_dataset(Project(output / name).dataset, clips)
        taken: dict[tuple[str, str], list[float]] = {}
        with serving(output) as served:
            for _ in range(rounds + 1):  # the first round reads what is remembered afterwards
                for name in SIZES:
                    for step, seconds in measure(served, name).items():
                        taken.setdefault((step, name), []).append(seconds)
    for step in dict.fromkeys(step for step, _ in taken):
        small, large = (taken[step, name][1:] for name in SIZES)
        shown = (f"{min(times):.2f} / {median(times):.2f} s" for times in (small, large))
        ratio = min(large) / min(small)
        sys.stdout.write(
            f"{step}: small {next(shown)}, large {next(shown)} (best / median of {rounds}), {ratio:.1f} x\n"
        )


def measure(served: Served, name: str) -> dict[str, float]:
    """Return the seconds of each step from the click until its result is in sight."""
    with chromium() as browser, opened(browser, served) as seen:
        page = seen.page
        page.set_default_timeout(60_000)
        page.locator("#project input").click()
        page.get_by_role("option", name=name, exact=True).click()
        expect(page.locator("#pager")).to_contain_text("Page 1")
        settle(page)
        seconds = {}
        for step, act in STEPS.items():
            began = time.perf_counter()
            act(page)
            seconds[step] = time.perf_counter() - began
            settle(page)
        return seconds


def reload(page: Page) -> None:
    page.reload()
    expect(page.locator("#pager")).to_contain_text("Page 1")


def turn(page: Page) -> None:
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.locator("#pager")).to_contain_text("Page 2")


def open_clip(page: Page) -> None:
    page.locator("#clips [data-clip]").first.click()
    expect(page.locator("#clip-editor textarea[name=text]")).to_be_visible()


def edit(page: Page) -> None:
    page.locator("#clip-editor textarea[name=text]").fill(f"አዲስ {time.time_ns()}")
    page.locator("#clip-editor [data-act=save_text]").click()
    expect(page.locator("#review [data-act=undo]")).to_have_text("Undo text edit")


def undo(page: Page) -> None:
    page.locator("#review [data-act=undo]").click()
    expect(page.locator("#review [data-act=undo]")).to_be_hidden()


def search(page: Page) -> None:
    before = page.locator("#pager").inner_text()
    page.locator("#review [name=search]").fill("ቡና")
    expect(page.locator("#pager")).not_to_have_text(before)


def training(page: Page) -> None:
    open_tab(page, "training")
    expect(page.locator("#training-run-facts")).to_contain_text("stopped")


STEPS: dict[str, Step] = {
    "open the page until the clips are listed": reload,
    "next page of clips": turn,
    "open a clip": open_clip,
    "change its text": edit,
    "undo": undo,
    "search": search,
    "open Fine-tuning with its runs": training,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", type=int, nargs="?", default=3, help="how often each step is measured (default: 3)")
    main(parser.parse_args().rounds)
