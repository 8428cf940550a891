"""Writes docs/REFERENCE.md below its mark from the code: `python docs/make_api.py`; a test fails when it is stale.

Classes are read as text, not imported, so that neither torch nor coqui-tts is loaded; settings and commands are light.
"""  # noqa: INP001  a folder of pages, not a package

import argparse
import ast
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args, get_origin

sys.path.insert(0, str(Path(__file__).parent.parent))

from pydantic.fields import FieldInfo

from utils import __main__ as entry
from utils.config import (
    Config,
    DatasetConfig,
    DownloadConfig,
    FeaturesConfig,
    ServeConfig,
    SpeakerConfig,
    SpeechConfig,
    TrainConfig,
    flags,
)
from utils.core.paths import ROOT

PAGE = Path(__file__).with_name("REFERENCE.md")
PYTHON = {  # file, and what of it is for other programs
    "utils/gpt_train.py": ("train_gpt",),
    "utils/training/fit.py": ("fit", "TrainResult"),
    "utils/training/optimizations.py": ("TrainingOptimizer", "UnslothStyleOptimizations"),
    "utils/core/facts.py": ("Optimization",),
    "utils/speech/synthesizer.py": ("open_voice", "Synthesizer"),
    "utils/integrations/dubbing.py": ("dub",),
    "utils/speech/types.py": ("Speech", "Utterance", "Sentence"),
    "utils/amharic/normalization.py": ("normalize",),
    "utils/amharic/phonemes.py": ("phonemize",),
    "utils/amharic/alphabet.py": ("to_latin",),
    "utils/amharic/explanation.py": ("explain",),
}
FACES = {"utils/training/optimizations.py": "utils.training_optimizations"}  # what other programs import
CONFIGS: tuple[type[Config], ...] = (
    TrainConfig,
    DatasetConfig,
    SpeechConfig,
    SpeakerConfig,
    ServeConfig,
    FeaturesConfig,
    DownloadConfig,
)
INTERNAL = "work"  # the verb that a run's own process is started with
MARK = "<!-- Everything below is written by docs/make_api.py from the code; `make docs` updates it. -->\n"

Definition = ast.FunctionDef | ast.ClassDef


def page() -> str:
    """Return the whole page: what people wrote above the mark, and what the code says below it."""
    written = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    parts = [
        written + MARK,
        "## Python\n",
        *python(),
        "## Settings\n",
        SETTINGS,
        *settings(),
        "## Commands\n",
        COMMANDS,
    ]
    return "\n".join([*parts, *commands()])


SETTINGS = """\
One field is one setting everywhere: the key in a YAML file, the flag with `-` for `_` (a switch is `--name` or
`--no-name`), the widget on the page, the keyword in Python. A value out of its bounds, an unknown name and switches
that exclude each other are refused together, in one message.
"""
COMMANDS = """\
`python -m utils <command>`, or `./start.sh <command>`; each has `--help`. Where settings are named, every field of that
class is a flag too, and `--config FILE.yaml` reads them from a file; flags take precedence.
"""


def python() -> Iterator[str]:
    """Describe what other programs may call."""
    for file, names in PYTHON.items():
        source = (ROOT / file).read_text(encoding="utf-8")
        tree, lines = ast.parse(source), source.splitlines()
        found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        for name in names:
            yield f"### {name}\n\n`from {offered(file, name)} import {name}`\n\n{described(found[name], lines)}"


