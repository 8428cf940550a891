"""kill -9 at random moments of everything that runs: nothing that was written is lost, and the next one succeeds.

Each kind is killed once by default; ``SOAK_KILLS=6`` kills each of them six times, and ``SOAK_SEED`` changes when. A
kill counts only if the work was still going on.
"""

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.server.fake_server import Served as SpeechServer
from tests.soak.formats import write_dataset
from tests.ui.serving import Served
from utils.core.folders import hash_file
from utils.core.paths import ROOT, TINY_MODEL
from utils.dataset.store import load_dataset
from utils.studio import runs, uploads
from utils.studio.paths import Project
from utils.xtts.files import verify_folder

KILLS, SEED = int(os.environ.get("SOAK_KILLS", "1")), os.environ.get("SOAK_SEED", "7")
UPLOAD = """
import itertools, sys
from pathlib import Path
from utils.studio import uploads
from utils.studio.paths import Project, is_project
print("ready", flush=True)
for number in itertools.count():
    uploads.save_uploads(Project(Path(sys.argv[1])), [sys.argv[2]])
    uploads.add_input(Project(Path(sys.argv[1])), f"https://example.org/{number}.wav")
    print(number, flush=True)
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """When to kill, as a share of the time that the work takes."""
    return random.Random(f"{SEED}/{request.node.name}")


def start(*words: object) -> "subprocess.Popen[str]":
    command = [sys.executable, *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def kill_tree(process: "subprocess.Popen[str]") -> str:
    """Kill a process with its children, as lack of memory may do; return what it printed."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
    process.kill()
    return process.communicate()[0]


def is_killed(seconds: float, *words: object) -> bool:
    """Kill a command after some time; tell whether it was still running."""
    process = start(*words)
    time.sleep(seconds)
    is_running = process.poll() is None
    kill_tree(process)
    return is_running


def several(kill: Callable[[], bool]) -> None:
    """Kill as often as the campaign asks for."""
    done = 0
    while done < KILLS:
        done += kill()


def kill_when_ready(seconds: float, *words: object) -> list[str]:
    """Kill work some time after its first line; return the lines that it has printed."""
    process = start(*words)
    assert process.stdout
    first = process.stdout.readline()
    time.sleep(seconds)
    return [first.strip(), *kill_tree(process).split()]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path / "project")
    yield project
    for run in runs.list_runs(project):
        runs.stop_now(run, grace=0)


def time_of(*words: object) -> float:
    """Return how long a command takes, which must succeed."""
    began = time.monotonic()
    command = start(*words)
    output = command.communicate()[0]
    assert command.returncode == 0, output
    return time.monotonic() - began


def test_the_page_comes_back_with_everything(tmp_path: Path, chance: random.Random) -> None:
    project = Project(tmp_path / "output" / "mine")
    write_dataset(project.dataset, seconds=0.05)
    before = load_dataset(project.dataset)
    page = Served(tmp_path / "output")
    for _ in range(KILLS):
        time.sleep(3 * chance.random())
        assert page.process.poll() is None
        page.kill()
        assert load_dataset(project.dataset) == before
        page.start()
    page.kill()


def test_the_server_comes_back(chance: random.Random) -> None:
    for delay in (*(3 * chance.random() for _ in range(KILLS)), 0.0):
        with contextlib.closing(SpeechServer("--model", str(TINY_MODEL), module="utils serve")) as server:
            server.wait_until(within=600, status="ok")  # other programs share the machine
            if not delay:
                assert server.speak("ሰላም።").status_code == 200
                break
            with server.open_request("ሰላም ለዓለም። " * 20):
                time.sleep(delay)
                server.process.kill()


def test_an_export_is_whole_or_absent(tmp_path: Path, chance: random.Random) -> None:
    words = ("-m", "utils", "export", TINY_MODEL, "--out", tmp_path / "out" / "model", "--output", tmp_path)
    duration, intact = time_of(*words), hash_file(tmp_path / "out" / "model" / "model.pth")

    def kill() -> bool:
        has_been_killed = is_killed(chance.random() * duration, *words)
        verify_folder(tmp_path / "out" / "model")
        return has_been_killed

    several(kill)
    time_of(*words)
    assert hash_file(tmp_path / "out" / "model" / "model.pth") == intact


@pytest.mark.parametrize("number", range(KILLS))
def test_an_upload_is_whole_or_absent(project: Project, tmp_path: Path, chance: random.Random, number: int) -> None:
    big = tmp_path / "talk.wav"
    big.write_bytes(os.urandom(8 << 20))
    printed = kill_when_ready(3 * chance.random(), "-c", UPLOAD, project.root, big)
    assert {hash_file(path) for path in uploads.list_uploads(project)} <= {hash_file(big)}
    inputs = [name for name in uploads.read_inputs(project) if name.startswith("https")]
    done = len(printed) - 1
    assert len(inputs) in {done, done + 1}
