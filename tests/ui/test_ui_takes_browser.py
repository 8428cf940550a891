"""A spoken text in a real browser: its sentences as rows, and its files in one menu. No model is needed for that."""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.ui.serving import Seen, Served, expect_sound, listen, one_tab, settle
from utils.media import audio
from utils.media.rates import OUTPUT_RATE
from utils.speech.facts import Flag
from utils.studio import takes
from utils.studio.takes import Take, TakeSentence
from utils.xtts.tokenizer import TokenizedText

pytestmark = pytest.mark.browser

TEXTS = ("ሰላም ለዓለም።", "ዛሬ ሰኞ ነው።")


served = one_tab("inference", "7970")


@pytest.fixture
def page(seen: Seen, served: Served) -> Page:
    """The page of a project with one take, whose second sentence is doubtful."""
    samples = (0.1 * np.sin(np.arange(2 * OUTPUT_RATE) / 20)).astype(np.float32)
    readings = [TokenizedText(text, text, text, text, (text,), (1,), ()) for text in TEXTS]
    pieces = (
        TakeSentence(readings[0], seed=1, seconds=1.0),
        TakeSentence(readings[1], seed=2, start=1.0, seconds=1.0, flags=(Flag("short"),)),
    )
    takes.save(served.project(), Take("speech", " ".join(TEXTS), "model", "voice", {}, pieces, seconds=2.0), samples)
    seen.page.locator("#steps [data-open=inference-tab]").click()
    expect(seen.page.locator("#takes .sentences li")).to_have_count(2)
    return seen.page


def test_each_sentence_has_its_row(page: Page) -> None:
    first, second = (page.locator("#takes .sentences li").nth(number) for number in range(2))
    expect(second.locator(".flag")).to_be_visible()
    expect(first.locator(".flag")).to_have_count(0)
    listen(page)
    second.get_by_role("button", name="Play: 2").click()
    expect_sound(page)
    second.get_by_role("button", name="Edit sentence: 2").click()
    expect(page.locator("#takes [name=words]")).to_have_value(TEXTS[1])
    second.get_by_role("button", name="Edit sentence: 2").click()
    expect(page.locator("#takes [name=words]")).to_have_count(0)


def test_a_double_click_deletes_one_take(page: Page, served: Served) -> None:
    (name,) = takes.names(served.project())
    takes.save(served.project(), takes.load(served.project(), name), np.zeros(OUTPUT_RATE, np.float32))
    delete = page.locator("#takes [data-act=delete]")
    page.locator("#history > summary").click()
    page.locator("#takes [name=take]").select_option(name)
    expect(delete).to_have_attribute("data-take", name)
    delete.click()
    expect(delete).not_to_have_attribute("data-take", name)  # the second half of a slow double click aimed at this one
    delete.dispatch_event("click", {"detail": 2, "bubbles": True})
    expect(page.locator("#takes [data-act=undo]")).to_be_visible()
    page.wait_for_timeout(500)
    assert len(takes.names(served.project())) == 1


def test_a_typed_text_stays_when_the_page_reloads(page: Page) -> None:
    text = page.locator("#speech-text textarea")
    for typed in ("ይህ የተጻፈ ጽሑፍ ነው።", ""):
        text.fill(typed)
        settle(page)
        page.reload()
        expect(page.locator("#readings")).to_contain_text("GiB free")
        expect(text).to_have_value(typed)


def test_every_format_can_be_downloaded_from_one_menu(page: Page) -> None:
    menu = page.locator("#take-downloads .downloads")
    for kind in ("WAV", "FLAC", "SRT"):
        page.locator("#take-downloads > summary").click()
        with page.expect_download() as waiting:
            menu.get_by_text(kind, exact=True).click()
        path = Path(waiting.value.path())
        assert waiting.value.suggested_filename == f"take.{kind.lower()}"
        assert TEXTS[0] in path.read_text(encoding="utf-8") if kind == "SRT" else audio.probe(path).seconds == 2.0
        expect(menu).to_be_hidden()  # it covers what is below
