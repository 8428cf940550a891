"""What axe-core, a checker of accessibility, finds on every tab; and that all words change with the language."""

import contextlib
from pathlib import Path
from typing import get_args

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as TooLate

from tests.studio.test_takes import make_take
from tests.ui.serving import Seen, Served, choose_language, settle
from utils.core.wording import rows as phrases
from utils.studio.runs import Status

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = Path(__file__).with_name("assets") / "axe-core" / "axe.min.js"
WIDTHS = {1440: 1000, 360: 800}
TABS = ("data", "training", "inference")
PLACES = (*TABS, "system")
VISIBLE_WORDS = """() => {
  const words = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent && !["SCRIPT", "STYLE"].includes(parent.tagName) && parent.checkVisibility())
      words.push(walker.currentNode.textContent.trim());
  }
  return words.filter(Boolean);
}"""
UNFOLD = """() => document.querySelectorAll('button.label-wrap:not(.open)').forEach(
  button => button.checkVisibility() && button.click())"""
TONES = """names => names.map(name => {
  const word = document.createElement("b");
  word.className = name;
  document.querySelector("#tabs").append(word);
  const tone = getComputedStyle(word).color;
  word.remove();
  return tone;
})"""


def test_every_tab_is_accessible_in_both_colours_and_widths_and_all_amharic(seen: Seen, served: Served) -> None:
    page, problems = seen.page, list[str]()
    page.set_default_timeout(60_000)
    page.locator("[data-act=sample]").click()
    expect(page.locator("#project input")).to_have_value("sample", timeout=60_000)
    page.add_script_tag(path=AXE)
    page.add_style_tag(content="* { transition: none !important; }")  # half-way colours have no contrast
    expect(page.locator("#data-run-facts")).to_contain_text("finished", timeout=120_000)
    make_take(served.project("sample"), "ሰላም ለዓለም።")
    for name in PLACES:
        open_place(page, name)
        if name == "inference":
            expect(page.locator("#take-sound").get_by_test_id("waveform-Result")).to_be_visible()
        for width, height in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": height})
            settle(page)
            problems += [f"{name} {width}: {violation}" for violation in violations(page)]
            colour(page, dark=True)
            contrast = violations(page, "runOnly: ['color-contrast']")
            problems += [f"{name} {width} dark: {violation}" for violation in contrast]
            colour(page, dark=False)
        if (width := page.evaluate("document.documentElement.scrollWidth")) > min(WIDTHS):
            problems.append(f"{name} is {width} wide on a narrow screen")
        page.set_viewport_size({"width": 1440, "height": WIDTHS[1440]})
    tones = []
    for dark in (False, True):
        colour(page, dark=dark)
        tones.append(page.evaluate(TONES, get_args(Status)))
    problems += [
        f"{state} has one colour" for state, light, dark in zip(get_args(Status), *tones, strict=True) if light == dark
    ]
    page.keyboard.press("Escape")
    choose_language(page, "am")
    english = {row.english for row in phrases().values() if row.english not in ("", row.amharic)}
    for name in PLACES:
        open_place(page, name)
        problems += [f"{name} still says {text}" for text in left_in_english(page, english)]
    assert problems == []


def left_in_english(page: Page, english: set[str]) -> list[str]:
    """Give what was asked for a moment ago the time to come, and name what stays English."""
    with contextlib.suppress(TooLate):
        page.wait_for_function(f"known => !({VISIBLE_WORDS})().some(text => known.includes(text))", arg=sorted(english))
    return sorted(english & set(page.evaluate(VISIBLE_WORDS)))


def open_place(page: Page, name: str) -> None:
    """Show a tab or the System drawer with everything unfolded that can be."""
    if name == "system":
        page.locator("#open-system").click()
    else:
        page.keyboard.press("Escape")
        page.locator(f"#steps [data-open={name}-tab]").click()
        page.locator(f"#{name}-advanced input").check()
    settle(page)
    for _ in range(2):  # some are inside others
        page.evaluate(UNFOLD)
        settle(page)


def colour(page: Page, *, dark: bool) -> None:
    page.evaluate("dark => document.body.classList.toggle('dark', dark)", dark)


def violations(page: Page, options: str = "") -> list[str]:
    """Ask axe-core about what is in sight."""
    return [
        f"{violation['id']} ({violation['impact']}): {node['html'][:160]} {node['target']} {node['failureSummary']}"
        for violation in page.evaluate(f"axe.run(document, {{resultTypes: ['violations'], {options}}})")["violations"]
        if violation["impact"] in {"serious", "critical"}
        for node in violation["nodes"][:4]
    ]
