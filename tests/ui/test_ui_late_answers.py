"""The form of a training in a real browser whose answers come late and in another order."""

import contextlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.ui.serving import OneTab, Seen, Served, late_answers, serving, settle
from tests.ui.test_ui_training import make_run
from utils.studio import projects

pytestmark = pytest.mark.browser

OPEN = "second"  # whose run has settings that no preset proposes


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("page") / "output", "training", "7930", kind=OneTab) as page:
        yield page


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
