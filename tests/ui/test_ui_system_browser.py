"""Consent and downloads in the System drawer in a real browser, from a hub on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.ui.serving import OneTab, Seen, Served, serving
from tests.xtts import hub_server
from tests.xtts.hub_server import Hub
from utils.ui.i18n import t
from utils.ui.tabs.system.base_models import LICENCE_FILE
from utils.xtts.files import HUB_FILES

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TERMS = b"The terms of the licence.\n" * 50


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    files = {(version, name): b"x" * (1 << 20) for version in ("main", "v2.0.2") for name in HUB_FILES}
    files["main", LICENCE_FILE] = TERMS
    with hub_server.serving(Hub(files)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        with serving(tmp_path / "output", "data", "7915", "own-consent", kind=OneTab) as page:
            yield page


def test_a_version_is_fetched_after_consent_and_deleted_again(seen: Seen) -> None:
    page = seen.page
    page.locator("#open-system").click()
    page.locator("#download-version input").click()
    page.get_by_role("option", name="v2.0.2").click()
    expect(page.locator("#licence-state")).to_contain_text("License")
    expect(page.locator("#download")).to_be_hidden()

    page.locator("#show-licence").click()
    expect(page.locator("#licence-text textarea")).to_have_value(TERMS.decode())
    page.locator("#licence-name input, #licence-name textarea").first.fill("አበበ")
    page.locator("#agree").click()
    expect(page.locator("#licence-state")).to_contain_text("አበበ")
    expect(page.locator("#agree")).to_be_hidden()
    expect(page.locator("#download")).to_be_visible()

    page.locator("#download").click()
    expect(page.locator("#pause-download")).to_be_visible()
    row = page.locator("#base-models tr", has_text="v2.0.2")
    expect(row).to_contain_text(t("system.installed", "en"), timeout=60_000)  # the child loads torch
    expect(page.locator("#download")).to_be_hidden()

    page.locator("#delete-version").click()
    expect(page.locator("#download-question")).to_contain_text("v2.0.2")
    page.locator("#download-question-confirm").click()
    expect(row).to_contain_text(t("system.not_installed", "en"))
    page.locator("#withdraw").click()
    expect(page.locator("#download")).to_be_hidden()
    assert seen.complaints == []
    assert seen.strangers == []
