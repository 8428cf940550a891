"""No test without an assertion, own or of a function of the tests that it calls."""

import ast
from pathlib import Path

TESTS = Path(__file__).parent
CHECKS = {"raises", "warns", "expect", "fail"}


def called(function: ast.FunctionDef) -> set[str]:
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in calls}


def asserts(function: ast.FunctionDef, known: set[str]) -> bool:
    own = any(isinstance(node, ast.Assert) for node in ast.walk(function))
    return own or any(name in known or name.startswith("assert_") for name in called(function))


def test_every_test_asserts_something() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    places = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    functions = [(path, node) for path, node in places if isinstance(node, ast.FunctionDef)]
    known, before = set(CHECKS), 0
    while len(known) > before:  # functions that assert, and those that call them
        before = len(known)
        known |= {node.name for _, node in functions if not node.name.startswith("test_") and asserts(node, known)}
    found = [(path, node) for path, node in functions if node.name.startswith("test_")]
    assert len(found) > 1_000
    assert [f"{path.name}:{node.lineno} {node.name}" for path, node in found if not asserts(node, known)] == []
