"""The architecture: imports point one way, and importing does nothing."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from utils.paths import ROOT

ROWS = {
    0: {
        "config",
        "flags",
        "events",
        "errors",
        "paths",
        "packages",
        "languages",
        "storage",
        "folders",
        "addresses",
        "batching",
        "drawing",
    },
    1: {"amharic", "audio", "runs", "jobs", "processes", "monitor", "projects", "sample"},
    2: {"dataset", "speedups", "training", "xtts", "synthesis"},
    3: {"training_optimizations", "evaluation", "doctor", "disk_use"},
    4: {"gpt_train", "serving", "voice", "demonstration", "soak"},
    5: {"commands", "ui"},
}
ROW_OF = {room: row for row, rooms in ROWS.items() for room in rooms}
ONLY_IN = {"TTS": "xtts", "gradio": "ui"}
NEVER = {("commands", "ui"), ("ui", "commands")}
HEAVY = {"torch", "TTS", "gradio", "transformers"}

FILES = sorted(path for path in (ROOT / "utils").rglob("*.py") if path.parent != ROOT / "utils" or path.stem[0] != "_")
LIGHT = [path for path in FILES if ROW_OF.get(path.relative_to(ROOT / "utils").parts[0].removesuffix(".py"), 9) <= 1]


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(name: str) -> str:
    return name.split(".")[1]


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute here"
            yield node.module or ""
            if node.module == "utils":
                yield from (f"utils.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=module)
def test_every_module_has_a_row(path: Path) -> None:
    assert room(module(path)) in ROW_OF, "give it a row in tests/test_layers.py and in CONTRIBUTING.md"


@pytest.mark.parametrize("path", FILES, ids=module)
def test_imports_point_to_the_same_row_or_a_lower_one(path: Path) -> None:
    here = room(module(path))
    for name in imports(path):
        if name.startswith("utils."):
            assert ROW_OF[room(name)] <= ROW_OF[here], f"{here} may not import {name}"
            assert (here, room(name)) not in NEVER, f"{here} may not import {name}"
        top = name.partition(".")[0]
        assert ONLY_IN.get(top, here) == here, f"only utils/{ONLY_IN.get(top)} may import {top}"


LOOK = """
import json, sys, threading
import random, socket  # the hook below judges what the modules do, not what these need
heard = []
def watch(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "subprocess.", "os.system", "os.exec", "os.fork")):
        heard.append(f"{event} {arguments}")
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        heard.append(f"writes {arguments[0]}")
sys.addaudithook(watch)
sys.dont_write_bytecode = True
forbidden, rooms = json.loads(sys.argv[1])
said = {}
for room, names in rooms.items():
    for ours in [name for name in sys.modules if name.partition(".")[0] == "utils"]:
        del sys.modules[ours]  # each room is the first of ours to come; the libraries stay
    for name in names:
        __import__(name)
    heard += [f"thread {thread.name}" for thread in threading.enumerate()[1:]]
    said[room] = heard + sorted({*forbidden} & {*sys.modules})
    heard = []
print(json.dumps(said))
"""


def importing(rooms: dict[str, list[str]], *, forbidden: set[str]) -> dict[str, list[str]]:
    """Import the modules of rooms, one room after the other, and return what each was heard to do."""
    words = [sys.executable, "-c", LOOK, json.dumps([sorted(forbidden), rooms])]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    found = json.loads(run.stdout)
    assert isinstance(found, dict)
    return found


def modules_of(name: str) -> list[str]:
    return [module(path) for path in FILES if room(module(path)) == name]


def test_importing_rows_0_and_1_does_nothing_and_needs_no_torch() -> None:
    assert importing({"light": [module(path) for path in LIGHT]}, forbidden=HEAVY) == {"light": []}


@pytest.mark.slow
def test_importing_a_room_does_nothing() -> None:
    rooms = {name: modules_of(name) for row in sorted(ROWS) if row > 1 for name in sorted(ROWS[row])}
    assert importing(rooms, forbidden=set()) == {name: [] for name in rooms}


def test_commands_import_nothing_heavy() -> None:
    assert importing({"commands": modules_of("commands")}, forbidden=HEAVY) == {"commands": []}


@pytest.mark.parametrize("path", FILES, ids=module)
def test_a_file_stays_below_450_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450
