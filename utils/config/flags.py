"""Command-line flags made from the fields of a config; flags override the YAML file."""

import argparse
import shlex
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic.fields import FieldInfo

from utils.config import Config, read_yaml

C = TypeVar("C", bound=Config)

EXIT_INTERRUPTED = 130  # exit code that shells use for a program stopped with Ctrl-C


def add_flags(parser: argparse.ArgumentParser, config: type[Config], names: tuple[str, ...] = ()) -> None:
    """Add ``--config FILE`` and one flag per field, or for some fields only."""
    group = parser.add_argument_group("limits" if names else "settings", None if names else config.__doc__)
    group.add_argument("--config", type=Path, metavar="FILE.yaml", help="settings file; flags override it")
    for name in names or config.model_fields:
        field = config.model_fields[name]
        group.add_argument(flag(name), dest=name, default=argparse.SUPPRESS, help=flag_help(field), **_options(field))


def read_flags(arguments: argparse.Namespace, config: type[C]) -> C:
    """Combine the YAML file and the flags into a validated config."""
    path: Path | None = arguments.config
    values = read_yaml(path) if path else {}
    given = {name: value for name, value in vars(arguments).items() if name in config.model_fields}
    return config.parse(values | given, source=str(path) if path else "the command line")


def command_line(verb: str, config: Config) -> str:
    """Return the command that does the same as a config."""
    words = [f"python -m utils {verb}"]
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if value != field.default:
            words.append(format_flag(name, value))
    return " ".join(words)


def format_flag(name: str, value: object) -> str:
    """Format one setting as a flag."""
    if isinstance(value, bool):
        return flag(name) if value else flag(name).replace("--", "--no-", 1)
    joint = "=" if str(value).startswith("-") else " "
    return f"{flag(name)}{joint}{shlex.quote(str(value))}"


def flag(name: str) -> str:
    """Return the flag of a field."""
    return "--" + name.replace("_", "-")


def flag_help(field: FieldInfo) -> str:
    """Describe a field with its bounds and default, such as ``(1-512; default 8)``."""
    default = field.default if field.default != "" else "blank"
    notes = "; ".join(filter(None, [_bounds(field), f"default {default}"]))
    return f"{field.description} ({notes})".replace("%", "%%")


def _bounds(field: FieldInfo) -> str:
    bounds = {type(rule).__name__: getattr(rule, type(rule).__name__.lower(), None) for rule in field.metadata}
    if "Ge" in bounds and "Le" in bounds:
        low, high = (f"{bounds[kind]:,.10g}" for kind in ("Ge", "Le"))
        return f"{low} to {high}" if "-" in low else f"{low}-{high}"
    words = {"Ge": "at least", "Gt": "above", "Le": "at most", "Lt": "below"}
    return ", ".join(f"{word} {bounds[kind]:,.10g}" for kind, word in words.items() if kind in bounds)


def _options(field: FieldInfo) -> dict[str, Any]:
    """Return the argparse options of a field; the config itself validates the values, all at once."""
    if field.annotation is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(field.annotation) is Literal:
        return {"metavar": "{" + ",".join(map(str, get_args(field.annotation))) + "}"}
    kind = field.annotation
    return {"metavar": {int: "N", float: "X"}.get(kind, "TEXT") if isinstance(kind, type) else "TEXT"}
