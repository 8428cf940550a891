"""What no line of the program does: unpickle, unpack archives, run a shell, or evaluate text."""

import ast

import pytest

from utils.core.paths import ROOT

FILES = [*sorted((ROOT / "utils").rglob("*.py")), ROOT / "xtts_demo.py"]
NEVER = set(
    "pickle.load pickle.loads joblib.load dill.load marshal.loads shutil.unpack_archive os.system os.popen "
    "tempfile.mktemp yaml.unsafe_load yaml.full_load torch.hub.load importlib.reload eval exec compile".split()
)
METHODS = {"extractall", "extract"}  # of archives
REFUSED = {"shell": True, "allow_pickle": True, "trust_remote_code": True, "verify": False}
Call = tuple[str, str, dict[str, object]]  # file and line, function, and constant keyword arguments


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    calls: list[Call] = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                keywords = [(word.arg, word.value) for word in node.keywords if word.arg]
                constants: dict[str, object] = {
                    name: value.value for name, value in keywords if isinstance(value, ast.Constant)
                }
                line = f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
                calls.append((line, ast.unparse(node.func), constants))
    return calls


def test_nothing_unpickles_unpacks_or_evaluates(calls: list[Call]) -> None:
    assert [(line, name) for line, name, _ in calls if name in NEVER or name.rpartition(".")[2] in METHODS] == []


def test_torch_loads_weights_only(calls: list[Call]) -> None:
    loads = [(line, constants.get("weights_only")) for line, name, constants in calls if name == "torch.load"]
    assert loads == [(line, True) for line, _ in loads]
    assert loads


def test_no_unsafe_option_is_used(calls: list[Call]) -> None:
    for word, value in REFUSED.items():
        assert [line for line, _, constants in calls if word in constants and constants[word] is value] == []


def test_models_of_others_are_loaded_without_their_programs(calls: list[Call]) -> None:
    loaders = [call for call in calls if call[1].endswith(".from_pretrained") or call[1] == "datasets.load_dataset"]
    assert [constants.get("trust_remote_code") for _, _, constants in loaders] == [False] * len(loaders)
    assert loaders
