"""The Fine-tuning tab in a real browser: its form when answers come late and in another order, its chart, buttons."""

import contextlib
import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.ui.data_folders import add_run
from tests.ui.serving import Seen, Served, late_answers, one_tab, settle
from tests.ui.test_ui_training import make_run
from utils.studio import projects
from utils.studio.runs import Run
from utils.ui.i18n import t

pytestmark = pytest.mark.browser

OPEN = "second"  # whose run has settings that no preset proposes

COVERED = """id => {
  const hint = document.getElementById(id), sheet = hint.closest(".sheet"), box = hint.getBoundingClientRect();
  return [...document.querySelectorAll("#training-tab .setting label")].filter(label => {
    const one = label.getBoundingClientRect(), isBeside = one.left >= box.right || one.right <= box.left;
    return label.closest(".sheet") === sheet && !isBeside && one.top < box.bottom && box.top < one.bottom;
  }).map(label => label.id);
}"""

served = one_tab("training", "7930")


ACKNOWLEDGED = """selector => new Promise(done => {
  const button = document.querySelector(selector), began = performance.now();
  const seen = () => button.hasAttribute("aria-busy") ? done(performance.now() - began) : requestAnimationFrame(seen);
  button.click();
  seen();
})"""


@pytest.fixture
def run(seen: Seen, served: Served) -> Run:
    """A run that has not made a step yet, on a page that is open already."""
    return add_run(served.project(), "20260101-000000-train")


def report(run: Run, *events: dict[str, object]) -> None:
    with run.events.open("a", encoding="utf-8") as log:
        log.writelines(f"{json.dumps(event)}\n" for event in events)


def step(number: int, loss: float) -> dict[str, object]:
    return {"kind": "train", "step": number, "loss_audio": loss, "loss_text": 1.0, "learning_rate": 1e-5}


def test_the_chart_answers_the_mouse(seen: Seen, run: Run) -> None:
    page = seen.page
    report(run, *(step(number, 3 - number / 100) for number in range(1, 101)))
    svg = page.locator("#training-chart svg")
    expect(page.locator("#training-chart .raw")).to_have_count(1)  # many points: pale as measured, bold smoothed
    box = svg.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 80)
    expect(page.locator("#training-chart .key")).to_contain_text(t("common.step"))
    expect(page.locator("#training-chart .cross")).to_have_attribute("visibility", "visible")
    last = page.locator("#training-chart text").last.text_content()
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 80, steps=4)
    page.mouse.up()
    expect(page.locator("#training-chart text").last).not_to_have_text(str(last))
    svg.dblclick()
    expect(page.locator("#training-chart text").last).to_have_text(str(last))
    assert seen.complaints == []


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_the_hint_of_a_focused_field_covers_no_label(seen: Seen, width: int) -> None:
    page = seen.page
    page.set_viewport_size({"width": width, "height": 844})
    for name, is_advanced in (("num_epochs", False), ("custom_model", True)):
        page.locator("#training-advanced input").set_checked(is_advanced)
        page.locator(f"#training-{name}-input").focus()
        expect(page.locator(f"#training-{name}-hint")).to_be_visible()
        assert page.evaluate(COVERED, f"training-{name}-hint") == []
    page.locator("#training-tab .sheet [data-close]").click()
    settle(page)  # the browser remembers it


def test_a_finished_run_fits_on_a_phone(seen: Seen, run: Run) -> None:
    page = seen.page
    report(run, *(step(number, 3.0) for number in (1, 2, 3)))
    expect(page.locator("#training-chart circle").first).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    assert page.evaluate("document.getElementById('training-chart').getBoundingClientRect().right") <= 390


@pytest.fixture
def page(seen: Seen, served: Served) -> Page:
    """The page with a project that is not the first, and the settings of its run."""
    for name in ("first", OPEN):
        projects.create(name, served.output)
    make_run(served.project(OPEN), "r-1-train", version="tiny", num_epochs=1000, batch_size=3)
    page = seen.page
    page.locator("#project input").click()
    page.get_by_role("option", name=OPEN).click()
    expect(epochs(page)).to_have_value("1000")
    settle(page)
    return page


