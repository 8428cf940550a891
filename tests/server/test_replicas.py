"""Two replicas behind nginx, and under Ray Serve: one is killed under load, and only what it was speaking is lost."""

import contextlib
import importlib.util
import logging
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2 as httpx
import psutil
import pytest

from benchmarks.serving import NEAR, difference
from tests.server.fake_server import SPEECH, Served, served
from tests.waiting import wait_for
from utils.core.paths import ROOT

RECIPES = ROOT / "docs" / "serving"
TEXT = "ዛሬ ጠዋት ወደ ገበያ ሄጄ ቡና እና ዳቦ ገዛሁ። ነገ ደግሞ እንገናኛለን።"
CALLERS, REQUESTS = 8, 24
ACTIVE = 2  # requests that a replica speaks at a time
WORDS = ("--model", "tiny", "--device", "cpu", "--active", str(ACTIVE))
SKIPPED_SECONDS = 3  # after a failure, in the recipes
PATIENCE = 600.0  # seconds; starting Ray imports torch in three processes
RAY = {"RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "100"}  # 5 s are too short on a machine with other work

logger = logging.getLogger(__name__)  # figures: pytest --log-cli-level=INFO
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@dataclass(eq=False)
class Answer:
    """What a caller got so far."""

    seed: int
    status: int = 0
    replicas: tuple[str, ...] = ()  # that nginx tried, one after the other
    sound: bytes = b""
    is_complete: bool = False

    @property
    def is_being_spoken(self) -> bool:
        return bool(self.sound) and not self.is_complete


def ask(http: httpx.Client, answer: Answer) -> Answer:
    body = {"input": TEXT, "seed": answer.seed, "response_format": "pcm"}
    with contextlib.suppress(httpx.TransportError), http.stream("POST", SPEECH, json=body) as response:
        answer.status = response.status_code
        answer.replicas = tuple(filter(None, response.headers.get("x-replicas", "").split(", ")))
        if response.status_code == 200:
            for chunk in response.iter_raw():
                answer.sound += chunk
            answer.is_complete = True
    return answer


def ask_at_once(http: httpx.Client, answers: Sequence[Answer], meanwhile: Callable[[], object]) -> None:
    with ThreadPoolExecutor(CALLERS) as callers:
        for answer in answers:
            callers.submit(ask, http, answer)
        meanwhile()


def assert_equal_to_single_requests(http: httpx.Client, answers: Sequence[Answer]) -> None:
    for answer in answers:
        assert difference(answer.sound, ask(http, Answer(answer.seed)).sound) <= NEAR, answer.seed


def divide(answers: Sequence[Answer]) -> tuple[list[Answer], list[Answer]]:
    """Divide the answers into complete ones, and as few others as a replica speaks at a time."""
    complete = [each for each in answers if each.is_complete]
    lost = [each for each in answers if not each.is_complete]
    again = sum(len(each.replicas) > 1 for each in answers)
    logger.info("lost %s, sent again %d", [(each.status, len(each.sound)) for each in lost], again)
    assert 1 <= len(lost) <= ACTIVE
    return complete, lost


def assert_complete(http: httpx.Client) -> list[Answer]:
    answers = [Answer(seed) for seed in range(CALLERS)]
    ask_at_once(http, answers, lambda: None)
    assert all(each.is_complete for each in answers)
    return answers


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def nginx(folder: Path, replicas: Sequence[Served]) -> Iterator[httpx.Client]:
    """Run the recipe with other ports, in what Debian has around it; a header tells which replicas were tried."""
    recipe, port = (RECIPES / "nginx.conf").read_text("utf-8"), free_port()
    ports = [port, *(urlsplit(replica.url).port for replica in replicas)]
    for written, used in zip((8020, 8021, 8022), ports, strict=True):
        assert f":{written}" in recipe
        recipe = recipe.replace(f":{written}", f":{used}")
    (folder / "speech.conf").write_text(recipe)
    paths = " ".join(f"{name}_temp_path {name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    settings = f"access_log off; {paths} add_header X-Replicas $upstream_addr always; include {folder}/speech.conf;"
    (folder / "nginx.conf").write_text(f"pid nginx.pid; events {{}} http {{ {settings} }}")
    command = ["nginx", "-p", str(folder), "-c", "nginx.conf", "-e", "error.log"]
    subprocess.run(command, check=True)  # goes to the background once it listens
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, trust_env=False) as http:
            yield http
    finally:
        subprocess.run([*command, "-s", "stop"], check=True)


@pytest.mark.skipif(not shutil.which("nginx"), reason="needs nginx: apt install nginx-light")
def test_a_killed_replica_behind_nginx_loses_only_what_it_was_speaking(tmp_path: Path) -> None:
    with (
        served(*WORDS, module="utils serve") as victim,
        served(*WORDS, module="utils serve") as other,
        nginx(tmp_path, (victim, other)) as http,
    ):
        addresses = [urlsplit(replica.url).netloc for replica in (victim, other)]
        answers = [Answer(seed) for seed in range(REQUESTS)]

        def kill() -> None:
            own = (addresses[0],)
            wait_for(
                lambda: victim.counts()["waiting"] and any(a.is_being_spoken and a.replicas == own for a in answers),
                PATIENCE,
            )
            victim.process.kill()

        ask_at_once(http, answers, kill)
        complete, lost = divide(answers)
        assert {(each.status, each.replicas) for each in lost} == {(200, (addresses[0],))}  # in the middle of the audio
        assert any(each.replicas == tuple(addresses) for each in complete)  # sent again
        assert_equal_to_single_requests(http, complete)

        with contextlib.closing(Served(*WORDS, "--port", addresses[0].split(":")[1], module="utils serve")) as again:
            time.sleep(SKIPPED_SECONDS)
            assert_complete(http)  # while the new one is still loading
            again.wait_until(status="ok")
            time.sleep(SKIPPED_SECONDS)
            assert {each.replicas[-1] for each in assert_complete(http)} == set(addresses)


def replica_processes(parent: psutil.Process) -> list[psutil.Process]:
    return [process for process in parent.children(recursive=True) if "ServeReplica" in " ".join(process.cmdline())]


@contextlib.contextmanager
def ray_serve(folder: Path) -> Iterator[tuple[httpx.Client, psutil.Process]]:
    """Run the recipe with two replicas."""
    port, output = free_port(), folder / "output.txt"
    words = (*WORDS, "--min-replicas", "2", "--port", str(port))
    with output.open("w") as file:
        command = [sys.executable, str(RECIPES / "ray_serve.py"), *words]
        process = subprocess.Popen(command, env=os.environ | RAY, stdout=file, stderr=subprocess.STDOUT)
    parent = psutil.Process(process.pid)
    try:
        wait_for(lambda: "served at" in output.read_text() or process.poll() is not None, PATIENCE)
        assert process.poll() is None, output.read_text()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, trust_env=False) as http:
            yield http, parent
    finally:
        children = parent.children(recursive=True) if parent.is_running() else []
        process.terminate()
        psutil.wait_procs([parent, *children], 30)
        for child in filter(psutil.Process.is_running, children):
            child.kill()


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason='needs Ray: pip install "ray[serve]"')
def test_a_killed_replica_of_ray_serve_loses_only_what_it_was_speaking(tmp_path: Path) -> None:
    with ray_serve(tmp_path) as (http, parent):
        answers = [Answer(seed) for seed in range(REQUESTS)]
        victim, _ = replica_processes(parent)

        def kill() -> None:
            wait_for(
                lambda: sum(answer.is_being_spoken for answer in answers) > ACTIVE, PATIENCE
            )  # so both are speaking
            victim.kill()

        ask_at_once(http, answers, kill)
        complete, _ = divide(answers)
        assert_equal_to_single_requests(http, complete)

        wait_for(lambda: len(replica_processes(parent)) == 2, PATIENCE)  # Ray has started another one
        assert_complete(http)
