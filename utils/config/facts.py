"""Errors of settings."""

from enum import StrEnum
from pathlib import Path

from utils.core.errors import ConfigError
from utils.core.facts import Fact


class Rule(StrEnum):
    """What a setting breaks; most are types of pydantic's errors, or their first word."""

    AT_LEAST = "greater_than_equal"
    ABOVE = "greater_than"
    AT_MOST = "less_than_equal"
    BELOW = "less_than"
    NUMBER = "float"
    FINITE = "finite"
    INTEGER = "int"
    SWITCH = "bool"
    TEXT = "string"
    CHOICE = "literal"
    EMPTY = "string_too_short"
    LANGUAGE = "language"
    PRINTABLE = "printable"
    WEIGHT = "weight"
    PROXY = "proxy"
    PASSWORD = "password"  # noqa: S105
    UNKNOWN = "extra_forbidden"
    SIMILAR = "similar"
    NEEDS = "needs"
    OTHER = "other"


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


class YamlFault(StrEnum):
    """Why valid YAML holds no settings."""

    LARGE = "large"
    VALUES = "values"
    MERGE = "merge"
    LINES = "lines"
    CHANGED = "changed"


class SettingsFileError(ConfigError):
    """A file holds no settings; the reason is a fault, or what the parser or the system says."""

    path: Path
    reason: YamlFault | str