def offered(file: str, name: str) -> str:
    """Return the module to import a name from: its package, where that offers it."""
    package = ast.parse((ROOT / file).with_name("__init__.py").read_text(encoding="utf-8"))
    offers = {alias.name for node in package.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    module = FACES.get(file) or file.removesuffix(".py").replace("/", ".")
    return module.rpartition(".")[0] if name in offers else module


def described(node: Definition, lines: Sequence[str]) -> str:
    """Describe a function, or a class with its fields, public methods and properties."""
    told = documented(node)
    if isinstance(node, ast.FunctionDef):
        return f"`{signature(node)}`\n\n{told}\n"
    methods = [member for member in node.body if isinstance(member, ast.FunctionDef)]
    made = [f"`{signature(method, node.name)}`" for method in methods if method.name == "__init__"]
    calls = [f"- `{signature(method)}`: {first_line(method)}" for method in methods if method.name[0] != "_"]
    parts = (*made, told, attributes(node, lines), "\n".join(calls))
    return "\n\n".join(part for part in parts if part) + "\n"


def attributes(node: ast.ClassDef, lines: Sequence[str]) -> str:
    """List the fields of a class that have a remark."""
    fields = [member for member in node.body if isinstance(member, ast.AnnAssign)]
    remarks = [(ast.unparse(field.target), lines[field.lineno - 1].partition("  # ")[2]) for field in fields]
    items = [f"- `{name}`: {remark[0].upper()}{remark[1:]}." for name, remark in remarks if remark]
    return "\n".join(["Attributes:\n", *items]) if items else ""


def signature(node: ast.FunctionDef, name: str = "") -> str:
    """Write how something is called; a property has no brackets."""
    if any(isinstance(mark, ast.Name) and mark.id in {"property", "cached_property"} for mark in node.decorator_list):
        return node.name
    taken = re.sub(r"^(self|cls)(, |$)", "", ast.unparse(node.args))
    returned = f" -> {ast.unparse(node.returns)}" if node.returns and not name else ""
    return f"{name or node.name}({taken}){returned}"


def documented(node: Definition) -> str:
    """Return a docstring as Markdown: its arguments and attributes become a list, an example becomes code."""
    text = (ast.get_docstring(node) or "").replace("``", "`")
    text = re.sub(r"^    (\w+): ", r"- `\1`: ", text, flags=re.MULTILINE)
    text = re.sub(r"\n {8}(?=\S)", " ", text)
    text = re.sub(r"^Example:\n    (.*)$", r"```python\n\1\n```", text, flags=re.MULTILINE)
    return re.sub(r"^(Args|Attributes|Raises):\n", r"\1:\n\n", text, flags=re.MULTILINE)


def first_line(node: Definition) -> str:
    """Return the sentence that a docstring begins with."""
    return (ast.get_docstring(node) or "").partition("\n")[0].replace("``", "`")


def settings() -> Iterator[str]:
    """Describe every field of every class of settings."""
    for config in CONFIGS:
        rows = [
            f"| `{name}` | {takes(field)} | {cell(flags.flag_help(field))} |"
            for name, field in config.model_fields.items()
        ]
        head = "| setting | takes | what it does |\n|---|---|---|"
        yield f"### {config.__name__}\n\n{config.__doc__}\n\n" + "\n".join([head, *rows, ""])


def takes(field: FieldInfo) -> str:
    """Say what kind of value a field takes."""
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
    kinds: dict[object, str] = {bool: "switch", int: "whole number", float: "number"}
    return kinds.get(field.annotation, "text")


def commands() -> Iterator[str]:
    """Describe every command."""
    for verb in entry.known_verbs():
        if verb == INTERNAL:
            continue
        module = entry.load_command(verb)
        parser = argparse.ArgumentParser(prog=verb, add_help=False)
        module.add_arguments(parser)
        said = cell((module.__doc__ or "").partition("\n")[0])
        yield "\n".join([f"### {verb}\n", f"{said}\n", *arguments(parser), ""])


def arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    """List what a command takes; settings are named by their class."""
    for group in parser._action_groups:  # noqa: SLF001  argparse offers no other way to look
        members: Sequence[argparse.Action] = group._group_actions  # noqa: SLF001
        if group.title == "settings" and members:
            yield f"- settings: {settings_class(members)}"
            continue
        for action in members:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                yield from actions(action.choices)
            elif action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):  # noqa: SLF001
                yield f"- {spelled(action)}: {cell(action.help or '')}"


def actions(parsers: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    """List the parts of a command that has several; what all of them take is said once."""
    common = set.intersection(*(set(arguments(parser)) for parser in parsers.values()))
    yield from sorted(common, reverse=True)
    for name, parser in parsers.items():
        yield f"- `{name}`: {cell(parser.description or '')}"
        yield from (f"  {line}" for line in arguments(parser) if line not in common)


def settings_class(members: Sequence[argparse.Action]) -> str:
    """Name the class whose fields these flags are."""
    fields = {action.dest for action in members} - {"config"}
    name = next(config.__name__ for config in CONFIGS if fields == {*config.model_fields})
    return f"[{name}](#{name.lower()})"


def spelled(action: argparse.Action) -> str:
    """Write a flag with its value, or the name of a word."""
    choices = "|".join(map(str, action.choices or ()))
    value = choices or str(action.metavar or action.dest)
    if not action.option_strings:
        return f"`[{value}]`" if action.nargs in {"?", "*"} else f"`{value}`"
    if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction):
        return " / ".join(f"`{flag}`" for flag in action.option_strings)
    return f"`{action.option_strings[0]} {value if choices or action.metavar else value.upper()}`"


def cell(text: str) -> str:
    """Write text so that it stays in its line and tells nothing of this computer."""
    plain = " ".join(text.replace("%%", "%").replace(f"{ROOT}{os.sep}", "").split())
    return plain.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
