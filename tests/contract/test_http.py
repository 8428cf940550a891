"""What the speech server answers to other programs."""

from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.server.fake_server import served

pytestmark = pytest.mark.slow

TEXT = "ሰላም።"
SPEECH = "/v1/audio/speech"


@pytest.fixture(scope="module")
def http(output: Path) -> Iterator[httpx.Client]:
    words = ("--model", str(output / "project" / "ready"), "--device", "cpu", "--precision", "fp32")
    with served(*words, module="utils serve") as server:
        yield server.http


def test_the_same_seed_gives_the_same_sound(http: httpx.Client) -> None:
    request = {"input": TEXT, "response_format": "pcm", "seed": 3}
    first, second = (http.post(SPEECH, json=request).content for _ in range(2))
    assert first == second


def test_another_seed_gives_another_sound(http: httpx.Client) -> None:
    first, second = (
        http.post(SPEECH, json={"input": TEXT, "response_format": "pcm", "seed": seed}).content for seed in (3, 4)
    )
    assert first != second


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nowhere", 404), ("GET", SPEECH, 405)])
def test_another_path_or_method_is_refused_in_json(method: str, path: str, status: int, http: httpx.Client) -> None:
    response = http.request(method, path)
    assert response.status_code == status
    assert response.json()["error"]["message"]
