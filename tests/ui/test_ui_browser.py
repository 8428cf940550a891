"""The page in a real browser: the header, the System drawer, and what must not get lost."""

import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.run_kinds.count import CountConfig
from tests.ui.data_folders import many_clips
from tests.ui.serving import Seen, Served, choose_language, late_answers, one_tab, serving, settle
from utils.core.processes import identity, machine
from utils.core.wording import rows as phrases
from utils.dataset.report import describe_dataset
from utils.studio import projects, runs
from utils.studio.run_state import State
from utils.ui import dataset_report

pytestmark = pytest.mark.browser

SCROLLED = """() => [...document.querySelectorAll(':is(#bar, h1, h2, h3), #bar *')]
  .filter(box => box.scrollHeight > box.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(box).overflowY))
  .map(box => box.outerHTML.slice(0, 80))"""

MARGINS = """() => {
  const [title, section] = ["h1", "h2"].map(name => document.querySelector(name).getBoundingClientRect());
  return [title.left, section.top - title.bottom];
}"""

NOTE_NOTIFICATIONS = """() => { window.notified = []; window.Notification = class extends Notification {
  constructor(title, options) { super(title, options); window.notified.push(options.body); } }; }"""


served = one_tab("data", "7900")


@pytest.mark.alone
def test_the_whole_page_paints_within_three_seconds(browser: Browser, tmp_path: Path) -> None:
    durations = []
    with serving(tmp_path / "output", "--port", "7901") as served:
        for _ in range(3):
            page = browser.new_page()
            began = time.perf_counter()
            page.goto(served.link)
            expect(page.get_by_role("tab", name="Inference")).to_be_visible()
            durations.append(time.perf_counter() - began)
            page.close()
    assert min(durations) < 3  # the best: other programs share the machine


def test_a_run_is_started_watched_stopped_resumed_and_deleted(seen: Seen, served: Served) -> None:
    page, facts = seen.page, seen.page.locator("#run-facts")

    def press(action: str) -> None:
        page.locator(f"#runs [data-act={action}]").click()

    runs.start("count", CountConfig(seconds=600), served.project())
    page.locator("#open-system").click()
    expect(facts).to_contain_text("running")
    expect(facts).to_contain_text(re.compile(r"count\s+\d+ %"))
    expect(page.locator("#runs [data-act=delete]")).to_be_hidden()
    for action, state in (("stop_and_save", "Stopped and saved."), ("resume", "running"), ("stop_now", "stopped")):
        press(action)
        if action == "stop_now":
            page.locator("#confirm").click()
        expect(facts).to_contain_text(state)
    press("delete")
    expect(page.locator("#question")).to_be_visible()
    page.locator("#confirm").click()
    expect(facts).to_be_hidden()
    assert runs.list_runs(served.project()) == []
    page.keyboard.press("Escape")
    expect(page.locator("#drawer")).to_be_hidden()
    assert seen.complaints == []
    assert seen.strangers == []


def test_the_language_is_remembered(seen: Seen) -> None:
    page = seen.page
    choose_language(page, "am")
    expect(page.get_by_role("tab", name=phrases()["data.tab"].amharic)).to_be_visible()
    expect(page.locator("#readings")).to_contain_text("ማህደረ ትውስታ")
    settle(page)  # a reload breaks off what is still asked for, and the console says so
    page.reload()
    expect(page.locator("#open-system")).to_have_text(phrases()["common.settings"].amharic)
    page.locator("#open-system").click()
    expect(page.get_by_role("button", name=phrases()["system.run_diagnostics"].amharic)).to_be_visible()
    assert seen.complaints == []


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_the_bar_is_at_most_56_pixels_high_without_a_scrollbar(seen: Seen, width: int) -> None:
    page = seen.page
    page.set_viewport_size({"width": width, "height": 844})
    page.evaluate("document.body.classList.add('dark')")
    settle(page)
    assert page.evaluate(SCROLLED) == []
    assert page.evaluate("document.getElementById('bar').offsetHeight") <= 56
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_open_project_is_open_again_after_a_restart(seen: Seen, served: Served) -> None:
    for name in ("first", "second"):
        projects.create(name, served.output)
    page, other = seen.page, seen.page.context.new_page()
    other.goto(seen.origin)
    for tab, name in ((page, "second"), (other, "first")):
        expect(tab.locator("#readings")).to_contain_text("GiB free")
        tab.locator("#project input").click()
        tab.get_by_role("option", name=name).click()
        settle(tab)
    served.restart(page)
    expect(page.locator("#project input")).to_have_value("second")


def test_a_page_without_answers_reloads_after_a_restart(seen: Seen, served: Served) -> None:
    settle(seen.page)
    seen.page.route("**/run/**", lambda _: None)  # as when the program ended while scripts were loading
    seen.page.wait_for_timeout(2500)  # the clocks wait for their answers
    served.restart(seen.page)
    seen.page.unroute_all(behavior="ignoreErrors")


