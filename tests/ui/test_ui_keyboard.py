"""The whole way without a mouse, from the empty project to the sound of the fine-tuned voice."""

import pytest
from playwright.sync_api import Page, expect

from tests.ui.serving import Seen, expect_sound, listen, settle
from tests.ui.test_ui_whole_way import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

MAX_STOPS = 150
FOCUS = """selector => {
  const control = document.activeElement, style = getComputedStyle(control), box = control.getBoundingClientRect();
  const isSeen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 && box.width > 0;
  return [control === document.body, control.matches(selector), isSeen, control.outerHTML.slice(0, 200)];
}"""


def test_the_whole_way_is_gone_by_keyboard(seen: Seen) -> None:
    page = seen.page
    page.set_default_timeout(60_000)
    for language in ("am", "en"):
        reach(page, "#open-system")
        page.keyboard.press("Enter")
        expect(page.locator("#language")).to_be_visible()
        reach(page, f"#language input[value={language}]", "Shift+Tab")
        page.keyboard.press("Space")
        expect(page.locator("html")).to_have_attribute("lang", language)
        settle(page)
        assert is_at(page, f"#language input[value={language}]")
        page.keyboard.press("Escape")
        expect(page.locator("#drawer")).to_be_hidden()
    press(page, "[data-act=sample]", "Enter", "#data-run-facts", "finished")
    press(page, "#next-training button", "Space", "#preset-about", "Recommended")
    reach(page, "#training-num_epochs-input")
    page.keyboard.type("1")  # which replaces the number: Tab selects it
    expect(page.locator("#training-num_epochs-input")).to_have_value("1")
    press(page, "#train", "Enter", "#training-run-facts", "finished")
    press(page, "#training-runs .next", "Enter", "#speak", "Speak")
    press(page, "#speak", "Space", "#speak-status", "s of audio")
    listen(page)
    reach(page, "#take-sound button[aria-label=Play]")
    page.keyboard.press("Enter")
    expect_sound(page)
    assert seen.complaints == []


def press(page: Page, selector: str, key: str, result: str, text: str) -> None:
    """Go to a control, press a key, and wait for the result; the focus has not got lost by then."""
    reach(page, selector)
    page.keyboard.press(key)
    expect(page.locator(result)).to_contain_text(text, timeout=PATIENCE)
    settle(page)
    assert not is_at(page, "body"), f"the focus was lost after {selector}"


def reach(page: Page, selector: str, key: str = "Tab") -> None:
    """Press Tab, or another key, until a control has the focus, which can be seen at every stop."""
    stops = []
    for _ in range(MAX_STOPS):
        is_outside, is_there, is_seen, control = page.evaluate(FOCUS, selector)
        assert is_outside or is_seen, control
        if is_there:
            return
        stops.append(control)
        page.keyboard.press(key)
    pytest.fail(f"{key} does not lead to {selector}, but to {stops}")


def is_at(page: Page, selector: str) -> bool:
    return bool(page.evaluate("selector => document.activeElement.matches(selector)", selector))
