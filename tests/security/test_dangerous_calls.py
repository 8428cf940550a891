"""What no line of the program does: unpickle, unpack archives, run a shell, or evaluate text."""

import ast
from collections.abc import Iterator

import pytest

from utils.core.paths import ROOT

FILES = [*sorted((ROOT / "utils").rglob("*.py")), ROOT / "xtts_demo.py"]
NEVER = {
    "pickle.load",
    "pickle.loads",
    "joblib.load",
    "dill.load",
    "marshal.loads",
    "shutil.unpack_archive",
    "os.system",
    "os.popen",
    "tempfile.mktemp",
    "yaml.unsafe_load",
    "yaml.full_load",
    "torch.hub.load",
    "importlib.reload",
    "eval",
    "exec",
    "compile",
}
METHODS = {"extractall", "extract"}  # of archives
ASKED = {"torch.load": {"weights_only": True}}
REFUSED = {"shell": True, "allow_pickle": True, "trust_remote_code": True, "verify": False}
Call = tuple[str, str, ast.Call]  # where, of what, and the call itself


def found_calls() -> Iterator[Call]:
    for path in FILES:
        place = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield f"{place}:{node.lineno}", ast.unparse(node.func), node


def given(call: ast.Call) -> dict[str, object]:
    """The arguments with a name whose values stand there."""
    return {word.arg: word.value.value for word in call.keywords if word.arg and isinstance(word.value, ast.Constant)}


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    return list(found_calls())


def test_nothing_unpickles_unpacks_or_evaluates(calls: list[Call]) -> None:
    found = [(place, name) for place, name, _ in calls if name in NEVER or name.rpartition(".")[2] in METHODS]
    assert found == []


def test_what_has_a_safe_way_is_called_in_it(calls: list[Call]) -> None:
    found = [
        (place, name)
        for place, name, call in calls
        if any(given(call).get(word) is not value for word, value in ASKED.get(name, {}).items())
    ]
    assert found == []
    assert any(name == "torch.load" for _, name, _ in calls)


@pytest.mark.parametrize("word", REFUSED)
def test_what_has_an_unsafe_way_is_not_called_in_it(calls: list[Call], word: str) -> None:
    assert [place for place, _, call in calls if word in given(call) and given(call)[word] is REFUSED[word]] == []


def test_models_of_others_are_loaded_without_their_programs(calls: list[Call]) -> None:
    loaders = [call for _, name, call in calls if name.endswith(".from_pretrained") or name == "datasets.load_dataset"]
    assert [given(call).get("trust_remote_code") for call in loaders] == [False] * len(loaders)
    assert loaders
