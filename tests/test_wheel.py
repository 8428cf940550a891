"""The wheel: the package alone, which works from a folder with another ``utils`` and keeps its files elsewhere."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from utils.core.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="the script is a .exe there")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    (built,) = folder.glob("amharic_xtts-*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = ["install", "--quiet", "--no-deps", "--no-index", "--target", str(folder), str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    return folder


def program(site: Path, folder: Path, *words: str, **environment: str) -> str:
    """Run the installed program in a folder that has a ``utils`` of its own, and return what it prints."""
    (folder / "utils").mkdir(exist_ok=True)
    (folder / "utils" / "__init__.py").write_text("raise ImportError('this is another utils')\n", encoding="utf-8")
    variables = {**os.environ, "PYTHONPATH": str(site), "HOME": str(folder / "home"), **environment}
    variables.pop("XDG_DATA_HOME", None)
    command = [str(site / "bin" / "amharic-xtts"), *words]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_nothing_beside_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {
        "utils",
        f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info",
    }
    assert {"utils/configs/tiny_cpu.yaml", "utils/LICENSE", "utils/xtts/data/tiny/model.pth"} <= set(names)


def test_the_installed_program_prepares_and_speaks(site: Path, tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    assert "hello.wav" in program(
        site, tmp_path, "speak", "ሰላም ለዓለም።", "--model", "tiny", "--out", "recordings/hello.wav"
    )
    (recordings / "hello.txt").write_text("ሰላም ለዓለም።\n", encoding="utf-8")
    home = tmp_path / "mine"
    program(site, tmp_path, "prepare", "--project", "mine", "recordings", AMHARIC_XTTS_HOME=str(home))
    assert (home / "output" / "mine" / "dataset" / "clips.db").is_file()


def test_without_a_variable_projects_are_in_the_users_data_folder(site: Path, tmp_path: Path) -> None:
    told = program(site, tmp_path, "runs", "list", "--help")
    assert str(tmp_path / "home" / ".local" / "share" / "amharic-xtts" / "output") in "".join(told.split())
