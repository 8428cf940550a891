"""Facts: what happens while a library works, as typed values. Nothing here is a sentence; see ``wording``.

A library function takes values and returns values. What happens on the way goes to ``report(fact)``; whether to stop
comes from ``should_stop()``. That is all that a library knows of the program around it::

    class ClipExcluded(Fact):
        clip: str
        reason: Reason
        words: tuple[str, ...] = ()

    report(ClipExcluded(clip.id, "text does not match", ("ሰላም",)))

A fact is immutable and compared by value. Its kind is its class name in small letters (``clip_excluded``), and
``to_json`` and ``from_json`` convert it, so that a log of facts can be read back. Class names are unique in the
program.
"""

import logging
import math
import re
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, Union, dataclass_transform, get_args, get_origin

from utils.core import wording
from utils.core.errors import ERRORS, AmharicTtsError, RecordedError, as_typed
from utils.core.fields import Fields, field_values, set_fields

MAX_INTEGER = 2**53  # floats beyond it skip integers; nothing counts that far
CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
PROGRESS_SECONDS = 0.5  # between two reports of progress

logger = logging.getLogger(__name__)

Json = dict[str, Any]
T = TypeVar("T")


@dataclass_transform(frozen_default=True)
class Fact(Fields):
    """Base of all facts: the annotated names of a subclass are its fields, with the values assigned as defaults.

    Unlike ``dataclass`` it generates no code: there are hundreds of subclasses, and a command starts in half a second.
    """

    level: ClassVar[str] = "info"  # or "warning"
    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kind = CAPITAL.sub("_", cls.__name__).lower()
        if KINDS.setdefault(cls.kind, cls).__module__ != cls.__module__:
            raise TypeError(f"two facts are called {cls.__name__}")

    def __init__(self, *values: object, **named: object) -> None:
        set_fields(self, values, named)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and field_values(other) == field_values(self)

    def __hash__(self) -> int:
        return hash((type(self), *map(str, field_values(self).values())))

    def __str__(self) -> str:
        with wording.speaking("en"):
            return wording.describe(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in field_values(self).items())})"


KINDS: dict[str, type[Fact]] = {}


class WarningFact(Fact):
    """Base of facts that somebody should look at."""

    level = "warning"


class Progress(Fact):
    """How far a phase of the work is; a total of 0 means that the end is unknown."""

    step: int = 0
    total: int = 0
    part: str = ""  # id of the phase, worded as ``phase.<id>``
    percent: float | None = None  # of the work, where steps differ in size
    seconds_left: float | None = None


class Optimization(Fact):
    """What an optimization changed, counted while it was changed."""

    name: str  # the setting that asked for it
    changed: int  # how many live objects are different now; 0 when there was nothing to do
    detail: Fact | str = ""  # what they are, or why there were none


class LineDamaged(WarningFact):
    """A line of a log has changed, or was not written whole, and is left out."""

    text: str  # how it begins


class LinesMissing(WarningFact):
    """Lines of a log are missing, or are not in the order in which they were written."""

    before: int  # number of the last one
    after: int  # and of the next


class FileIgnored(WarningFact):
    """A damaged file that nothing depends on is not used, and written again when it is needed."""

    path: Path
    reason: str


class NotStored(WarningFact):
    """Something that can be made again could not be stored."""

    error: AmharicTtsError


class Unrecognised(Fact):
    """A fact of another version, or a damaged one; ``message`` is the sentence that version 1.1 wrote into its logs."""

    name: str
    message: str = ""
    values: dict[str, Any] = {}  # noqa: RUF012  # never changed

    def __repr__(self) -> str:
        return self.message or " ".join([self.name, *(f"{name}={value}" for name, value in self.values.items())])


class Stop(StrEnum):
    """Answer of ``should_stop``: false, or how to stop."""

    NO = ""
    SAVE = "save"
    NOW = "now"


class StopRequested(Exception):  # noqa: N818  # a request, not an error
    """Raised at a safe point after a request to stop."""

    def __init__(self, stop: Stop = Stop.NOW) -> None:
        super().__init__(stop)
        self.stop = stop


Report = Callable[[Fact], object]
ShouldStop = Callable[[], Stop]


def ignore(fact: Fact) -> None:
    """Report to nobody."""


def log_fact(fact: Fact) -> None:
    """Log a fact as a warning, in functions that take no ``report``."""
    logger.warning("%s", fact)


def never_stop() -> Stop:
    return Stop.NO


def raise_if_stopped(should_stop: ShouldStop) -> None:
    if stop := should_stop():
        raise StopRequested(stop)


