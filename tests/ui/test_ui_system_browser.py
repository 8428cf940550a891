"""Consent and downloads in the System drawer in a real browser, from a hub on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.ui.serving import OneTab, Seen, Served, serving
from tests.xtts import hub_server
from tests.xtts.hub_server import Hub
from utils.studio.downloads import LICENCE_FILE
from utils.ui.i18n import t
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


def test_a_version_is_fetched_after_consent(seen: Seen) -> None:
    page = seen.page
    page.locator("#open-system").click()
    panel = page.locator("#base-models")
    row = panel.locator("tr", has_text="v2.0.2")
    download, delete = (row.locator(f"[data-act={action}]") for action in ("download", "delete"))
    expect(panel).to_contain_text("has not been accepted yet")
    expect(download).to_be_hidden()

    panel.locator("[data-act=licence]").click()
    expect(panel.locator("pre")).to_have_text(TERMS.decode())
    panel.locator("[name=person]").fill("አበበ")
    panel.locator("[data-act=agree]").click()
    expect(panel).to_contain_text("አበበ")
    expect(panel.locator("[data-act=agree]")).to_be_hidden()

    download.click()
    expect(row).to_contain_text(t("system.installed"), timeout=60_000)  # the child loads torch
    expect(download).to_be_hidden()
    expect(panel).to_contain_text("python -m utils field-test")

    delete.click()
    expect(page.locator("#question")).to_contain_text("Delete v2.0.2?")
    page.locator("#confirm").click()
    expect(row).to_contain_text(t("system.not_installed"))
    panel.locator("[data-act=withdraw]").click()
    expect(download).to_be_hidden()
    assert seen.complaints == []
    assert seen.strangers == []
