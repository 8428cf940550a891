"""Fine-tuning in a real browser with the tiny base: what must not get lost, and what is refused in its place."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.training.trainable import write_dataset
from tests.ui.serving import Seen, Served, opened, serving
from tests.ui.training_tab import PATIENCE, button, choose_tiny, facts, field, open_training, wait_for_step
from utils import runs
from utils.runs import Status
from utils.ui.i18n import t
from utils.xtts.hub import licence_accepted

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A page whose project has a few clips, for all tests here: no start of it is waited for twice."""
    with serving(tmp_path_factory.mktemp("training") / "output", "--port", "7990") as page:
        write_dataset(page.project().dataset, train=4, held_back=2, seconds=0.6)
        yield page


@pytest.fixture
def seen(browser: Browser, served: Served) -> Iterator[Seen]:
    with opened(browser, served) as seen:
        open_training(seen.page)
        yield seen


def test_what_is_typed_after_a_preset_was_chosen_stays(seen: Seen) -> None:
    page = seen.page
    bodies: list[str] = []
    page.on("request", lambda request: bodies.append(request.post_data or "") if "queue/join" in request.url else None)
    choose_tiny(page, num_epochs="3")
    field(page, "learning_rate").click()
    page.locator("#show-command").click()
    expect(page.locator("#command textarea")).to_have_value(re.compile("--num-epochs 3 "))
    assert [body.startswith('{"data":["tiny_cpu"') for body in bodies].count(True) == 1


def test_the_licence_is_asked_for_published_versions_alone(seen: Seen) -> None:
    if licence_accepted():
        pytest.skip("somebody has agreed to it on this computer, and is not asked again")
    page = seen.page
    expect(page.locator("#licence")).to_be_visible()
    expect(page.locator("#train")).to_be_disabled()
    expect(page.locator("#train-reason")).to_contain_text("licence")
    choose_tiny(page)
    expect(page.locator("#licence")).to_be_hidden()
    expect(page.locator("#train")).to_be_enabled()


def test_one_run_goes_on_through_two_clicks_a_reload_a_second_tab_and_a_restarted_page(
    seen: Seen, served: Served
) -> None:
    page = seen.page
    choose_tiny(page, num_epochs="1000", batch_size="2")
    expect(page.locator("#train")).to_be_enabled()
    page.locator("#train").dblclick()
    expect(facts(page)).to_contain_text("running", timeout=PATIENCE)
    wait_for_step(page, 1)
    page.reload()
    expect(facts(page)).to_contain_text("running")
    expect(field(page, "num_epochs")).to_have_value("1000")  # what was filled in is still there
    (run,) = runs.list_runs(served.project())
    pid = run.current_state().pid

    second = page.context.new_page()
    second.goto(seen.origin)
    expect(facts(second)).to_contain_text("running")  # the tab that was open last is open again
    expect(button(second, "Delete")).to_be_disabled()
    expect(second.locator("#training-run-reasons")).to_contain_text(t("common.run_is_running", "en"))
    second.close()
    assert seen.complaints == []

    served.restart(page)
    expect(facts(page)).to_contain_text("running")
    expect(field(page, "num_epochs")).to_have_value("1000")
    expect(page.locator("#train")).to_be_disabled()
    wait_for_step(page, wait_for_step(page, 1) + 1)
    assert run.current_state().pid == pid
    button(page, "Stop now").click()
    expect(facts(page)).to_contain_text("stopped")
    assert run.current_state().status is Status.STOPPED
    assert runs.list_runs(served.project()) == [run]
