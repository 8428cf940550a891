"""start.sh: a stamp instead of pip on the second start, and a broken environment is mended."""

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.waiting import wait_for
from utils.core.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="start.bat does this on Windows")


OUTSIDE = {name: value for name, value in os.environ.items() if name != "PYTHON"}  # start.sh may have been given one
ALONE = OUTSIDE | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "UV_OFFLINE": "1"}  # there is nothing to fetch


def copied(folder: Path) -> Path:
    """A copy of what start.sh touches, with nothing to install, in a folder that is hard on scripts."""
    folder = folder / "የእኔ ሥራ (1)"
    modules = ("__init__", "system/__init__", "system/packages", "system/torch_build")
    for name in ("start.sh", "overrides.txt", *(f"utils/{module}.py" for module in modules)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "pyproject.toml").write_text("[project]\ndependencies = []\n", encoding="utf-8")
    (folder / "requirements.txt").write_text("# nothing\n", encoding="utf-8")
    (folder / "tests").mkdir()
    (folder / "tests" / "requirements.txt").write_text("# nothing\n", encoding="utf-8")
    (folder / "xtts_demo.py").write_text("import sys; print('page', *sys.argv[1:])\n", encoding="utf-8")
    (folder / "utils" / "__main__.py").write_text("import sys; print('verb', *sys.argv[1:])\n", encoding="utf-8")
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return copied(tmp_path)


