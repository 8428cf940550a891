"""Write pictures of all states of all tabs, in both languages, light and dark, wide and narrow; check each with axe.

Run it as ``python -m tests.ui.screenshots FOLDER [WORD...]``; it takes some minutes. With words, only states whose
names contain one of them are shown. The exit code is 1 if axe-core finds something serious.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, expect

from tests.ui.serving import Served, choose_language, chromium, opened, serving, settle
from tests.ui.test_ui_accessibility import AXE, violations
from tests.ui.test_ui_whole_way import WAY, click_through, field, open_tab
from utils.config import TrainConfig
from utils.core.processes import identity, machine
from utils.core.wording import LANGUAGES
from utils.studio import projects, runs, uploads
from utils.studio.paths import CONFIGS, Project
from utils.studio.run_state import State
from utils.studio.runs import Run, Status

SIZES = {1440: 900, 1024: 768, 390: 844}
PATIENCE = 240_000  # milliseconds
LONG = "ልጆቹ ጠዋት ወደ ትምህርት ቤት ሄዱ። " * 400

States = dict[str, tuple[str, Callable[[Page], None]]]  # the project, and how a state is reached


def main(folder: Path, words: Sequence[str]) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=60_000)
    found = []
    with tempfile.TemporaryDirectory() as scratch, serving(Path(scratch) / "output") as served, chromium() as browser:
        prepare(browser, served)
        states = {name: state for name, state in STATES.items() if not words or any(word in name for word in words)}
        for language in LANGUAGES:
            found += take(browser, served, folder, language, "light", states)
            found += take(browser, served, folder, language, "dark", states)
    sys.stdout.writelines(f"{problem}\n" for problem in found)
    return 1 if found else 0


def prepare(browser: Browser, served: Served) -> None:
    """Go the whole way once with the sample, and make a project of each other state."""
    with opened(browser, served) as seen:
        seen.page.set_default_timeout(60_000)
        clicks = click_through(seen.page, ("[data-act=sample]", "#data-run-facts", "finished"), *WAY)
        sys.stdout.write(f"Clicks from the first page to the sound of the fine-tuned sample: {clicks}\n")
    sample = served.project("sample")
    projects.create("empty", served.output)
    ready = projects.duplicate(sample, "ready", served.output)
    for folder in (ready.ready, *(run.folder for run in runs.list_runs(ready, "train"))):
        shutil.rmtree(folder)
    train(sample)
    endings: dict[str, tuple[Status, str]] = {
        "running": ("running", ""),
        "failed": ("failed", "The disk is full. Free at least 2 GB and press Resume."),
    }
    for name, (status, message) in endings.items():
        copy = projects.duplicate(sample, name, served.output)
        uploads.add_input(copy, "https://example.org/lecture")
        for run in runs.list_runs(copy):
            set_status(run, status, message)


def train(project: Project) -> None:
    """Train once more with sample sentences, which the preset of the sample leaves out."""
    config = TrainConfig.load(CONFIGS / "tiny_cpu.yaml")
    changes = {"num_epochs": 2, "sample_texts": "", "eval_step": 6, "output_path": str(project.root)}
    run = runs.start("train", config.model_copy(update=changes), project).run
    while run.current_state().status in runs.ACTIVE:
        time.sleep(0.5)


def set_status(run: Run, status: Status, message: str) -> None:
    """Make a run look like a running or failed one, halfway."""
    state = State(run.verb, status, time.time(), os.getpid(), identity(os.getpid()), machine(), time.time(), message)
    run.write_state(replace(state, message=message))
    lines = run.events.read_text(encoding="utf-8").splitlines(keepends=True)
    run.events.write_text("".join(lines[: len(lines) * 2 // 3]), encoding="utf-8")


def take(
    browser: Browser,
    served: Served,
    folder: Path,
    language: str,
    colour: Literal["light", "dark"],
    states: States,
) -> list[str]:
    """Visit every state in one language and colour, write its pictures, and return what axe-core finds."""
    found = []
    for name, (project, show) in states.items():
        with opened(browser, served) as seen:
            page = seen.page
            page.set_default_timeout(60_000)
            page.set_viewport_size({"width": 1440, "height": 900})
            page.emulate_media(color_scheme=colour)
            page.reload()
            settle(page)
            seen.complaints.clear()  # of requests that the reload broke off
            choose(page, language, project)
            show(page)
            page.add_script_tag(path=AXE)
            for width, height in SIZES.items():
                page.set_viewport_size({"width": width, "height": height})
                settle(page)
                page.screenshot(path=folder / f"{name}-{language}-{width}-{colour}.png", full_page=True)
                found += [f"{name} {language} {width} {colour}: {problem}" for problem in violations(page)]
                if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
                    found.append(f"{name} {language} {colour}: {wide} px wide on a screen of {width}")
            found += [f"{name} {language}: {complaint}" for complaint in seen.complaints]
    return found


def choose(page: Page, language: str, project: str) -> None:
    choose_language(page, language)
    page.locator("#project input").click()
    page.get_by_role("option", name=project, exact=True).click()
    settle(page)


def tab(name: str, *, advanced: bool = False) -> Callable[[Page], None]:
    def show(page: Page) -> None:
        open_tab(page, name)
        if advanced:
            page.locator(f"#{name}-advanced input").check()
        settle(page)

    return show


def panel(button: str) -> Callable[[Page], None]:
    return lambda page: page.locator(button).click()


import_view = panel("#data-import-button")


def review(page: Page) -> None:
    page.locator("#data-review-button").click()
    page.locator("#clips [data-clip]").first.click()
    expect(page.locator("#clip-editor audio")).to_be_visible()


def data_error(page: Page) -> None:
    page.locator("#sources [name=link]").fill("/no/such/folder")
    page.locator("#sources [data-act=add]").click()
    expect(page.locator("#sources .message.error")).to_be_visible()


def data_advanced(page: Page) -> None:
    import_view(page)
    tab("data", advanced=True)(page)


def invalid(page: Page) -> None:
    tab("training")(page)
    field(page, "num_epochs").fill("0")
    expect(page.locator("#train-errors li")).to_be_visible()


def unreadable(page: Page) -> None:
    tab("inference")(page)
    page.locator("#speech-text textarea").fill("ሰላም 漢字!")
    expect(page.locator("#counter .message.error")).to_be_visible()


def streaming(page: Page) -> None:
    tab("inference", advanced=True)(page)
    page.locator("#stream input").check()
    page.locator("#inference-tab .sheet [data-close]").click()
    page.locator("#speech-text textarea").fill(LONG)
    page.locator("#speak").click()
    expect(page.locator("#stream-player audio")).to_be_visible(timeout=PATIENCE)


STATES: States = {
    "data-empty": ("empty", tab("data")),
    "data-error": ("empty", data_error),
    "data-running": ("running", import_view),
    "data-failed": ("failed", import_view),
    "data-finished": ("sample", import_view),
    "data-advanced": ("sample", data_advanced),
    "data-review": ("sample", review),
    "training-empty": ("empty", tab("training")),
    "training-ready": ("ready", tab("training")),
    "training-error": ("ready", invalid),
    "training-running": ("running", tab("training")),
    "training-failed": ("failed", tab("training")),
    "training-finished": ("sample", tab("training")),
    "training-advanced": ("sample", tab("training", advanced=True)),
    "inference-empty": ("empty", tab("inference")),
    "inference-error": ("sample", unreadable),
    "inference-running": ("sample", streaming),
    "inference-finished": ("sample", tab("inference")),
    "inference-advanced": ("sample", tab("inference", advanced=True)),
    "system": ("sample", panel("#open-system")),
    "projects": ("sample", panel("#manage-projects")),
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures are written")
    parser.add_argument("words", nargs="*", help="only states whose names contain one of these words")
    arguments = parser.parse_args()
    sys.exit(main(arguments.folder, arguments.words))
