"""start.sh: a stamp instead of pip on the second start, and a broken environment is mended."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from utils.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="start.bat does this on Windows")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what start.sh touches, with nothing to install and pip replaced by one that takes notes."""
    for name in ("start.sh", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "requirements.txt").write_text("# nothing\n", encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "requirements.txt").write_text("# nothing\n", encoding="utf-8")
    (tmp_path / "xtts_demo.py").write_text("import sys; print('page', *sys.argv[1:])\n", encoding="utf-8")
    (tmp_path / "utils").mkdir()
    (tmp_path / "utils" / "__main__.py").write_text("import sys; print('verb', *sys.argv[1:])\n", encoding="utf-8")
    return tmp_path


def start(checkout: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["./start.sh", *words],
        cwd=checkout,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def give_modules(checkout: Path) -> None:
    """Stand-ins for the packages whose presence start.sh asks for."""
    (site,) = (checkout / ".venv" / "lib").glob("python*/site-packages")
    for name in "gradio torch torchaudio TTS transformers faster_whisper pandas epitran pydantic yaml".split():
        (site / f"{name}.py").touch()


@pytest.mark.slow
def test_the_first_start_makes_the_environment_and_the_next_ones_do_not(checkout: Path) -> None:
    first = start(checkout)
    assert (first.returncode, first.stdout) == (0, "page\n"), first.stderr
    assert "Installing requirements.txt" in first.stderr
    give_modules(checkout)
    began = time.perf_counter()
    second = start(checkout, "--port", "7870")
    assert (second.stdout, second.stderr) == ("page --port 7870\n", "")
    assert time.perf_counter() - began < 3
    assert start(checkout, "doctor", "--json").stdout == "verb doctor --json\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda venv: (venv / "bin" / "python").unlink(), "does not work; making it again"),
        (lambda venv: (venv / ".installed").unlink(), "Installing requirements.txt"),
        (
            lambda venv: next(venv.glob("lib/python*/site-packages/torch.py")).unlink(),
            "Some packages in .venv are missing",
        ),
        (lambda venv: (venv.parent / "requirements.txt").write_text("# new\n"), "Installing requirements.txt"),
    ],
    ids=["no python", "half made", "a package is gone", "a new list"],
)
def test_a_broken_environment_is_mended(checkout: Path, harm: object, said: str) -> None:
    assert start(checkout).returncode == 0
    give_modules(checkout)
    assert callable(harm)
    harm(checkout / ".venv")
    mended = start(checkout)
    assert (mended.returncode, mended.stdout) == (0, "page\n"), mended.stderr
    assert said in mended.stderr


@pytest.mark.slow
def test_an_installation_that_breaks_off_is_said_and_goes_on_next_time(checkout: Path) -> None:
    (checkout / "requirements.txt").write_text("no-such-package-of-ours==1.0\n", encoding="utf-8")
    broken = start(checkout, PIP_NO_INDEX="1")
    assert broken.returncode == 1
    assert "run the same command again" in broken.stderr
    (checkout / "requirements.txt").write_text("# nothing\n", encoding="utf-8")
    assert start(checkout).returncode == 0


def test_a_missing_python_is_said_with_its_cure(checkout: Path) -> None:
    (checkout / "bin").mkdir()
    for tool in ("bash", "dirname", "cat", "cksum", "rm", "env"):
        (checkout / "bin" / tool).symlink_to(shutil.which(tool) or "")
    lost = start(checkout, PATH=str(checkout / "bin"))
    assert lost.returncode == 1
    assert "Install one of them" in lost.stderr


def test_the_batch_file_knows_the_same_words() -> None:
    text = (ROOT / "start.bat").read_bytes()
    assert b"\r\n" in text
    for word in (
        b"requirements.txt",
        b"tests\\requirements.txt",
        b"-m utils",
        b"xtts_demo.py",
        b"--torch-backend=auto",
    ):
        assert word in text
