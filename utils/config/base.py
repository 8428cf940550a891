"""The base class of all settings: validated, frozen, read from YAML and written to it."""

import difflib
import reprlib
import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypedDict, TypeVar, Unpack

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from utils.config.facts import RULES, InvalidSettingsError, Rule, SettingProblem, SettingsFileError, broken
from utils.core.errors import UnknownLanguageError
from utils.core.languages import canonical
from utils.core.storage import sign, verify_signed


def printable(text: str) -> str:
    """Refuse control characters, which YAML cannot hold."""
    if any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in text):
        raise broken("printable")
    return text


# What XTTS v2 holds: 605 audio codes; upstream trains with 11.6 s and 200 tokens.
MODEL_SECONDS = 28.09
MODEL_TOKENS = 402
AUTO_SECONDS = 15.0  # longest clip of a run unless more is asked for, because memory grows with it
MAX_BYTES = 4 << 20  # of a YAML file; a setting may name thousands of recordings
MAX_NODES = 10_000
MAX_DIGITS = 100
MERGE = "tag:yaml.org,2002:merge"
INTEGER = "tag:yaml.org,2002:int"
SEPARATOR = "|"  # between the values of a setting that takes several

T = TypeVar("T")
Language = Annotated[str, AfterValidator(canonical)]
Text = Annotated[str, AfterValidator(printable)]
Device = Literal["auto", "cuda", "mps", "xpu", "cpu"]


def split_values(text: str) -> list[str]:
    """Return the values of a setting that takes several."""
    return [value.strip() for value in text.split(SEPARATOR) if value.strip()]


class Bounds(TypedDict, total=False):
    """What pydantic checks of a setting."""

    ge: float
    gt: float
    le: float
    lt: float
    min_length: int


def setting(default: T, title: str, description: str, **bounds: Unpack[Bounds]) -> T:
    """Declare a setting: a pydantic field that cannot lack the texts that form, flag and reference page show."""
    return Field(default, title=title, description=description, **bounds)


class Config(BaseModel):
    """A frozen set of settings that refuses unknown names."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def reject_bool_for_number(cls, value: object, info: ValidationInfo) -> object:
        """Refuse ``num_epochs: yes``, which pydantic would take for 1."""
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, bool) and field.annotation in {int, float}:
            raise broken("float")
        return value

    @classmethod
    def parse(cls, values: Mapping[str, object], *, source: str = "the settings") -> Self:
        """Validate all values at once; every problem is reported with its field, value and bound."""
        try:
            return cls(**values)
        except ValidationError as error:
            problems = [each for problem in error.errors() for each in _problems(problem, cls.model_fields)]
            raise InvalidSettingsError(tuple(problems), source) from error

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls.parse(read_yaml(path), source=str(path))

    @classmethod
    def load_own(cls, path: Path) -> Self:
        """Load a file that the program has written, which is never empty."""
        if path.is_file() and not path.stat().st_size:
            raise SettingsFileError(path, "changed")
        return cls.load(path)

    def to_yaml(self) -> str:
        """Write every setting, defaults included."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)

    def to_signed_yaml(self) -> str:
        """Write every setting, after a line with their digest: for files that the program writes for itself."""
        return sign(self.to_yaml())


def read_yaml(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        values = yaml.load(_verified(content), _Loader)  # noqa: S506  # a SafeLoader
    except OSError as error:
        raise SettingsFileError(path, str(error.strerror)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: an impossible date or number
        fault = " ".join(str(error).split())  # a fault of ours, or what the parser says
        if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
            fault = f"line {error.problem_mark.line + 1}: {error.problem}"
        raise SettingsFileError(path, fault) from error
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise SettingsFileError(path, "lines")
    return values


def _verified(content: bytes) -> bytes:
    try:
        return verify_signed(content)
    except ValueError as error:
        raise ValueError("changed") from error


class _Loader(yaml.SafeLoader):
    """Reads plain YAML of a limited size and refuses duplicate keys, of which the last would win silently."""

    nodes = 0

    def __init__(self, content: bytes) -> None:
        if len(content) > MAX_BYTES:
            raise ValueError("large")
        super().__init__(content.decode("utf-8-sig"))

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.nodes += 1
        node = super().compose_node(parent, index)
        digits = len(node.value) if node and node.tag == INTEGER else 0  # 1:59:59… is an integer too
        if self.nodes > MAX_NODES or digits > MAX_DIGITS:
            raise ValueError("values")
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Refuse merge keys: a few of them, each of several others, never end."""
        if any(key.tag == MERGE for key, _ in node.value):
            raise ValueError("merge")

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate setting {key.value}", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def _problems(problem: ErrorDetails, known: Iterable[str]) -> tuple[SettingProblem, ...]:
    """Return what pydantic, or a validator of ours, found wrong with a setting."""
    name = ".".join(map(str, problem["loc"]))[:120]
    error = problem.get("ctx", {}).get("error")
    value = _shorten(problem["input"]) if name else ""
    if isinstance(error, InvalidSettingsError):  # it knows the setting, unless it is of one field
        return tuple(
            SettingProblem(each.rule, each.setting or name, each.value or value, each.bound) for each in error.problems
        )
    if isinstance(error, UnknownLanguageError):
        return (SettingProblem("language", name, value, " / ".join(error.suggestions)),)
    if problem["type"] == "extra_forbidden" and (near := difflib.get_close_matches(name, known, n=1)):
        return (SettingProblem("similar", name, value, near[0]),)
    rule, bound = _broken_rule(problem)
    return (SettingProblem(rule, name, value, bound),)


def _broken_rule(problem: ErrorDetails) -> tuple[Rule, str]:
    """Return the rule of pydantic that a value breaks, and its bound."""
    kind = problem["type"]
    rule = RULES.get(kind) or RULES.get(kind.partition("_")[0])
    if rule is None:
        return "other", problem["msg"].removeprefix("Value error, ")
    return rule, str(next(iter(problem.get("ctx", {}).values()), ""))


def _shorten(value: object) -> str:
    """Return a value in at most about a line."""
    short = reprlib.Repr()
    short.maxstring = 120
    short.maxother = 120
    short.maxlevel = 2
    if isinstance(value, int) and value.bit_length() > 256:  # converting it to decimal text takes minutes
        return f"2^{value.bit_length()}"
    return short.repr(value)
