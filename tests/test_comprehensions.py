"""No comprehension reads a name that another one in the same function binds.

Python 3.12 runs list, set and dictionary comprehensions inside their function. Until 3.12.3, a global that one of them
reads is then taken for the variable of the other (python/cpython#118513).
"""

import ast
from collections.abc import Iterator

from utils.core.paths import ROOT

INLINED = ast.ListComp | ast.SetComp | ast.DictComp
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
SCOPES = FUNCTIONS | ast.ClassDef | ast.GeneratorExp
FOLDERS = "utils", "tests", "testing", "tools", "benchmarks"
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of scopes inside it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting += ast.iter_child_nodes(node)


def names(tree: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def mixed_names(function: FUNCTIONS) -> set[str]:
    """Return the names that one comprehension reads from outside and another one binds."""
    nodes = list(own_nodes(function))
    every = [node for node in nodes if isinstance(node, INLINED)]
    inner = {id(node) for outer in every for node in ast.walk(outer) if node is not outer}
    comprehensions = [node for node in every if id(node) not in inner]
    local = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in inner:
            local.add(node.id)
    mixed: set[str] = set()
    for reader in comprehensions:
        read = names(reader, ast.Load) - names(reader, ast.Store) - local
        for other in comprehensions:
            mixed |= read & names(other, ast.Store) if other is not reader else set()
    return mixed


def functions(source: str) -> Iterator[FUNCTIONS]:
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTIONS))


def test_no_two_comprehensions_mean_different_things_by_one_name() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{function.lineno} {sorted(mixed)}"
        for path in FILES
        for function in functions(path.read_text("utf-8"))
        if (mixed := mixed_names(function))
    ]
    assert found == []