def test_what_was_chosen_stays_when_the_page_is_answered_late(seen: Seen, served: Served) -> None:
    page = seen.page
    for name in ("first", "second"):
        projects.create(name, served.output)
    served.restart(page)
    expect(page.locator("#project input")).to_have_value("first")
    settle(page)
    with late_answers(page, '"second"') as held:
        page.reload()
        while not held:
            page.wait_for_timeout(100)
        page.locator("#project input").click()
        page.get_by_role("option", name="second").click()
        expect(page.locator("#project input")).to_have_value("second")
        choose_language(page, "am")
    settle(page)
    page.wait_for_timeout(500)
    expect(page.locator("#project input")).to_have_value("second")
    expect(page.get_by_role("tab", name=phrases()["data.tab"].amharic)).to_be_visible()


def test_the_browser_notifies_when_a_training_ends(seen: Seen, served: Served) -> None:
    page, run = seen.page, runs.Run(served.project().runs / "20260101-000000-train")
    page.context.grant_permissions(["notifications"])
    page.evaluate(NOTE_NOTIFICATIONS)
    run.folder.mkdir(parents=True)
    state = State("train", "running", time.time(), os.getpid(), identity(os.getpid()), machine(), time.time())
    run.write_state(state)
    expect(page.locator("#steps .active[data-open=training-tab]")).to_be_visible()
    page.wait_for_timeout(2500)  # the strip is read every two seconds
    assert page.evaluate("window.notified") == []
    run.write_state(replace(state, status="finished"))
    page.wait_for_function("window.notified.length")
    assert "finished" in page.evaluate("window.notified[0]")


def test_a_project_is_copied_renamed_deleted_and_restored(seen: Seen, served: Served) -> None:
    page = seen.page
    picker, name = page.locator("#project input"), page.locator("#projects-panel [name=name]")
    page.locator("#manage-projects").click()
    expect(page.locator("#projects-panel [data-act=new]")).to_be_hidden()
    name.fill("voice")
    name.press("Enter")
    expect(picker).to_have_value("voice")
    expect(name).to_have_value("")
    note = served.project("voice").root / "note.txt"
    note.write_text("ሰላም", encoding="utf-8")
    for button, given in (("duplicate", "copy"), ("rename", "twin")):
        name.fill(given)
        page.locator(f"#projects-panel [data-act={button}]").dblclick()
        expect(picker).to_have_value(given)
        expect(name).to_have_value("")
    settle(page)
    expect(page.locator(".toast-wrap")).not_to_contain_text("Error")  # of a second press
    expect(page.get_by_test_id("toast-body").last).to_contain_text("copy has been renamed to twin.")
    renamed = served.project("twin").root
    assert note.is_file()
    assert (renamed / note.name).is_file()
    assert not served.project("copy").root.exists()
    delete, restore = (page.locator(f"#projects-panel [data-act={action}]") for action in ("delete", "restore"))
    delete.click()
    expect(page.locator("#question")).to_contain_text("twin")
    for key in ("Enter", "Escape"):
        expect(page.locator("#cancel")).to_be_focused()
        page.keyboard.press(key)
        expect(page.locator("#question")).to_be_hidden()
        delete.press("Enter")
    assert renamed.exists()
    page.locator("#confirm").click()
    expect(picker).to_have_value("voice")
    assert not renamed.exists()
    expect(page.locator("#projects-panel option")).to_have_text(re.compile("^twin · "))
    restore.click()
    expect(picker).to_have_value("twin")
    assert (renamed / note.name).is_file()
    expect(restore).to_be_hidden()
    assert seen.complaints == []


def test_the_tabs_of_a_project_that_another_tab_renamed_give_way_to_a_sentence(seen: Seen, served: Served) -> None:
    page, message = seen.page, seen.page.locator("#steps .message")
    page.locator("#manage-projects").click()
    page.locator("#projects-panel [name=name]").fill("old")
    page.keyboard.press("Enter")
    expect(page.locator("#project input")).to_have_value("old")
    page.keyboard.press("Escape")
    projects.rename(served.project("old"), "new", served.output)
    expect(message).to_contain_text("Project old has been renamed or deleted.")
    expect(page.locator("#tabs")).to_be_hidden()
    page.locator("#project input").click()
    page.get_by_role("option", name="new").click()
    expect(page.locator("#sources [data-act=sample]")).to_be_visible()
    expect(message).to_be_hidden()
    assert [folder.name for folder in served.output.glob("[!.]*")] == ["new"]
    assert seen.complaints == []


def test_a_report_on_a_dataset_has_margins(browser: Browser, tmp_path: Path) -> None:
    many_clips(tmp_path, 250)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_content(dataset_report.page(describe_dataset(tmp_path), tmp_path, "mine"))
    left, gap = page.evaluate(MARGINS)
    assert left >= 240  # the text is in a column in the middle
    assert gap >= 32
    page.close()
