"""The machinery of settings: checked, frozen, read from YAML and written to it."""

import difflib
import reprlib
import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from utils.core.errors import ConfigError
from utils.core.languages import canonical


def printable(text: str) -> str:
    """Refuse letters that no name or path holds and that YAML cannot carry."""
    if any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in text):
        raise ValueError("holds a control character")
    return text


SEPARATOR = "|"  # divides the values of a setting that takes several

Language = Annotated[str, AfterValidator(canonical)]
Text = Annotated[str, AfterValidator(printable)]


class Config(BaseModel):
    """A frozen set of settings that refuses what it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def no_switch_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """Refuse ``num_epochs: yes``, which pydantic would take for 1."""
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, bool) and field.annotation in {int, float}:
            raise ValueError("should be a number")
        return value

    @classmethod
    def parse(cls, values: Mapping[str, object], *, source: str = "the settings", hint: str = "") -> Self:
        """Check all values at once; every problem is reported, with the field, the value and the bound."""
        try:
            return cls(**values)
        except ValidationError as error:
            problems = [describe(problem, cls.model_fields) for problem in error.errors()]
            raise ConfigError(f"{source}: {'; '.join(problems)}.", hint=hint, problems=problems) from error

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a YAML file."""
        return cls.parse(read_yaml(path), source=str(path), hint="Change it there; what is left out is as usual.")

    def to_yaml(self) -> str:
        """Write every setting, defaults included, in the order of declaration."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def read_yaml(path: Path) -> dict[str, object]:
    """Read a YAML file that holds one mapping of settings."""
    try:
        values = yaml.load(path.read_text(encoding="utf-8-sig"), _Loader)  # noqa: S506  # a SafeLoader
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.", hint="Check its name and its rights.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date or number that cannot be
        raise ConfigError(f"{path} is not valid YAML: {_where(error)}.", hint="Mend it there.") from error
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{path} has to hold 'setting: value' lines.", hint="The files in configs/ are examples.")
    return values


class _Loader(yaml.SafeLoader):
    """Reads plain YAML and refuses a setting that is given twice, of which the last would win unsaid."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is given twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def _where(error: Exception) -> str:
    """Say in one line what is wrong with a YAML file, and in which line of it."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return " ".join(str(error).split())


def describe(fault: ErrorDetails, known: Iterable[str]) -> str:
    """Say what is wrong with one setting: its name, the bad value and the rule."""
    name = ".".join(map(str, fault["loc"])) or "together"
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, known, n=1)
        return f"{name}: no such setting" + (f" (did you mean {near[0]}?)" if near else "")
    rule = fault["msg"].removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    return f"{name}: {rule}" if name == "together" else f"{name}: {_shortened(fault['input'])} {rule}"


def _shortened(value: object) -> str:
    """Quote a bad value, however large it is."""
    if isinstance(value, int) and value.bit_length() > 256:
        return "an enormous number"
    short = reprlib.Repr()
    short.maxstring, short.maxother, short.maxlevel = 120, 120, 2
    return short.repr(value)
