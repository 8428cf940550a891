"""What a person does on the Fine-tuning tab, for the tests that drive a browser."""

from playwright.sync_api import Locator, Page, expect

from utils.ui.i18n import t

PATIENCE = 240_000  # milliseconds; the child loads torch, and other programs share the machine
REACHED = """minimum => {
  const match = document.querySelector("#training-run-facts")?.innerText.match(/Step (\\d+) of/);
  return match && Number(match[1]) >= minimum ? Number(match[1]) : 0;
}"""


def open_tab(page: Page, name: str) -> None:
    """Open a tab once the page has remembered which one it was: that would take the place of this choice."""
    page.wait_for_function("() => window.amharicRestored")
    page.locator('#tabs > .tab-wrapper [role="tab"]').get_by_text(name, exact=True).click()


def open_training(page: Page) -> None:
    open_tab(page, t("training.tab", "en"))
    expect(page.locator("#preset")).to_be_visible()
    page.wait_for_function("() => window.trainingFormIsBack")  # what is typed before is no draft yet


def field(page: Page, name: str) -> Locator:
    """Found by its id: looking for labels among so many widgets takes seconds."""
    return page.locator(f"#training-{name}").locator("input, textarea").first


def button(page: Page, name: str) -> Locator:
    return page.locator(f"#training-{name.lower().replace(' ', '-')}")


def facts(page: Page) -> Locator:
    return page.locator("#training-run-facts")


def choose_tiny(page: Page, **changes: str) -> None:
    """Choose the preset for trials, and change some of its fields."""
    page.locator("#preset input").click()
    page.locator("#preset").get_by_text(t("preset.tiny_cpu.title", "en")).click()
    expect(page.locator("#preset-about")).to_contain_text("tiny_cpu.yaml")
    expect(field(page, "num_epochs")).to_have_value("7")
    for name, value in changes.items():
        field(page, name).fill(value)


def wait_for_step(page: Page, minimum: int) -> int:
    """Wait until an update is shown, and return which one it is by then."""
    return int(page.wait_for_function(REACHED, arg=minimum, timeout=PATIENCE).json_value())
