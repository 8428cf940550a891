"""The architecture: imports point down the layers, and importing a module does nothing."""

import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from utils.core.paths import ROOT

LAYERS = (  # from the bottom up; a package imports from layers below its own, and from itself
    {"core"},
    {"config"},
    {"media", "amharic"},
    {"xtts"},
    {"recognition"},
    {"dataset"},
    {"speech"},
    {"evaluation"},
    {"training"},
    {"training_optimizations"},
    {"studio"},
    {"system"},
    {"gpt_train"},
    {"server"},
    {"ui"},
    {"cli"},
    {"integrations"},  # found through utils.core.integrations
)
LIGHT = {"core", "config", "media", "amharic", "cli"}  # imported by everything, or before everything
ONLY_IN = {"TTS": "xtts", "gradio": "ui", "mcp": "integrations", "wyoming": "integrations", "yt_dlp": "integrations"}
HEAVY = {"torch", "TTS", "gradio", "transformers"}
LONGEST = 450

FILES = sorted((ROOT / "utils").rglob("*.py"))


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package(name: str) -> str:
    return name.split(".")[1]


def layer(name: str) -> int:
    return next(number for number, packages in enumerate(LAYERS) if package(name) in packages)


def imports(source: str) -> Iterator[str]:
    """Every module that a source imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            is_root = node.module == "utils"
            yield from (f"utils.{alias.name}" for alias in node.names) if is_root else [node.module or ""]


def is_forbidden(name: str, imported: str) -> bool:
    """Tell whether the layer of a module forbids an import."""
    top = imported.partition(".")[0]
    if top != "utils":
        return ONLY_IN.get(top, package(name)) != package(name)
    pair = {package(imported), package(name)}
    return len(pair) == 2 and layer(imported) >= layer(name)


def violations(name: str, source: str) -> list[str]:
    return [f"{name} imports {imported}" for imported in imports(source) if is_forbidden(name, imported)]


MODULES = {module(path): path for path in FILES if path.parent != ROOT / "utils" or not path.stem.startswith("_")}


def test_imports_point_down_the_layers() -> None:
    assert [text for name, path in MODULES.items() for text in violations(name, path.read_text("utf-8"))] == []


def test_integrations_do_not_import_each_other() -> None:
    inner = [name for name in MODULES if package(name) == "integrations"]
    assert {name: found for name in inner if (found := neighbours(name, inner))} == {}


def test_only_the_registry_names_the_integrations() -> None:
    texts = {name: path.read_text("utf-8") for name, path in MODULES.items() if package(name) != "integrations"}
    assert [name for name, text in texts.items() if '"utils.integrations' in text] == ["utils.core.integrations"]


SHARED = {"utils", "testing"}
BESIDE = {"testing": SHARED, "tests": {*SHARED, "tests", "benchmarks"}, "tools": {*SHARED, "tools", "benchmarks"}}


@pytest.mark.parametrize("folder", BESIDE)
def test_tests_and_tools_do_not_import_each_other(folder: str) -> None:
    others = {"utils", "testing", "tests", "tools", "benchmarks"} - BESIDE[folder]
    paths = [path for path in (ROOT / folder).rglob("*.py") if "gpu" not in path.parts]  # tools/gpu runs the tests
    tops = {path: {name.partition(".")[0] for name in imports(path.read_text("utf-8"))} for path in paths}
    assert [path for path, names in tops.items() if names & others] == []


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return modules that import each other in a circle; empty if there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def neighbours(name: str, known: Collection[str]) -> set[str]:
    """Return the modules of the same package that a module imports anywhere, also in functions and for types only."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & set(known)) | ({node.module} if inner - set(known) else set())
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(known) - {name}


@pytest.mark.parametrize("name", sorted({package(name) for name in MODULES if "." in name}))
def test_no_package_imports_itself_in_a_circle(name: str) -> None:
    known = [each for each in MODULES if "." in each and package(each) == name]
    assert circle({each: neighbours(each, known) for each in known}) == []


PROBE = """
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
forbidden, names = json.loads(sys.argv[1])
for name in names:
    __import__(name)
heard += [f"thread {thread.name}" for thread in threading.enumerate()[1:]]
print(json.dumps(heard + sorted({*forbidden} & {*sys.modules})))
"""


def effects(names: list[str], *, forbidden: set[str]) -> list[str]:
    """Import modules in a new interpreter and return what that did, and which forbidden packages came along."""
    words = [sys.executable, "-c", PROBE, json.dumps([sorted(forbidden), names])]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    found: list[str] = json.loads(run.stdout)
    return found


def test_the_light_packages_import_nothing_heavy() -> None:
    assert effects([name for name in MODULES if package(name) in LIGHT], forbidden=HEAVY) == []


@pytest.mark.slow
def test_the_page_starts_without_torch() -> None:
    assert effects(["utils.ui.app"], forbidden={"torch", "transformers", "TTS"}) == []


@pytest.mark.slow
def test_importing_everything_does_nothing() -> None:
    assert effects(list(MODULES), forbidden=set()) == []


def test_the_name_of_a_class_means_one_thing() -> None:
    names = Counter(
        node.name
        for path in FILES
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {str(path): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST} == {}
