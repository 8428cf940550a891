"""A real page in a process of its own, and a tab of a real browser that notes what goes wrong in it."""

import contextlib
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, ConsoleMessage, Page, Request, Route, expect, sync_playwright

from tests.program import START_SECONDS, Program
from utils.studio import runs
from utils.studio.paths import Project
from utils.studio.projects import TRASH

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
QUIET = 400  # milliseconds without a change
SETTLED = """quiet => new Promise(done => {
  const over = () => { watcher.disconnect(); done(); };
  let timer = setTimeout(() => over(), quiet);
  const watcher = new MutationObserver(changes => {
    if (changes.every(change => change.target.parentElement?.closest("#readings"))) return;
    clearTimeout(timer);
    timer = setTimeout(over, quiet);
  });
  watcher.observe(document.body, {childList: true, subtree: true, characterData: true});
})"""
GRADIO_WARNINGS = (
    "Method not implemented.",
    "The input spec uses Vega-Lite",
    "does not work with band scale",
    "Infinite extent for field",
)  # of its upload and its charts


class Served(Program):
    """The page, started as a person starts it; what it prints goes to a file beside the folder of the projects."""

    def __init__(self, output: Path, *words: str) -> None:
        self.output = output
        self.command = self.command_line(*words)
        self.start()

    def command_line(self, *words: str) -> list[str]:
        return ["xtts_demo.py", "--output", str(self.output), *words]

    def start(self) -> None:
        self.launch(self.output.with_suffix(".log"), *self.command)
        self.link = self.wait_for(r"page is at (\S+)\n")
        self.url = self.link.partition("/?")[0]

    def restart(self, page: Page) -> None:
        """Kill the page and start it again; an open tab reloads by itself, as gradio has it."""
        with page.expect_event("load", timeout=START_SECONDS * 1000):
            self.kill()
            self.start()

    def project(self, name: str = "default") -> Project:
        return Project(self.output / name)


class OneTab(Served):
    """The page with one tab alone, which starts sooner; its words are the tab, the port and options."""

    def command_line(self, *words: str) -> list[str]:
        tab, *rest = words
        return ["-m", "tests.ui.one_tab", tab, str(self.output), *rest]


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's browser; Playwright is never asked to download one."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield browser
        browser.close()


@contextlib.contextmanager
def serving(output: Path, *words: str, kind: type[Served] = Served) -> Iterator[Served]:
    """The page for one folder; what it started ends with it."""
    output.mkdir(exist_ok=True)
    page = kind(output, *words)
    try:
        yield page
    finally:
        page.kill()
        stop_runs(output)


def one_tab(tab: str, port: str) -> Any:
    """Return a fixture of the page with one tab, for a whole module: its start takes longer than most tests."""

    @pytest.fixture(scope="module")
    def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
        with serving(tmp_path_factory.mktemp("page") / "output", tab, port, kind=OneTab) as page:
            yield page

    return served


def emptied(output: Path) -> None:
    """Take every project away, and leave what the page itself keeps beside them."""
    stop_runs(output)
    for folder in output.iterdir():
        if not folder.name.startswith(".") or folder.name == TRASH:
            # moved away first: a page that still reads the database would create a journal meanwhile
            shutil.rmtree(folder.rename(output.parent / f"deleted-{uuid.uuid4()}"))


def stop_runs(output: Path) -> None:
    for folder in output.iterdir():
        for run in runs.list_runs(Project(folder)):
            runs.stop_now(run, grace=0.5)


@dataclass
class Seen:
    """One tab of the browser, with everything that went wrong in it."""

    page: Page
    origin: str
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)  # requests that left the origin

    def note_message(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not any(own in message.text for own in GRADIO_WARNINGS):
            self.complaints.append(f"{message.type}: {message.text}")

    def note_request(self, request: Request) -> None:
        if not request.url.startswith((self.origin, "data:", "blob:")):
            self.strangers.append(request.url)


@contextlib.contextmanager
def opened(browser: Browser, served: Served) -> Iterator[Seen]:
    """The page in a browser profile that remembers nothing but gradio's scripts, which take seconds to read."""
    idle = (context for context in browser.contexts if not context.pages)
    context = next(idle, None) or browser.new_context(viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    page.context.clear_cookies()
    page.context.clear_permissions()
    devtools = page.context.new_cdp_session(page)
    devtools.send("Storage.clearDataForOrigin", {"origin": served.url, "storageTypes": "all"})
    devtools.detach()
    page.set_default_timeout(20_000)
    seen = Seen(page, served.url)
    page.on("console", seen.note_message)
    page.on("pageerror", lambda error: seen.complaints.append(f"exception: {error}"))
    page.on("request", seen.note_request)
    page.goto(served.link)
    expect(page.locator("#readings")).to_contain_text("GiB free", timeout=60_000)  # the first page of a server is slow
    yield seen
    for tab in context.pages:
        tab.close()


def listen(page: Page) -> None:
    """Note what is played from now on: a short sound has ended before a busy machine looks for its pause button."""
    page.evaluate("""() => {
      const play = HTMLMediaElement.prototype.play;
      HTMLMediaElement.prototype.play = function () { window.heard = this; return play.call(this); };
    }""")


def expect_sound(page: Page) -> None:
    page.wait_for_function("() => window.heard?.played.length > 0")


@contextlib.contextmanager
def late_answers(page: Page, text: str) -> Iterator[list[tuple[Route, APIResponse]]]:
    """Hold back all answers with a text, which are collected, until the block ends."""
    held: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        response = route.fetch()
        if text in response.text():
            held.append((route, response))
        else:
            route.fulfill(response=response)

    page.route("**/run/**", hold)
    yield held
    for route, response in held:
        route.fulfill(response=response)
    page.unroute_all(behavior="ignoreErrors")


def choose_language(page: Page, language: str) -> None:
    """Choose the language of the page in its settings."""
    page.locator("#open-system").click()
    page.locator(f"#language input[value={language}]").check()
    expect(page.locator("html")).to_have_attribute("lang", language)
    page.locator("#close-system").click()
    expect(page.locator("#drawer")).to_be_hidden()


def settle(page: Page) -> None:
    """Wait until nothing has changed for a while, the readings apart, which change with every tick."""
    page.evaluate(SETTLED, QUIET)
