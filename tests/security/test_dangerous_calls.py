"""What no line of the program does: unpickle, unpack archives, run a shell, or evaluate text."""

import ast

from utils.core.paths import ROOT

FILES = [*sorted((ROOT / "utils").rglob("*.py")), ROOT / "xtts_demo.py"]
NEVER = set(
    "pickle.load pickle.loads joblib.load dill.load marshal.loads shutil.unpack_archive os.system os.popen "
    "tempfile.mktemp yaml.unsafe_load yaml.full_load torch.hub.load importlib.reload eval exec compile".split()
)
METHODS = {"extractall", "extract"}  # of archives
REFUSED = {"shell": True, "allow_pickle": True, "trust_remote_code": True, "verify": False}
Call = tuple[str, str, dict[str, object]]  # file and line, function, and constant keyword arguments


def calls() -> list[Call]:
    calls: list[Call] = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                words = [(word.arg, word.value) for word in node.keywords]
                constants: dict[str, object] = {
                    name: value.value for name, value in words if name and isinstance(value, ast.Constant)
                }
                calls.append((f"{path.relative_to(ROOT)}:{node.lineno}", ast.unparse(node.func), constants))
    return calls


def test_nothing_unpickles_unpacks_evaluates_or_runs_programs_of_others() -> None:
    loads, loaders = [], []
    for line, name, constants in calls():
        assert name not in NEVER, line
        assert name.rpartition(".")[2] not in METHODS, line
        assert not [word for word, value in REFUSED.items() if word in constants and constants[word] is value], line
        if name == "torch.load":
            loads.append(constants.get("weights_only"))
        if name.endswith(".from_pretrained") or name == "datasets.load_dataset":
            loaders.append(constants.get("trust_remote_code"))
    assert loads == [True] * len(loads) != []
    assert loaders == [False] * len(loaders) != []
