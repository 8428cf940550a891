"""The commands of the reference and of README, executed as they are written, in a fresh checkout without a network."""

import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from utils.core.paths import ROOT, SAMPLE_SPEECH

pytestmark = [pytest.mark.readme, pytest.mark.timeout(1800)]
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
FAILURES = {  # without a network, a GPU or the weights of XTTS v2
    "--corpus amharic-speech": "cannot be downloaded",
    "--config configs/memory_optimized.yaml": "licence",
    "doctor --gpu": "cannot find a GPU",
    "field-test": "licence",
}
SERVERS = {"serve --model mine": "http://127.0.0.1:8020/health", "": "http://127.0.0.1:7860/"}
ELSEWHERE = ("./start.sh test",)  # .ci/run does it


def commands() -> list[str]:
    pages = [(ROOT / page).read_text(encoding="utf-8") for page in ("docs/REFERENCE.md", "README.md")]
    lines = "".join(block for page in pages for block in BLOCK.findall(page)).splitlines()
    return list(dict.fromkeys(line.split("  #")[0].rstrip() for line in lines))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files in the repository, with the environment of these tests."""
    folder = tmp_path_factory.mktemp("readme") / "checkout"
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / "book.txt").write_text("ሰላም ለዓለም።\n", encoding="utf-8")
    recordings = folder.parent / "recordings"
    recordings.mkdir()
    for path in (SAMPLE_SPEECH, SAMPLE_SPEECH.with_name("sample.am.srt")):
        shutil.copy2(path, recordings / path.name)
    return folder


def run(line: str, checkout: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"HOME": str(checkout.parent), "BROWSER": "true", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(
        ["bash", "-c", f"exec {line}"],
        cwd=checkout,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # one thread starts it
    )


def answers(address: str, process: subprocess.Popen[str]) -> bool:
    while process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5) as response:
                return bool(response.status == 200)
        except urllib.error.HTTPError as error:
            if error.code != 503:  # the server, while it loads
                return error.code == 401  # the page, which asks for the token of its link
            time.sleep(0.5)
        except OSError:
            time.sleep(0.5)
    return False


@pytest.mark.parametrize("line", commands())
def test_a_command_works_as_written(line: str, checkout: Path) -> None:
    if line in ELSEWHERE:
        return
    process = run(line, checkout)
    arguments = line.removeprefix("./start.sh").strip()
    if address := SERVERS.get(arguments):
        is_there = answers(address, process)
        process.send_signal(signal.SIGINT)
        assert is_there
    output, _ = process.communicate(timeout=900)
    assert "Traceback" not in output
    expected = next((message for part, message in FAILURES.items() if part in line), None)
    if expected is None:
        assert process.returncode in {0, 130} if address else process.returncode == 0, output
    else:
        assert process.returncode == 1, output
        assert expected in output
