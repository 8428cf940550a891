"""The cells of the notebook, run in order on an empty machine: storage, program and Python stand in."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.run_kinds.count import CountConfig
from tests.waiting import wait_for
from utils.core.paths import ROOT
from utils.studio import runs
from utils.studio.paths import project
from utils.studio.run_state import State

NOTEBOOK = ROOT / "notebooks" / "train_in_the_cloud.ipynb"
CELLS: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
SET_UP, LAUNCH = ("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="both services run Linux")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty machine, whose Python makes environments that lend out the real one."""
    python = tmp_path / "tools" / "python"
    python.parent.mkdir()
    python.write_text(f"""#!/bin/sh
[ "$2 $3" = "uv venv" ] || exit 0
mkdir -p "$7/bin"
printf '#!/bin/sh\\nexec "{sys.executable}" "$@"\\n' > "$7/bin/python"
chmod +x "$7/bin/python"
""")
    python.chmod(0o755)
    monkeypatch.delenv("KAGGLE_KERNEL_RUN_TYPE", raising=False)
    monkeypatch.setenv("AMHARIC_TTS_AUTH", "")  # what a cell sets goes again
    monkeypatch.setattr(sys, "executable", str(python))
    (tmp_path / "machine").mkdir()
    monkeypatch.chdir(tmp_path / "machine")
    return tmp_path / "machine"


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Colab's storage, which notes where it is mounted."""
    mounted: list[str] = []

    def mount(folder: str) -> None:
        mounted.append(folder)
        Path(folder, "MyDrive").mkdir(parents=True, exist_ok=True)

    for name in ("google", "google.colab", "google.colab.drive"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        sys.modules[name].__spec__ = ModuleSpec(name, None)
    sys.modules["google.colab.drive"].mount = mount  # type: ignore[attr-defined]
    return mounted


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program, whose start.sh prints its words and its password."""
    folder = tmp_path / "amharic-xtts-1.0"
    (folder / "output").mkdir(parents=True)
    (folder / "start.sh").write_text('echo "start.sh $* as <$AMHARIC_TTS_AUTH>"\n', encoding="utf-8")
    (folder / "utils").symlink_to(ROOT / "utils")
    return folder


def as_zip(program: Path) -> str:
    (program / "utils").unlink()  # a zip has no links
    return shutil.make_archive(str(program), "zip", program.parent, program.name)


def as_repository(program: Path) -> str:
    git = ["git", "-C", str(program), "-c", "user.name=A", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "start.sh"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    return program.as_uri()


def call(cell: str, values: dict[str, Any], **filled: object) -> dict[str, Any]:
    """Run a cell with some of its boxes filled in; return its variables."""
    for name, value in filled.items():
        cell, count = re.subn(rf"^{name} = \S+", f"{name} = {value!r}", cell, flags=re.MULTILINE)
        assert count == 1
    exec(compile(cell, NOTEBOOK.name, "exec"), values)
    return values


@pytest.mark.parametrize("provide", [str, as_zip, as_repository])
def test_the_first_cell_brings_the_program_from_wherever_it_lies(
    machine: Path, program: Path, provide: Callable[[Path], str], capsys: pytest.CaptureFixture[str]
) -> None:
    call(SET_UP, {}, CODE=provide(program))
    assert (machine / "program" / "start.sh").is_file()
    assert (machine / "program" / ".venv" / "bin" / "python").is_file()
    assert "start.sh doctor as <>" in capsys.readouterr().out


@pytest.mark.usefixtures("machine")
def test_inside_the_folder_of_the_program_nothing_is_filled_in(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program / "notebooks").mkdir()
    (program / "output" / "mine").mkdir()
    monkeypatch.chdir(program / "notebooks")
    call(SET_UP, {})
    assert sorted(path.name for path in program.iterdir()) == [".venv", "notebooks", "output", "start.sh", "utils"]
    assert (program / "output" / "mine").is_dir()
    assert list((program / "notebooks").iterdir()) == []


def test_the_first_cell_tests_the_gpu_where_there_is_one(
    machine: Path, program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = machine.parent / "tools" / "nvidia-smi"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    call(SET_UP, {}, CODE=str(program))
    assert capsys.readouterr().out == "start.sh doctor as <>\nstart.sh doctor --gpu as <>\n"


def test_another_machine_finds_the_projects_on_the_mounted_storage(
    machine: Path, drive: list[str], program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(SET_UP, {}, CODE=str(program))
    project_folder = machine / "program" / "output" / "mine"
    project_folder.mkdir()
    assert drive == [str(machine / "drive")]
    assert (machine / "drive" / "MyDrive" / "amharic-xtts" / "mine").is_dir()
    capsys.readouterr()
    call(SET_UP, {})
    assert capsys.readouterr().out == "start.sh doctor as <>\n"
    assert project_folder.is_dir()
    shutil.rmtree(machine / "program")
    call(SET_UP, {}, CODE=str(program))
    assert project_folder.is_dir()


def test_kaggle_needs_no_mount(machine: Path, drive: list[str], program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")
    call(SET_UP, {}, CODE=str(program))
    assert drive == []
    assert (machine / "program" / "output").resolve() == machine / "amharic-xtts"


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(("password", "given"), [("s3cret", "amharic:s3cret"), ("", "")])
def test_the_second_cell_opens_a_shared_page_with_its_password_off_the_command_line(
    program: Path, password: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    values = call(SET_UP, {}, CODE=str(program))
    capsys.readouterr()
    call(LAUNCH, values, PASSWORD=password, RESUME=False)
    assert capsys.readouterr().out == f"start.sh --share as <{given}>\n"


@pytest.mark.slow
def test_the_last_run_that_was_cut_off_goes_on(
    machine: Path, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = call(SET_UP, {}, CODE=str(program))
    long_ago = time.time() - 3600
    lost = State("count", "running", long_ago, 7, "x", "elsewhere", long_ago)
    mine = project("mine", machine / "amharic-xtts")
    interrupted = []
    for _ in range(2):
        interrupted.append(runs.create("count", CountConfig(seconds=0.1), mine))
        interrupted[-1].write_state(lost)
    old, cut_off = interrupted
    call(LAUNCH, values, RESUME=True)
    assert f"mine: {cut_off.name} goes on." in capsys.readouterr().out
    wait_for(lambda: cut_off.current_state().status not in runs.ACTIVE, 60)
    assert (cut_off.current_state().status, old.current_state().status) == ("finished", "lost")
