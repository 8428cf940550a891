"""The health checks of the containers, against the real page and the real server."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import psutil
import pytest

import xtts_demo
from tests.containers.test_compose import SERVICES
from tests.server.fake_server import served
from tests.ui.serving import Served, serving
from utils.core.paths import ROOT

pytestmark = pytest.mark.slow
PASSWORD = "a-password-of-one-s-own"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PAGE: list[str] = json.loads(re.findall(r"HEALTHCHECK .*\n *CMD (.*)", DOCKERFILE)[0])
SPEECH: list[str] = SERVICES["speech"]["healthcheck"]["test"][1:]


def is_healthy(words: list[str], url: str) -> bool:
    """Ask as the container does, at another port."""
    program, count = re.subn(r"'127\.0\.0\.1', \d+", f"'127.0.0.1', {urlsplit(url).port}", words[2])
    assert (words[0], words[1], count) == (".venv/bin/python", "-c", 1)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The page as the container starts it, with a password from the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(xtts_demo.VARIABLE, f"abebe:{PASSWORD}")
        with serving(tmp_path_factory.mktemp("page") / "output", "--host", "0.0.0.0", "--port", "7980") as page:
            yield page


def test_the_page_answers_without_a_password(page: Served) -> None:
    assert is_healthy(PAGE, page.url)


def test_a_password_from_the_environment_is_neither_printed_nor_in_the_list_of_processes(page: Served) -> None:
    told = psutil.Process(page.process.pid)
    assert PASSWORD not in " ".join([*told.cmdline(), *page.lines])
    assert not any("Login for visitors" in line for line in page.lines)


def test_a_page_that_is_gone_is_not_healthy() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        assert not is_healthy(PAGE, f"http://127.0.0.1:{nobody.getsockname()[1]}")


def test_the_speech_server_answers_without_its_key() -> None:
    with served(environment=os.environ | {"AMHARIC_TTS_API_KEY": "k" * 32}) as server:
        assert is_healthy(SPEECH, server.url)
        assert server.speak().status_code == 401
    assert not is_healthy(SPEECH, server.url)