def start(checkout: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command, variables = [str(checkout / "start.sh"), *words], ALONE | environment
    return subprocess.run(command, cwd="/", env=variables, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout that was started once; to be copied instead of starting another one first."""
    checkout = copied(tmp_path_factory.mktemp("started"))
    assert start(checkout).returncode == 0
    return checkout


@pytest.fixture
def installed(started: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(started, tmp_path / started.name, symlinks=True))


def want_a_package(checkout: Path) -> None:
    """Put a package of one line beside the checkout, and on its list."""
    with zipfile.ZipFile(checkout / "stand_in-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("stand_in.py", "there = True\n")
        wheel.writestr("stand_in-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: stand-in\nVersion: 1.0\n")
        wheel.writestr("stand_in-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("stand_in-1.0.dist-info/RECORD", "")
    (checkout / "pyproject.toml").write_text('[project]\ndependencies = ["stand-in==1.0"]\n', encoding="utf-8")
    (checkout / "requirements.txt").write_text("stand-in==1.0\n", encoding="utf-8")


def assert_mended(checkout: Path, said: str, **environment: str) -> None:
    mended = start(checkout, **environment)
    assert (mended.returncode, mended.stdout) == (0, "page\n"), mended.stderr
    assert said in mended.stderr


@pytest.mark.slow
def test_only_the_first_start_makes_the_environment(checkout: Path) -> None:
    first = start(checkout)
    assert (first.returncode, first.stdout) == (0, "page\n"), first.stderr
    assert "Installing requirements.txt" in first.stderr
    second = start(checkout, "--port", "7870")
    assert (second.stdout, second.stderr) == ("page --port 7870\n", "")
    assert start(checkout, "doctor", "--json").stdout == "verb doctor --json\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda venv: (venv / "bin" / "python").unlink(), "is damaged; creating it again"),
        (lambda venv: (venv / ".installed").unlink(), "Installing requirements.txt"),
        pytest.param(
            lambda venv: shutil.rmtree(next(venv.glob("lib/python*/site-packages/pip"))),
            "is damaged; creating it again",
            marks=pytest.mark.long,
        ),
        (lambda venv: (venv.parent / "requirements.txt").write_text("# new\n"), "Installing requirements.txt"),
    ],
    ids=["no python", "half made", "no pip", "a new list"],
)
def test_a_broken_environment_is_mended(installed: Path, harm: Callable[[Path], object], said: str) -> None:
    assert start(installed).stderr == ""
    harm(installed / ".venv")
    assert_mended(installed, said)


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["stand_in.py", "stand_in-1.0.dist-info"])
def test_a_package_that_lost_its_files_is_installed_again(installed: Path, gone: str) -> None:
    (installed / ".venv" / ".installed").unlink()
    want_a_package(installed)
    offline = {"PIP_FIND_LINKS": installed.as_uri()}
    assert start(installed, **offline).returncode == 0
    (lost,) = (installed / ".venv" / "lib").glob(f"python*/site-packages/{gone}")
    shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
    assert_mended(installed, "stand-in==1.0. Installing", **offline)
    assert lost.exists()
    assert "Installing them again" not in start(installed).stderr


@pytest.mark.long
def test_a_start_that_was_killed_while_python_got_pip_is_mended(checkout: Path) -> None:
    killed = subprocess.Popen([checkout / "start.sh"], env=ALONE, stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for((checkout / ".venv" / "bin" / "python").exists, 60)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert_mended(checkout, "")


@pytest.mark.slow
def test_two_starts_at_the_same_time_make_one_environment(checkout: Path) -> None:
    both = [subprocess.Popen([checkout / "start.sh"], env=ALONE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [one.communicate(timeout=120)[0] for one in both] == ["page\n"] * 2


@pytest.mark.slow
def test_an_installation_that_broke_off_goes_on(installed: Path) -> None:
    (installed / ".venv" / ".installed").unlink()
    (installed / "requirements.txt").write_text("no-such-package-of-ours==1.0\n", encoding="utf-8")
    broken = start(installed)
    assert broken.returncode == 1
    assert "run the same command again" in broken.stderr
    (installed / "requirements.txt").write_text("# nothing\n", encoding="utf-8")
    assert start(installed).returncode == 0


@pytest.fixture
def bare(checkout: Path) -> str:
    """A PATH without any Python."""
    (checkout / "bin").mkdir()
    for tool in ("bash", "dirname", "cat", "cksum", "rm", "env", "sed"):
        (checkout / "bin" / tool).symlink_to(shutil.which(tool) or "")
    return str(checkout / "bin")


def test_a_missing_python_is_said_with_its_cure(checkout: Path, bare: str) -> None:
    lost = start(checkout, PATH=bare)
    assert lost.returncode == 1
    assert "Install Python 3.12" in lost.stderr


@pytest.mark.slow
def test_uv_brings_a_python_where_there_is_none(checkout: Path, bare: str) -> None:
    uv = Path(bare) / "uv"
    uv.write_text(f"""#!/bin/sh\n[ "$1" = venv ] && exec {sys.executable} -m venv .venv\n""", encoding="utf-8")
    uv.chmod(0o755)
    started = start(checkout, PATH=bare)
    assert (started.returncode, started.stdout) == (0, "page\n"), started.stderr
    assert "uv downloads one" in started.stderr


def test_the_batch_file_keeps_exclamation_marks_of_its_arguments() -> None:
    """The file was not run on Windows: this only reads it."""
    lines = (ROOT / "start.bat").read_text(encoding="utf-8").splitlines()
    delayed = True
    for line in lines:
        delayed = {"setlocal disabledelayedexpansion": False}.get(line, delayed)
        assert not (delayed and "%*" in line), line
        if line.startswith(":find_python"):
            break


def test_the_batch_file_and_the_image_take_the_same_programs() -> None:
    text = (ROOT / "start.bat").read_bytes()
    words = (
        b"-m utils.system.packages",
        b"tests\\requirements.txt",
        b"xtts_demo.py",
        b"-m utils.system.torch_build",
        b"\r\n",
    )
    assert [word for word in words if word not in text] == []
    files = [(ROOT / name).read_text(encoding="utf-8") for name in ("start.sh", "start.bat", "Dockerfile")]
    pins = [set(re.findall(r"\buv==[\d.]+", file)) for file in files]
    assert pins[0] == pins[1] == pins[2] != set()
