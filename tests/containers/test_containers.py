"""docker-compose.yml: services with no more rights than they need, and their health checks against real servers."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
import yaml

from tests.server.fake_server import served
from tests.ui.serving import serving
from utils.cli.page import VARIABLE
from utils.core.paths import ROOT

SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
PASSWORD = "a-password-of-one-s-own"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PAGE: list[str] = json.loads(re.findall(r"HEALTHCHECK .*\n *CMD (.*)", DOCKERFILE)[0])
SPEECH: list[str] = SERVICES["speech"]["healthcheck"]["test"][1:]


def is_healthy(words: list[str], url: str) -> bool:
    """Ask as the container does, at another port."""
    program, count = re.subn(r"'127\.0\.0\.1', \d+", f"'127.0.0.1', {urlsplit(url).port}", words[2])
    assert (words[0], words[1], count) == (".venv/bin/python", "-c", 1)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_only_the_rights_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert ("profiles" in service) == (name != "page")  # only the page starts by default
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["volumes"] == ["./output:/app/output"]
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert not {"network_mode", "privileged"} & service.keys()
    assert all(value is None for value in service["environment"].values())  # no secret is written down


@pytest.mark.slow
def test_the_page_shows_its_password_nowhere(tmp_path: Path) -> None:
    """The page as the container starts it, with a password from the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, f"abebe:{PASSWORD}")
        with serving(tmp_path / "output", "--host", "0.0.0.0", "--port", "7980") as page:
            assert is_healthy(PAGE, page.url)
            assert PASSWORD not in " ".join([*psutil.Process(page.process.pid).cmdline(), *page.lines])
            assert not any("Login for visitors" in line for line in page.lines)
    assert not is_healthy(PAGE, page.url)


@pytest.mark.slow
def test_the_speech_server_answers_without_its_key() -> None:
    with served(environment=os.environ | {"AMHARIC_TTS_API_KEY": "k" * 32}) as server:
        assert is_healthy(SPEECH, server.url)
        assert server.speak().status_code == 401
    assert not is_healthy(SPEECH, server.url)
