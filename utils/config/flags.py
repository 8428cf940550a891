"""Command-line flags made from the fields of a config; flags override the YAML file."""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic.fields import FieldInfo

from utils.config import Config, read_yaml

C = TypeVar("C", bound=Config)

SWITCH = "enable_"
BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
ALIASES = {"grad_acumm": "gradient_accumulation_steps"}  # as other trainers call it


def add_flags(parser: argparse.ArgumentParser, config: type[Config], names: tuple[str, ...] = ()) -> None:
    """Add ``--config FILE`` and one flag per field, or for some fields only."""
    group = parser.add_argument_group("limits" if names else "settings", None if names else config.__doc__)
    group.add_argument("--config", type=Path, metavar="FILE.yaml", help="settings file; flags override it")
    for name in names or config.model_fields:
        field = config.model_fields[name]
        options = {"dest": name, "default": argparse.SUPPRESS, **_options(field)}
        group.add_argument(flag(name), help=flag_help(field), **options)
        if name.startswith(SWITCH):  # --no-sdpa is short for --no-enable-sdpa
            group.add_argument(flag(name.removeprefix(SWITCH)), help=argparse.SUPPRESS, **options)
        if alias := ALIASES.get(name):
            group.add_argument(flag(alias), help=argparse.SUPPRESS, **options)


def with_hyphens(words: Sequence[str]) -> list[str]:
    """Spell flags with hyphens, as they are declared: ``--batch_size=8`` becomes ``--batch-size=8``."""
    spelled = []
    for word in words:
        name, equals, value = word.partition("=")
        spelled.append(name.replace("_", "-") + equals + value if name.startswith("--") else word)
    return spelled


def read_flags(arguments: argparse.Namespace, config: type[C]) -> C:
    """Combine the YAML file and the flags into a validated config."""
    path = arguments.config
    values = read_yaml(path) if path else {}
    given = {name: value for name, value in vars(arguments).items() if name in config.model_fields}
    return config.parse(values | given, source=str(path) if path else "the command line")


def command_line(verb: str, config: Config) -> str:
    """Return the command that does the same as a config."""
    return shlex.join(["python", "-m", "utils", verb, *changed_flags(config)])


def changed_flags(config: Config) -> list[str]:
    """Return the flags of what differs from the defaults."""
    words = []
    for name, value in config.model_dump(exclude_defaults=True).items():
        if isinstance(value, bool):
            words.append(flag(name if value else f"no_{name}"))
        else:
            words += [f"{flag(name)}={value}"] if str(value).startswith("-") else [flag(name), str(value)]
    return words


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def flag_help(field: FieldInfo) -> str:
    """Describe a field with its bounds and default, such as ``(1-512; default 8)``."""
    default = field.default if field.default != "" else "blank"
    notes = "; ".join(filter(None, [_bounds(field), f"default {default}"]))
    return f"{field.description} ({notes})".replace("%", "%%")


def bounds(field: FieldInfo) -> dict[str, float]:
    """Return the bounds of a field by their pydantic names."""
    return {kind: getattr(rule, kind) for kind in BOUNDS for rule in field.metadata if hasattr(rule, kind)}


def _bounds(field: FieldInfo) -> str:
    texts = {kind: f"{bound:,.10g}" for kind, bound in bounds(field).items()}
    if "ge" in texts and "le" in texts:
        return f"{texts['ge']} to {texts['le']}" if "-" in texts["ge"] else f"{texts['ge']}-{texts['le']}"
    return ", ".join(f"{BOUNDS[kind]} {text}" for kind, text in texts.items())


def _options(field: FieldInfo) -> dict[str, Any]:
    """Return the argparse options of a field; the config itself validates the values, all at once."""
    if field.annotation is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(field.annotation) is Literal:
        return {"metavar": "{" + ",".join(map(str, get_args(field.annotation))) + "}"}
    kinds: dict[object, str] = {int: "N", float: "X"}
    return {"metavar": kinds.get(field.annotation, "TEXT")}
