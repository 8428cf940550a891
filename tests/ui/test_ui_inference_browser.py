"""Streaming and sharing a model in a real browser, with a small model of random weights that reads Amharic."""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.serving import OneTab, Seen, Served, opened, serving

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "ሰላም ለዓለም። ዛሬ ሰኞ ነው።"
LONG = "ልጆቹ ጠዋት ወደ ትምህርት ቤት ሄዱ። " * 600
PATIENCE = 60_000  # milliseconds: torch is loaded with the first model
IS_HEARD = """() => {
  const audio = document.querySelector("#stream-player audio");
  return !audio.hidden && !audio.paused && audio.currentTime > 0.5;
}"""
IS_HEARD_THEN_PAUSED = f"""() => {{
  const isHeard = ({IS_HEARD})();
  if (isHeard) document.querySelector("#stream-player audio").pause();
  return isHeard;
}}"""  # in one step: between two, a busy machine may have played all of it


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory, speaking_folder: Path) -> Iterator[Served]:
    output = tmp_path_factory.mktemp("speaking") / "output"
    shutil.copytree(speaking_folder, output / "default" / "ready")
    with serving(output, "inference", "7960", kind=OneTab) as page:
        yield page


@pytest.fixture
def tab(browser: Browser, speaking: Served) -> Iterator[Seen]:
    with opened(browser, speaking) as seen:
        open_inference(seen.page)
        yield seen


def open_inference(page: Page) -> None:
    page.locator("#steps [data-open=inference-tab]").click()
    page.locator("#inference-advanced input").check()
    expect(page.locator("#model input")).to_have_value(re.compile("default"), timeout=PATIENCE)
    page.locator("#speech-tries-input").fill("1")  # a model of random weights never ends by itself
    page.locator("#inference-tab .sheet [data-close]").click()
    page.locator("#model-details > summary").click()


def speak(page: Page, text: str) -> None:
    page.locator("#speech-text textarea").fill(text)
    page.locator("#speak").click()


def stream(page: Page) -> None:
    page.locator("#inference-advanced input").check()
    page.get_by_label("Stream audio").check()
    page.locator("#inference-tab .sheet [data-close]").click()


def test_streamed_audio_stops_at_once(tab: Seen) -> None:
    page = tab.page
    expect(page.locator("#model-card")).to_contain_text("phonetic Latin letters", timeout=PATIENCE)
    stream(page)
    speak(page, LONG)
    page.wait_for_function(IS_HEARD, timeout=PATIENCE)
    clicked = time.perf_counter()
    page.locator("#stop").click()
    expect(page.locator("#speak")).to_be_enabled()
    assert time.perf_counter() - clicked < 3
    expect(page.locator("#speak-status")).to_contain_text(re.compile("are saved|before the first sentence"))
    expect(page.locator("#stream-player")).to_be_hidden()
    assert tab.complaints == []


def test_a_stream_is_heard_in_a_player_that_gives_way_to_the_take(tab: Seen) -> None:
    page, player, take = tab.page, tab.page.locator("#stream-player audio"), tab.page.locator("#take-sound")
    speak(page, "ሰላም።")
    expect(take.get_by_test_id("waveform-Result")).to_be_visible(timeout=PATIENCE)
    stream(page)
    speak(page, TEXT)
    page.wait_for_function(IS_HEARD_THEN_PAUSED, timeout=PATIENCE)
    expect(player).to_be_visible()
    expect(take).to_be_hidden()  # the earlier take
    assert player.get_attribute("aria-label") == "Streamed audio"
    expect(page.locator("#speak-status")).to_contain_text("s of audio", timeout=PATIENCE)
    expect(player).to_be_visible()  # until all has been heard
    player.evaluate("audio => audio.play()")
    expect(player).to_be_hidden(timeout=PATIENCE)
    expect(take.get_by_test_id("waveform-Result")).to_be_visible()
    assert tab.complaints == []


def test_visitors_stop_only_their_own_speech(tab: Seen, speaking: Served, browser: Browser) -> None:
    page, other = tab.page, browser.new_context(viewport={"width": 800, "height": 900}).new_page()
    other.goto(speaking.link)
    open_inference(other)
    other.locator("#inference-advanced input").check()
    other.locator("#speech-batch_size-input").fill("1")  # others have their turn after each batch
    other.locator("#inference-tab .sheet [data-close]").click()
    speak(other, LONG)
    expect(other.locator("#speak-status")).to_contain_text("sentences ·", timeout=PATIENCE)
    speak(page, TEXT * 24)  # for as long as it takes the card to notice
    expect(page.locator("#model-card")).to_contain_text("requests: 2", timeout=PATIENCE)
    expect(page.locator("#model-panel [data-act=unload]")).to_be_hidden()
    page.locator("#stop").click()
    expect(page.locator("#speak")).to_be_enabled()
    expect(page.locator("#model-card")).to_contain_text("requests: 1", timeout=PATIENCE)
    expect(other.locator("#stop")).to_be_enabled()
    other.context.close()  # a visitor who leaves stops speaking
    expect(page.locator("#model-panel [data-act=unload]")).to_be_enabled(
        timeout=15_000
    )  # a quarter of what the text takes
    page.locator("#model-panel [data-act=unload]").click()
    expect(page.locator("#model-card")).to_contain_text("No model is loaded")
