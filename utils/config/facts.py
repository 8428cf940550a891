"""Errors of settings."""

from pathlib import Path
from typing import Literal, get_args

from utils.core.errors import ConfigError
from utils.core.facts import Fact

# What a setting breaks; most are types of pydantic's errors, or their first word.
Rule = Literal[
    "greater_than_equal",
    "greater_than",
    "less_than_equal",
    "less_than",
    "float",
    "finite",
    "int",
    "bool",
    "string",
    "literal",
    "string_too_short",
    "language",
    "printable",
    "weight",
    "proxy",
    "password",
    "extra_forbidden",
    "similar",
    "needs",
    "missing",
    "other",
]
RULES: dict[str, Rule] = {rule: rule for rule in get_args(Rule)}


class SettingProblem(Fact):
    """A setting, the value that it was given, and the rule that it breaks with its bound."""

    rule: Rule
    setting: str = ""
    value: str = ""
    bound: str = ""


class InvalidSettingsError(ConfigError, ValueError):
    """Settings are unknown, malformed or out of bounds; a ValueError too, as validators of pydantic raise."""

    problems: tuple[SettingProblem, ...]
    source: str = ""


def broken(rule: Rule) -> InvalidSettingsError:
    """Return what a validator of a field raises; which field and value it was is added to it."""
    return InvalidSettingsError((SettingProblem(rule),))


YamlFault = Literal["large", "values", "merge", "lines", "changed"]  # why valid YAML holds no settings


class SettingsFileError(ConfigError):
    """A file holds no settings; the reason is a fault, or what the parser or the system says."""

    path: Path
    reason: YamlFault | str
