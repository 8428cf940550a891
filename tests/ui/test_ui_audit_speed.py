"""The page stays quick however much there is: a log of a gigabyte, a hundred runs, 50 000 clips."""

import time
import timeit
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import gradio as gr
import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.ui import auditing
from tests.ui.serving import Served, serving
from tests.ui.settling import settle
from utils import runs
from utils.core.paths import Project
from utils.dataset import metadata
from utils.dataset.clip import Clip, Scores, Source, Span
from utils.dataset.store import Store

pytestmark = pytest.mark.slow

POLL_SECONDS = 0.3
CLIPS, RUNS = 50_000, 100
WINDOWS, ANSWERS = 10, 12  # the answers of about three ticks each
VERBS = ("train", "prepare", "rehearse")
LAST = b'\n{"kind": "progress", "step": 1, "total": 2, "time": 1.0}\n'


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one project that has become large."""
    output = tmp_path_factory.mktemp("output")
    place = Project(output / "default")
    make_runs(place)
    make_dataset(place)
    return output


def make_runs(place: Project) -> None:
    for number in range(RUNS):
        run = runs.Run(place.runs / f"20260101-{number:06}-{VERBS[number % len(VERBS)]}")
        run.folder.mkdir(parents=True)
        run.write_state(runs.State(VERBS[number % len(VERBS)], runs.Status.STOPPED, created=time.time()))
    for run in runs.list_runs(place)[: len(VERBS)]:
        for path in (run.log, run.events):
            with path.open("wb") as file:
                file.truncate(1 << 30)  # sparse: it takes no space
                file.seek(0, 2)
                file.write(LAST)


def make_dataset(place: Project) -> None:
    (place.dataset / "wavs").mkdir(parents=True)
    scores = Scores(0.9, 25.0, 0.0, -20.0, 12.0)
    clips = [
        Clip(
            f"c{n:06}", "r", "/talk.wav", Span(n, n + 5.0), "speaker", "ሰላም ለዓለም", f"wavs/c{n:06}.wav", f"h{n}", scores
        )
        for n in range(CLIPS)
    ]
    Store(place.dataset).add(Source("r", "/talk.wav", 1, 1, CLIPS * 5.0), clips)
    for clip in clips:
        (place.dataset / clip.audio).touch()
    rows = "".join(f"{clip.audio}|{clip.text}|{clip.speaker}\n" for clip in clips)
    for name in metadata.FILES.values():
        (place.dataset / name).write_text(f"audio_file|text|speaker_name\n{rows}", encoding="utf-8")


def test_every_poll_is_answered_within_300_milliseconds(blocks: gr.Blocks) -> None:
    clocks = {number for number, block in blocks.blocks.items() if isinstance(block, gr.Timer)}
    polls = [event for event in auditing.handlers(blocks) if any(target in clocks for target, _ in event.targets)]
    assert len(polls) >= 5
    slow = {}
    for event in polls:
        placed, named = auditing.called_with(event)
        answer = partial(auditing.function_of(event), *placed, **named)
        answer()  # the first one reads what the others remember
        time.sleep(0.2)  # for what is counted in the background
        best = min(timeit.repeat(answer, number=1, repeat=3))
        if best > POLL_SECONDS:
            slow[auditing.name_of(event)] = round(best, 3)
    assert slow == {}


@pytest.mark.browser
@pytest.mark.alone
def test_the_browser_sees_answers_and_stays_awake(browser: Browser, output: Path) -> None:
    with serving(output, "--port", "7960") as served:
        page = browser.new_page()
        worst = []
        for took, late in watched(page, served):
            worst.append(max(median(took), median(late)))
            if worst[-1] < POLL_SECONDS:  # at first is read what is read once, and a neighbour may have a busy minute
                break
        page.close()
    assert min(worst) < POLL_SECONDS, worst


def watched(page: Page, served: Served) -> Iterator[tuple[list[float], list[float]]]:
    """Leave the Data tab open for some windows of ticks.

    Yields:
        The seconds of the page's requests in a window, and how late its own clock was.
    """
    answered: list[float] = []

    def note(request: Request) -> None:
        timing: Any = request.timing
        if "/gradio_api/" in request.url and timing["responseStart"] > 0:
            answered.append((timing["responseStart"] - timing["requestStart"]) / 1000)

    page.goto(served.url)
    expect(page.locator("#readings")).to_contain_text("GiB", timeout=60_000)
    settle(page)
    page.on("requestfinished", note)
    page.evaluate(
        "() => { window.late = []; let last = performance.now(); setInterval(() => {"
        " const now = performance.now(); window.late.push(now - last - 100); last = now; }, 100); }"
    )
    for _ in range(WINDOWS):
        while len(answered) < ANSWERS:
            page.wait_for_event("requestfinished")
        late = page.evaluate("window.late.splice(0)")
        yield list(answered), [milliseconds / 1000 for milliseconds in late]
        answered.clear()