def epochs(page: Page) -> Locator:
    return page.locator("#training-num_epochs-input")


@contextlib.contextmanager
def late_requests(page: Page, pattern: str) -> Iterator[list[Route]]:
    """Hold back all requests to an address, which are collected, until the block ends."""
    held: list[Route] = []
    page.route(pattern, lambda route: held.append(route))  # noqa: PLW0108  # Playwright needs a function
    yield held
    for route in held:
        route.continue_()
    page.unroute_all(behavior="ignoreErrors")


def test_the_settings_of_the_open_project_follow_late_ones_of_the_first(page: Page) -> None:
    with late_answers(page, '"learning_rate"') as held:
        page.reload()
        while not held:
            page.wait_for_timeout(100)
        expect(page.locator("#project input")).to_have_value(OPEN)
        settle(page)
    expect(epochs(page)).to_have_value("1000")


def test_a_preset_of_the_first_project_does_not_replace_the_settings_of_the_open_one(page: Page) -> None:
    with late_requests(page, "**/queue/join*"):
        page.reload()
        expect(page.locator("#project input")).to_have_value(OPEN)
        expect(epochs(page)).to_have_value("1000")
        page.wait_for_timeout(1000)  # no settling: a request that is on its way counts its seconds
    settle(page)
    expect(epochs(page)).to_have_value("1000")


def test_an_edit_stays_when_the_project_was_opened_before(page: Page) -> None:
    with late_answers(page, '"learning_rate"') as held:
        page.reload()
        while not held:
            page.wait_for_timeout(100)
        expect(page.locator("#project input")).to_have_value(OPEN)
        epochs(page).fill("77")
    settle(page)
    expect(page.locator("#training-batch_size-input")).to_have_value("3")  # of the run
    expect(epochs(page)).to_have_value("77")


def test_an_edit_stays_when_the_preset_of_the_tiny_model_is_proposed(page: Page) -> None:
    version = page.locator("#training-version-input")
    page.locator("#project input").click()
    page.get_by_role("option", name="first").click()
    expect(page.locator("#preset-about")).to_contain_text("tiny_cpu")
    page.locator("#training-advanced input").check()
    page.locator("#preset input").click()
    page.get_by_role("option", name="20 GB of GPU memory").click()
    expect(epochs(page)).to_have_value("10")
    settle(page)
    with late_answers(page, "tiny_cpu") as held:
        version.select_option("tiny")
        while not held:
            page.wait_for_timeout(100)
        epochs(page).fill("77")
    expect(page.locator("#preset-about")).to_contain_text("tiny_cpu")
    settle(page)
    expect(epochs(page)).to_have_value("77")


def test_a_problem_stays_marked_when_an_earlier_check_is_answered_later(page: Page) -> None:
    with late_answers(page, "resume data") as held:
        epochs(page).fill("5")
        while not held:
            page.wait_for_timeout(100)
        epochs(page).fill("0")
        page.wait_for_timeout(2000)  # the second check is answered, or waits
    expect(page.locator("#train-errors")).to_contain_text("(num_epochs)")
    settle(page)
    expect(page.locator("#training-num_epochs.invalid")).to_be_visible()


def test_a_pressed_button_shows_it_within_a_tenth_of_a_second(seen: Seen, served: Served) -> None:
    page = seen.page
    page.evaluate("""() => {
      const button = document.createElement("button");
      Object.assign(button, {className: "act primary", textContent: "Go", id: "probe"});
      window.presses = 0;
      button.addEventListener("click", () => { window.presses += 1; });
      document.querySelector("#tabs").append(button);
    }""")
    settle(page)
    assert page.evaluate(ACKNOWLEDGED, "#probe") <= 100
    page.locator("#probe").dispatch_event("click")
    assert page.evaluate("window.presses") == 1  # it cannot be pressed twice
