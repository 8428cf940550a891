"""What can be said of the image without building it: its recipe, what goes into it, and what it starts."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

import xtts_demo
from utils.core.paths import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STEPS = [
    tuple(line.split(maxsplit=1))
    for line in re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
    if line
]
RUNS = [words for step, words in STEPS if step == "RUN"]
COPIES = [source for step, words in STEPS if step == "COPY" for source in words.split()[:-1]]
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
SERVICES: dict[str, Any] = yaml.safe_load(COMPOSE)["services"]
IGNORED = [
    line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"
]
posix = pytest.mark.skipif(sys.platform == "win32", reason="the image runs Linux")


def step(name: str) -> str:
    """The last of the steps of one kind, which is the one that counts."""
    return [words for kind, words in STEPS if kind == name][-1]


def is_left_out(path: str) -> bool:
    """What .dockerignore says: the last line that fits a file or a folder above it decides."""
    parts, decided = path.split("/"), False
    for line in IGNORED:
        pattern = line.removeprefix("!")
        where = parts if pattern.startswith("**/") else parts[:1]
        if any(fnmatchcase(part, pattern.removeprefix("**/")) for part in where):
            decided = not line.startswith("!")
    return decided


def test_the_base_image_is_pinned_to_a_patch_and_a_system() -> None:
    images = [words for kind, words in STEPS if kind == "FROM"]
    assert all(re.fullmatch(r"python:3\.11\.\d+-slim-\w+", image) for image in images)
    assert len(images) == 1


def test_its_python_is_one_that_start_sh_takes() -> None:
    found = re.search(r"python:(\d+)\.(\d+)", step("FROM"))
    assert found
    assert (3, 11) <= (int(found[1]), int(found[2])) < (3, 13)


def test_it_does_not_run_as_root_and_nothing_comes_after_that() -> None:
    kinds = [kind for kind, _ in STEPS]
    assert step("USER") == "voice"
    assert any("useradd" in words and words.endswith("voice") for words in RUNS)
    assert not {"RUN", "COPY", "ADD"} & set(kinds[kinds.index("USER") :])


RULES = {
    "a shell that notices a fault in a pipe": lambda: "pipefail" in step("SHELL"),
    "a folder of its own": lambda: step("WORKDIR") == "/app",
    "no ADD, which fetches and unpacks": lambda: "ADD" not in {kind for kind, _ in STEPS},
    "no sudo": lambda: "sudo" not in TEXT,
    "no name latest": lambda: "latest" not in TEXT,
    "lists in words, so that signals arrive": lambda: step("ENTRYPOINT")[0] == step("CMD")[0] == "[",
    "no cache of pip": lambda: all(
        "--no-cache" in one for run in RUNS for one in run.split(";") if "pip install" in one
    ),
    "no lists of apt": lambda: all("rm -rf /var/lib/apt/lists" in run for run in RUNS if "apt-get install" in run),
    "pinned tools": lambda: all(
        re.search(r"==|-r ", one) for run in RUNS for one in run.split(";") if "pip install" in one
    ),
    "lists before the code": lambda: COPIES.index("constraints.txt") < COPIES.index("utils"),
    "only projects outlive it": lambda: step("VOLUME") == '["/app/output"]',
}


@pytest.mark.parametrize("rule", RULES)
def test_the_recipe_keeps_the_rules(rule: str) -> None:
    assert RULES[rule]()


@pytest.mark.parametrize("source", COPIES)
def test_what_is_copied_is_there_and_reaches_the_builder(source: str) -> None:
    assert (ROOT / source).exists()
    assert not is_left_out(source)


@pytest.mark.parametrize("name", ["xtts_demo.py", "utils/ui/strings/data.tsv", "utils/amharic/data/units.tsv"])
def test_what_the_page_needs_goes_in(name: str) -> None:
    assert (ROOT / name).is_file()
    assert not is_left_out(name)
    assert any(name == source or name.startswith(f"{source}/") for source in COPIES)


@pytest.mark.parametrize(
    "name",
    [
        ".git/config",
        ".env",
        "output/mine/dataset/metadata_train.csv",
        "tests/conftest.py",
        ".venv/bin/python",
        "key.txt",
        "utils/__pycache__/paths.cpython-311.pyc",
        "utils/.env",
        "configs/.secret.yaml",
        "docker-compose.yml",
    ],
)
def test_what_nobody_else_should_see_stays_outside(name: str) -> None:
    assert is_left_out(name)


def settings(text: str) -> Iterator[tuple[str, str]]:
    """Names of variables with what they are set to."""
    yield from re.findall(r"\b([A-Z][A-Z_]+)[=:][ \t]*([^\s\\#]\S*)", text)


@pytest.mark.parametrize("text", [TEXT, COMPOSE], ids=["Dockerfile", "compose"])
def test_no_secret_is_written_down(text: str) -> None:
    shown = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    assert [name for name, _ in settings(shown) if re.search(r"TOKEN|KEY|AUTH|PASSWORD|SECRET", name)] == []


@pytest.mark.parametrize("text", [TEXT, COMPOSE], ids=["Dockerfile", "compose"])
def test_no_other_computer_is_named(text: str) -> None:
    hosts = re.findall(r"https?://([^/:\s'\"]+)", text)
    assert set(hosts) <= {"127.0.0.1"}


def stand_in(folder: Path) -> Path:
    """A Python that makes environments with itself inside, and notes what it is asked."""
    program = folder / "python"
    program.write_text(
        '#!/bin/sh\nprintf "%s %s\\n" "$0" "$*" >> "$NOTES"\n'
        'if [ "$2" = venv ]; then mkdir -p .venv/bin && cp "$0" .venv/bin/python; fi\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program


def installed(kind: str, folder: Path) -> tuple[int, list[str]]:
    """Run the step that installs, with a Python that only notes what it is asked."""
    for name in ("requirements.txt", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    (bin_ := folder / "bin").mkdir()
    stand_in(bin_)
    shell = shlex.split(step("SHELL").strip("[]").replace(",", " "))
    (script,) = [words for words in RUNS if "venv" in words]
    environment = {"PATH": f"{bin_}:{os.environ['PATH']}", "TORCH": kind, "NOTES": str(folder / "notes")}
    done = subprocess.run([*shell, script], cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode, (folder / "notes").read_text(encoding="utf-8").splitlines()


@posix
@pytest.mark.parametrize(("kind", "first"), [("cpu", "--torch-backend=cpu"), ("cuda", "")])
def test_each_kind_installs_the_pinned_lists(tmp_path: Path, kind: str, first: str) -> None:
    code, asked = installed(kind, tmp_path)
    assert code == 0
    assert asked[-1].endswith("-m pip install --no-cache-dir --disable-pip-version-check -r requirements.txt")
    assert any(first in line and "uv pip install" in line for line in asked) is bool(first)
    assert not (tmp_path / "torch.txt").exists()


@posix
def test_a_kind_that_there_is_not_is_refused(tmp_path: Path) -> None:
    code, asked = installed("tpu", tmp_path)
    assert code == 1
    assert not any("requirements.txt" in line for line in asked)


@posix
def test_start_sh_finds_nothing_left_to_install(tmp_path: Path) -> None:
    installed("cuda", tmp_path)
    shutil.copy(ROOT / "start.sh", tmp_path)
    (tmp_path / "utils").mkdir()
    (tmp_path / "notes").unlink()
    environment = os.environ | {"NOTES": str(tmp_path / "notes")}
    done = subprocess.run(
        [tmp_path / "start.sh", "doctor"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "pip install" not in (tmp_path / "notes").read_text(encoding="utf-8")


def test_it_starts_what_start_sh_starts() -> None:
    words = shlex.split(step("CMD").strip("[]").replace(",", " "))
    arguments = xtts_demo.parser().parse_args(words)
    assert step("ENTRYPOINT") == '["./start.sh"]'
    assert (arguments.host, arguments.share) == ("0.0.0.0", False)
    assert str(arguments.port) == step("EXPOSE")


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_published_on_this_computer_alone_and_keeps_its_projects(service: str) -> None:
    found = SERVICES[service]
    assert all(port.startswith("127.0.0.1:") for port in found["ports"])
    assert found["volumes"] == ["./output:/app/output"]
    assert "network_mode" not in found
    assert "privileged" not in found


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_has_no_right_that_it_does_not_need(service: str) -> None:
    found = SERVICES[service]
    assert found["cap_drop"] == ["ALL"]
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert all(value is None for value in found["environment"].values())


def test_the_page_alone_starts_without_being_asked_for() -> None:
    assert [name for name, found in SERVICES.items() if "profiles" not in found] == ["page"]


@pytest.mark.parametrize(("service", "kind"), [("page", "cpu"), ("page-gpu", "cuda")])
def test_a_service_builds_its_kind_with_arguments_of_the_recipe(service: str, kind: str) -> None:
    known = {words.partition("=")[0] for kind, words in STEPS if kind == "ARG"}
    arguments = SERVICES[service]["build"]["args"]
    assert arguments["TORCH"] == kind
    assert set(arguments) <= known