def counted(items: Sequence[T], report: Report, part: str = "", should_stop: ShouldStop = never_stop) -> Iterator[T]:
    """Yield items one by one; report how many are done, at the end too, and stop on request."""
    reported = 0.0
    for number, item in enumerate(items):
        raise_if_stopped(should_stop)
        if time.monotonic() - reported > PROGRESS_SECONDS:
            reported = time.monotonic()
            report(Progress(number, len(items), part))
        yield item
    report(Progress(len(items), len(items), part))


def to_json(fact: Fact) -> Json:
    """Return a fact as JSON values, its kind first."""
    level = {"level": fact.level} if fact.level != "info" else {}
    return {"kind": fact.kind, **level, **{name: plain(value) for name, value in field_values(fact).items()}}


def from_json(event: Mapping[str, Any] | str) -> Fact:
    """Return the fact that was written; a sentence, or a kind or fields that are not known, become ``Unrecognised``."""
    if isinstance(event, str):
        return Unrecognised("warning", event)
    kind = KINDS.get(str(event.get("kind")))
    if kind and (values := _fields(kind, event)) is not None:
        return kind(**values)
    others = {name: value for name, value in event.items() if name not in {"time", "kind", "level", "message"}}
    return Unrecognised(str(event.get("kind")), str(event.get("message", "")), others)


def error_to_json(error: BaseException) -> Json:
    """Return any error as JSON values."""
    typed = as_typed(error)
    return {"error": type(typed).__name__, **{name: plain(item) for name, item in field_values(typed).items()}}


_MISMATCH = object()


def plain(value: object) -> object:
    """Return a value as JSON has it; NaN and infinity, for which JSON has no numbers, become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Fact):
        return to_json(value)
    if isinstance(value, AmharicTtsError):
        return error_to_json(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, set, frozenset)):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else str(value) if isinstance(value, Path) else value


def _fields(kind: type[Fields], written: Mapping[str, Any]) -> Json | None:
    """Return the fields of a class as they were written, or None if one is missing or of another type."""
    values = {name: _typed(written[name], type_) for name, type_ in kind.fields.items() if name in written}
    is_whole = all(name in values or hasattr(kind, name) for name in kind.fields)
    return values if is_whole and _MISMATCH not in values.values() else None


def _typed(value: Any, kind: Any) -> Any:  # noqa: ANN401  # any type that a field may have
    """Return a JSON value as the type of a field, or ``_MISMATCH``: a log may be damaged, or written by a stranger."""
    origin = get_origin(kind)
    parts = get_args(kind)
    if origin in {Union, types.UnionType}:
        return next((typed for part in parts if (typed := _typed(value, part)) is not _MISMATCH), _MISMATCH)
    if kind is float or (kind is int and type(value) is int):
        return _number(value, kind)
    is_one_of = origin is Literal and value in parts
    if kind is Any or kind is type(value) or is_one_of:
        return value
    if origin is tuple and isinstance(value, list):
        return _tuple(value, parts)
    if origin in {dict, Mapping} or kind is Mapping:
        return value if isinstance(value, dict) else _MISMATCH
    return _of_class(value, kind) if isinstance(kind, type) else _MISMATCH


def _tuple(value: list[Any], parts: tuple[Any, ...]) -> object:
    kinds = parts[:1] * len(value) if parts[-1] is ... else parts
    inner = [_typed(item, kind) for item, kind in zip(value, kinds, strict=False)]
    return _MISMATCH if _MISMATCH in inner else tuple(inner)


def _of_class(value: Any, kind: type) -> Any:  # noqa: ANN401
    if issubclass(kind, Enum):
        return kind(value) if value in [member.value for member in kind] else _MISMATCH
    if issubclass(kind, AmharicTtsError) and isinstance(value, dict) and "error" in value:
        return error_from_json(value)
    if issubclass(kind, Fact) and isinstance(value, dict):
        return from_json(value)
    return Path(value) if kind is Path and isinstance(value, str) else _MISMATCH


def error_from_json(stored: Mapping[str, Any]) -> AmharicTtsError:
    """Return the error that was written; one whose class or fields are not known is a ``RecordedError``."""
    name = str(stored["error"])
    kind = ERRORS.get(name, RecordedError)
    if (values := _fields(kind, stored)) is not None:
        return kind(**values)
    return RecordedError(name, " ".join(str(value) for key, value in stored.items() if key != "error"))


def _number(value: object, kind: type[float]) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return _MISMATCH
    if isinstance(value, str) and value not in {"nan", "inf", "-inf"}:
        return _MISMATCH
    return kind(value) if not isinstance(value, int) or abs(value) < MAX_INTEGER else _MISMATCH
