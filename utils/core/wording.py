"""The text of everything that a person reads, in every language, by the name of what it says.

The tables in ``utils/wording`` hold a name, the English and the Amharic text, one a line. A fact or an error stands
there under its class name, its cure under ``<class name>.cure``, a member of an enumeration under ``<class
name>.<value>``, a phrase of the page under an id such as ``data.tab``. To add a language, add a column. One class of
errors can have many reasons: the values of a field that is a ``Literal``, each with its text under ``<class
name>.<value>`` and a cure of its own under ``<class name>.<value>.cure``. Their texts have the gaps of the whole.
A fact about a file, with an error about the same file, has its text under ``<class name>.names_path``.

A gap is a field of the fact, ``{clips}``, and may say how to write it: ``{seconds:time}``, ``{share:percent}``,
``{start:clock}``, ``{size:bytes}``, ``{part:phase}``, ``{names:; }`` (what is between two), ``{loss:.3f}``,
``{counts:pairs}``, ``{clips:count clip|clips}`` ("1 clip", "3 clips"), ``{names:or none}`` (what stands for no names).

Everything that is written while ``speaking(language)`` is in that language, in this thread. Elsewhere it is English, as
are logs, and the texts of errors and facts as such (``str``).
"""

import contextlib
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from utils.core.fields import Fields, field_values, reason_ids

TABLES = Path(__file__).parent.parent / "wording"
UNITS = ("B", "kB", "MB", "GB", "TB")
MAX_COUNT = 100  # of seconds or minutes; more are written in the next unit
LANGUAGES = {"en": "English", "am": "አማርኛ"}
LANGUAGE = ContextVar("language", default="en")


class Wording(NamedTuple):
    """A text in both languages."""

    id: str
    english: str
    amharic: str


def read_table(path: Path) -> list[Wording]:
    lines = path.read_text(encoding="utf-8").splitlines()[1:]  # below the heading
    return [Wording(*line.split("\t")) for line in lines if line]


@contextlib.contextmanager
def speaking(language: object) -> Iterator[None]:
    """Write in a language; a browser may ask for one that does not exist."""
    token = LANGUAGE.set(language if isinstance(language, str) and language in LANGUAGES else "en")
    try:
        yield
    finally:
        LANGUAGE.reset(token)


@cache
def rows() -> dict[str, Wording]:
    return {row.id: row for table in sorted(TABLES.rglob("*.tsv")) for row in read_table(table)}


def text(key: str, values: Mapping[str, object] | None = None) -> str:
    """Return a text with its gaps filled; an unknown id comes back as it is: nothing may fail for a missing text."""
    row = rows().get(key)
    if row is None:
        return key
    chosen = row.amharic if LANGUAGE.get() == "am" and row.amharic else row.english
    return _Formatter().vformat(chosen, (), values) if values else chosen


def describe(thing: Fields | Enum | BaseException) -> str:
    """Return what happened as a sentence, without the cure of an error."""
    if isinstance(thing, Enum):
        return text(f"{type(thing).__name__}.{thing.value}")
    name = type(thing).__name__
    if isinstance(thing, Fields) and name in rows():
        plain = field_values(thing)
        reasons = {field: text(key, plain) for field, key in reason_ids(thing).items() if key in rows()}
        names_path = f"{name}.names_path"  # for one about an error that begins with the same path
        if names_path in rows() and any(getattr(value, "path", None) == plain["path"] for value in plain.values()):
            name = names_path
        return text(name, plain | reasons).rstrip()  # its last gap may be empty
    return repr(thing) if isinstance(thing, Fields) else f"{name}: {thing}"


def phase(part: str) -> str:
    """Return the name of a phase; a part that is no phase, such as a file, has its own."""
    key = f"phase.{part}"
    return text(key) if key in rows() else part


def cure(error: BaseException) -> str:
    """Return how to fix an error, if there is a way."""
    if not isinstance(error, Fields):
        return ""
    values = field_values(error)
    ids = (*reason_ids(error).values(), type(error).__name__)
    key = next((f"{each}.cure" for each in ids if f"{each}.cure" in rows()), "")
    if key:
        return text(key, values)
    inner = next((value for value in values.values() if isinstance(value, BaseException)), None)
    return cure(inner) if inner else ""


def explain(error: BaseException) -> str:
    """Return what happened and how to fix it."""
    advice = cure(error)
    label = f"{text('common.cure')}፦ " if LANGUAGE.get() == "am" and advice else ""
    return f"{describe(error)} {label}{advice}".rstrip()


def time(seconds: float) -> str:
    """Write a length of time in the unit that suits it, with a decimal below ten: ``8 s``, ``3.3 min``, ``25 h``."""
    units = {"time.seconds": 1, "time.minutes": 60, "time.hours": 3600}
    key = next((name for name, unit in units.items() if round(seconds / unit) < MAX_COUNT), "time.hours")
    count = seconds / units[key]
    return text(key, {"count": f"{round(count, 1 if count < 10 else None):g}"})


def join_list(parts: Iterable[object]) -> str:
    """Join the parts of a list with the comma of the language."""
    return ("፣ " if LANGUAGE.get() == "am" else ", ").join(map(str, parts))


def clock(seconds: float) -> str:
    """Format a place in a recording as in 1:02:03.4."""
    minutes, rest = divmod(round(max(0.0, seconds), 1), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02}:{rest:04.1f}"


def size(count: float) -> str:
    """Format bytes with three digits: ``812 kB``, ``1.25 GB``."""
    power = 0
    while count >= 999.5 and power < len(UNITS) - 1:
        count = count / 1000
        power += 1
    return f"{count:.3g} {UNITS[power]}"


class _Formatter(string.Formatter):
    """Fills gaps; a field that is missing is left open."""

    def get_value(self, key: int | str, args: Any, kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401, ARG002
        return kwargs.get(str(key), f"{{{key}}}")

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401  # any value of a fact
        if value is None:
            return "–"
        if format_spec.startswith("count ") and not isinstance(value, str):
            one, _, many = format_spec.removeprefix("count ").partition("|")
            return f"{value:,} {one if value == 1 else many or one}"
        if format_spec.startswith("or "):  # what stands for an empty list
            value, format_spec = value or format_spec.removeprefix("or "), ""
        if format_spec in FORMATS and (format_spec == "phase" or not isinstance(value, str)):
            return FORMATS[format_spec](value)
        if isinstance(value, (Fields, Enum)):
            cured = cure(value) if isinstance(value, BaseException) else ""
            return f"{describe(value)} {cured}".rstrip()
        if isinstance(value, (list, tuple)):
            written = (self.format_field(item, "") for item in value)
            return format_spec.join(written) if format_spec else join_list(written) or "–"
        return str(value) if isinstance(value, (str, Path)) else format(value, format_spec)


FORMATS: dict[str, Callable[[Any], str]] = {  # of a value
    "phase": phase,
    "time": time,
    "list": join_list,
    "clock": clock,
    "minutes": lambda seconds: f"{seconds / 60:.1f}",
    "bytes": size,
    "pairs": lambda values: "; ".join(f"{name}: {value}" for name, value in values.items()),
    "percent": lambda share: f"{share:.0%}".replace("%", " %"),
}
