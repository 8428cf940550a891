"""Subtitle files to raw cues: the times and the lines as they stand in the file, nothing judged, nothing lost.

SRT and VTT are read here, because pysubs2 takes a last line that is a number for the number of the next cue, and the
notes and names of VTT for spoken text. ASS, SSA, TTML and SAMI are read by pysubs2.
"""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from utils.core.errors import DataError

if TYPE_CHECKING:
    from pysubs2 import SSAFile

STAMP = r"(?:(\d{1,4}):)?(\d{1,3}):(\d{1,2})(?:[.,:](\d{1,6}))?"
TIMES = re.compile(rf"\s*{STAMP}\s*-{{1,2}}>\s*{STAMP}(?:\s.*)?")
DIALOGUE = re.compile(r"Dialogue:[^,]*(?:,\s*\d+:\d{1,2}:\d{1,2}[.:,]\d+\s*){2},")
NUMBER = re.compile(r"\s*\d+\s*")
BY_PYSUBS2 = {"ass": "ass", "ssa": "ssa", "ttml": "ttml", "smi": "sami", "sami": "sami"}
SUFFIXES = frozenset({".srt", ".vtt", *(f".{name}" for name in BY_PYSUBS2)})


@dataclass(frozen=True, slots=True)
class Raw:
    """A cue as it is written: seconds and lines."""

    start: float
    end: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A text whose line of times is damaged."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Blocks:
    """The cues of a file in its order, and those whose times cannot be read."""

    cues: tuple[Raw, ...]
    unreadable: tuple[Unreadable, ...] = ()


def read_blocks(text: str, suffix: str) -> Blocks:
    """Read the cues of a subtitle text; what it is shows in its first letters, then in the file's ending."""
    if text.lstrip().startswith("WEBVTT"):
        return _timed_lines(text.split("\n"), vtt=True)
    if "[Script Info]" in text or "\n[Events]" in text:
        return _ass(text)
    if (name := suffix.lower().lstrip(".")) in BY_PYSUBS2:
        return Blocks(_with_pysubs2(text, BY_PYSUBS2[name]))
    return _timed_lines(text.split("\n"), vtt=suffix.lower() == ".vtt")


def _timed_lines(lines: list[str], *, vtt: bool) -> Blocks:
    marks = [(number, TIMES.fullmatch(line)) for number, line in enumerate(lines) if _tells_times(line)]
    borders = [number for number, _ in marks] + [len(lines)]
    cues, unreadable = [], []
    for (number, match), border in zip(marks, borders[1:], strict=True):
        block = lines[number + 1 : border]
        text = _vtt_text(block) if vtt else _srt_text(block, _number_before(lines, number), last=border == len(lines))
        if match:
            cues.append(Raw(_seconds(match.groups()[:4]), _seconds(match.groups()[4:]), text))
        else:
            unreadable.append(Unreadable(number + 1, " ".join(text)))
    return Blocks(tuple(cues), tuple(unreadable))


def _tells_times(line: str) -> bool:
    """Tell whether a line is meant as one of times, well written or not."""
    return bool(TIMES.fullmatch(line)) or ("-->" in line and any(map(str.isdigit, line)))


def _seconds(groups: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = groups
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0) + float(f"0.{fraction or 0}")


def _number_before(lines: list[str], times: int) -> int | None:
    """Return the number that stands above a line of times."""
    above = lines[times - 1] if times else ""
    return int(above) if NUMBER.fullmatch(above) else None


def _srt_text(block: list[str], number: int | None, *, last: bool) -> tuple[str, ...]:
    """Leave the number of the next cue out: it stands after an empty line, or it counts on from this cue's number."""
    if not last and block and NUMBER.fullmatch(block[-1]):
        follows = number is not None and int(block[-1]) == number + 1
        if len(block) == 1 or not block[-2].strip() or follows:
            block = block[:-1]
    return _filled(block)


def _vtt_text(block: list[str]) -> tuple[str, ...]:
    """Stop at the first empty line: behind it stand notes, and the name of the next cue."""
    return _filled(block[: block.index("")] if "" in block else block)


def _filled(lines: list[str]) -> tuple[str, ...]:
    return tuple(line.strip() for line in lines if line.strip())


def _ass(text: str) -> Blocks:
    """Take damaged times and all styles out first, because pysubs2 refuses the whole file for one fault in them."""
    lines = list(enumerate(text.split("\n"), start=1))
    damaged = [(number, line) for number, line in lines if line.startswith("Dialogue:") and not DIALOGUE.match(line)]
    lost = {number for number, _ in damaged}
    whole = "\n".join(line for number, line in lines if number not in lost and not line.startswith("Style:"))
    return Blocks(_with_pysubs2(whole, "ass"), tuple(Unreadable(number, line) for number, line in damaged))


def _with_pysubs2(text: str, name: str) -> tuple[Raw, ...]:
    import pysubs2

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of margins and layers, which nobody hears
            events = pysubs2.SSAFile.from_string(text, format_=name)
    except (pysubs2.Pysubs2Error, ValueError, KeyError, IndexError, SyntaxError) as error:
        raise DataError(f"It cannot be read as {name.upper()} subtitles ({error}).") from error
    return tuple(_raw_cues(events))


def _raw_cues(events: "SSAFile") -> Iterator[Raw]:
    for event in events:
        if event.is_text:  # the others are drawings and comments, which are never shown
            yield Raw(event.start / 1000, event.end / 1000, _filled(event.plaintext.split("\n")))
