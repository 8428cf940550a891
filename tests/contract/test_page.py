"""What the page offers: its tabs, its widgets, and what programs can call."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.ui.serving import serving

pytestmark = pytest.mark.slow

TABS = "data import review inference training".split()
ENDPOINTS = "disk_forecast load_settings prepare preset read_text speak stop train use_voice".split()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        serving(tmp_path_factory.mktemp("page") / "output", "--no-browser", "--port", "7960") as served,
        httpx.Client(base_url=served.url, timeout=30, follow_redirects=True) as client,
    ):
        client.get(served.link)  # the link has the token
        yield client


@pytest.mark.parametrize("name", TABS)
def test_the_page_still_has_a_tab(name: str, page: httpx.Client) -> None:
    components: list[dict[str, Any]] = page.get("/config").json()["components"]
    assert name in {each["props"].get("id") for each in components if each["type"] == "tabitem"}


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_program_can_still_call_the_page(name: str, page: httpx.Client) -> None:
    assert f"/{name}" in page.get("/gradio_api/info").json()["named_endpoints"]


def test_the_page_is_html(page: httpx.Client) -> None:
    response = page.get("/")
    assert response.headers["content-type"].startswith("text/html")
    assert re.search("<gradio-app|window.gradio_config", response.text)
