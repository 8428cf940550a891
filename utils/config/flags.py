"""Command-line flags made from the fields of a config; a flag wins over the YAML file."""

import argparse
import shlex
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic.fields import FieldInfo

from utils.config import Config, read_yaml

C = TypeVar("C", bound=Config)

EXIT_INTERRUPTED = 130  # what a shell says of a program that was stopped with Ctrl-C


def add_flags(parser: argparse.ArgumentParser, config: type[Config]) -> None:
    """Add ``--config FILE`` and one flag for each field."""
    group = parser.add_argument_group("settings", config.__doc__)
    group.add_argument("--config", type=Path, metavar="FILE.yaml", help="Settings file; flags win over it.")
    for name, field in config.model_fields.items():
        group.add_argument(
            flag(name), dest=name, default=argparse.SUPPRESS, help=flag_help(field), **flag_options(field)
        )


def read_flags(arguments: argparse.Namespace, config: type[C]) -> C:
    """Join the YAML file and the flags that were given into one checked config."""
    path: Path | None = arguments.config
    values = read_yaml(path) if path else {}
    given = {name: value for name, value in vars(arguments).items() if name in config.model_fields}
    return config.parse(values | given, source=str(path) if path else "the command line")


def command_line(verb: str, config: Config) -> str:
    """Show the command that does the same as this config."""
    words = [f"python -m utils {verb}"]
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if value != field.default:
            words.append(format_flag(name, value))
    return " ".join(words)


def format_flag(name: str, value: object) -> str:
    """Write one setting as a flag."""
    if isinstance(value, bool):
        return flag(name) if value else flag(name).replace("--", "--no-", 1)
    joint = "=" if str(value).startswith("-") else " "
    return f"{flag(name)}{joint}{shlex.quote(str(value))}"


def flag(name: str) -> str:
    """Turn a field's name into its flag."""
    return "--" + name.replace("_", "-")


def flag_help(field: FieldInfo) -> str:
    """Describe a field with its bounds and default."""
    marks = {"Ge": "at least", "Gt": "above", "Le": "at most", "Lt": "below"}
    bounds = [
        f"{word} {getattr(rule, kind.lower()):,.10g}"
        for rule in field.metadata
        for kind, word in marks.items()
        if type(rule).__name__ == kind
    ]
    default = field.default if field.default != "" else "empty"
    return f"{field.description} ({', '.join([*bounds, f'default {default}'])})".replace("%", "%%")


def flag_options(field: FieldInfo) -> dict[str, Any]:
    """Tell argparse what a field takes; the values themselves are checked by the config, all together."""
    if field.annotation is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(field.annotation) is Literal:
        return {"metavar": "{" + ",".join(map(str, get_args(field.annotation))) + "}"}
    kind = field.annotation
    return {"metavar": {int: "N", float: "X"}.get(kind, "TEXT") if isinstance(kind, type) else "TEXT"}
