"""Reads the built page: its events, what they are given, and how much their handlers return."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import gradio as gr
from gradio.block_function import BlockFunction
from gradio.blocks import Block

MOST_CALLS = 6  # from a handler into what it calls
GIVEN_BY_GRADIO = (gr.Request, gr.EventData, gr.Progress)


def handlers(blocks: gr.Blocks) -> list[BlockFunction]:
    """Every event with a Python function."""
    return [event for event in blocks.fns.values() if event.fn is not None]


def name_of(event: BlockFunction) -> str:
    return str(event.api_name or event.name)


def value_of(block: Block) -> Any:
    """What a widget sends before anybody touched it; of a list in which nothing is chosen, the first choice."""
    value = getattr(block, "value", None)
    if value is None and isinstance(block, gr.Dropdown | gr.Radio) and block.choices and not is_many(block):
        return block.choices[0][1]
    if value is None and isinstance(block, gr.Textbox):
        return ""
    return value() if callable(value) else value


def is_many(block: Block) -> bool:
    return bool(getattr(block, "multiselect", False))


def split(event: BlockFunction) -> tuple[list[Block], dict[str, Block]]:
    """The inputs that are given by position, and those that are given by name."""
    names = list(event.input_keyword_names or [])
    number = len(event.inputs) - len(names)
    return list(event.inputs[:number]), dict(zip(names, event.inputs[number:], strict=True))


def called_with(event: BlockFunction) -> tuple[list[Any], dict[str, Any]]:
    """What the handler is called with on an untouched page; what gradio itself adds stands in its place."""
    placed, named = split(event)
    values = [value_of(block) for block in placed]
    parameters = parameters_of(event).values()
    for place, parameter in enumerate(parameters):
        if is_given(parameter):
            values.insert(place, request())
    return values, {name: value_of(block) for name, block in named.items()}


def function_of(event: BlockFunction) -> Callable[..., Any]:
    assert event.fn is not None
    return event.fn


def parameters_of(event: BlockFunction) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(inspect.unwrap(function_of(event))).parameters


def is_given(parameter: inspect.Parameter) -> bool:
    """Whether gradio itself fills a parameter, by its type."""
    kind = parameter.annotation
    return isinstance(kind, type) and issubclass(kind, GIVEN_BY_GRADIO)


def request() -> gr.Request:
    return gr.Request(session_hash="an audit", headers={})


def fits(event: BlockFunction, returned: Any) -> bool:
    """Whether a returned value has one part for each output."""
    number = len(event.outputs)
    if isinstance(returned, dict) and not returned.get("__type__"):
        return set(returned) <= set(event.outputs) or number == 1
    if number == 1:
        return not isinstance(returned, tuple)
    if number == 0:
        return returned is None
    return isinstance(returned, tuple | list) and len(returned) == number


def lengths(function: Callable[..., Any], depth: int = MOST_CALLS) -> set[int | None]:
    """How many values a function can return, read from its text; None where the text does not say."""
    function = inspect.unwrap(function.func if isinstance(function, partial) else function)
    names = known_names(function)
    body = tree(function)
    found: set[int | None] = set()
    if isinstance(body, ast.Lambda):
        return measured(body.body, names, depth)
    names |= {"__locals__": locals_of(body)}
    for node in own_nodes(body):
        if isinstance(node, ast.Return) or (isinstance(node, ast.Yield) and node.value):
            found |= {0} if node.value is None else measured(node.value, names, depth)
        elif isinstance(node, ast.YieldFrom):
            found |= measured(node.value, names, depth)
    return found or {0}


def tree(function: Callable[..., Any]) -> ast.AST:
    text = textwrap.dedent(inspect.getsource(function))
    try:
        parsed = ast.parse(text)
    except SyntaxError:  # a lambda in the middle of a call
        return ast.parse("None", mode="eval").body
    return next((node for node in ast.walk(parsed) if isinstance(node, ast.FunctionDef | ast.Lambda)), parsed)


def own_nodes(body: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    for child in ast.iter_child_nodes(body):
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
            yield from own_nodes(child)


def locals_of(body: ast.AST) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in own_nodes(body):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return found


def known_names(function: Callable[..., Any]) -> dict[str, Any]:
    """What the names inside a function mean, as far as that is fixed."""
    found = inspect.getclosurevars(function)
    names = {**found.builtins, **getattr(function, "__globals__", {}), **found.nonlocals}
    if inspect.ismethod(function):
        names["self"] = function.__self__
    return names


def measured(node: ast.expr, names: Mapping[str, Any], depth: int) -> set[int | None]:  # noqa: PLR0911  # one a shape
    """How many values an expression can hold; one that is no sequence holds one."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return sums(sized(part, names, depth) for part in parts)
        case ast.IfExp(body=one, orelse=other):
            return measured(one, names, depth) | measured(other, names, depth)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            times = worth(right, names)
            return {None if one is None or times is None else one * times for one in measured(left, names, depth)}
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return sums([measured(left, names, depth), measured(right, names, depth)])
        case ast.Call():
            return called(node, names, depth)
        case ast.Name(id=name) if values := names.get("__locals__", {}).get(name):
            nothing: set[int | None] = set()
            return nothing.union(*(measured(value, {**names, "__locals__": {}}, depth) for value in values))
        case ast.Constant() | ast.JoinedStr():
            return {1}
    value = worth(node, names)
    return {len(value)} if isinstance(value, tuple | list) else {None}


def sized(part: ast.expr, names: Mapping[str, Any], depth: int) -> set[int | None]:
    return measured(part.value, names, depth) if isinstance(part, ast.Starred) else {1}


def sums(parts: Any) -> set[int | None]:
    found: set[int | None] = {0}
    for part in parts:
        found = {None if one is None or two is None else one + two for one in found for two in part}
    return found


def called(node: ast.Call, names: Mapping[str, Any], depth: int) -> set[int | None]:
    function = worth(node.func, names)
    if function is None or isinstance(function, type) or not depth:
        return {None}
    if (getattr(function, "__module__", "") or "").startswith("gradio"):
        return {1}
    try:
        return lengths(function, depth - 1)
    except (TypeError, OSError):  # built in
        return {None}


def worth(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What an expression is worth before the page is used; None where that is not known."""
    try:
        return eval(compile(ast.Expression(node), "<page>", "eval"), dict(names))
    except Exception:  # noqa: BLE001  # whatever is not known before the page is used
        return None
