"""Parse subtitle files into raw cues: times and lines exactly as written.

pysubs2 parses ASS, SSA, TTML and SAMI. SRT and VTT are parsed here, because pysubs2 silently drops cues whose times
have no milliseconds and last lines that are numbers, and takes VTT notes and cue names for text.
"""

import re
import warnings
from typing import NamedTuple

from utils.core.errors import DataError

STAMP = r"(?:(\d{1,4}):)?(\d{1,3}):(\d{1,2})(?:[.,:](\d{1,6}))?"
TIMES = re.compile(rf"\s*{STAMP}\s*-{{1,2}}>\s*{STAMP}(?:\s.*)?")
DIALOGUE = re.compile(r"Dialogue:[^,]*(?:,\s*\d+:\d{1,2}:\d{1,2}[.:,]\d+\s*){2},")
NUMBER = re.compile(r"\s*\d+\s*")
PYSUBS2_FORMATS = {"ass": "ass", "ssa": "ssa", "ttml": "ttml", "smi": "sami", "sami": "sami"}
SUFFIXES = frozenset({".srt", ".vtt", *(f".{name}" for name in PYSUBS2_FORMATS)})


class RawCue(NamedTuple):
    """A cue as written, with its times in seconds."""

    start: float
    end: float
    lines: tuple[str, ...]


class ParsedSubtitles(NamedTuple):
    """The cues of a file in file order, and the (line number, text) of those whose times cannot be parsed."""

    cues: list[RawCue]
    unreadable: list[tuple[int, str]]


def parse_subtitles(text: str, suffix: str) -> ParsedSubtitles:
    """Parse a subtitle text; its first letters decide the format, then the suffix of its file."""
    if text.lstrip().startswith("WEBVTT"):
        return _parse_timed_lines(text.split("\n"), is_vtt=True)
    if "[Script Info]" in text or "\n[Events]" in text:
        return _parse_ass(text)
    if (name := suffix.lower().lstrip(".")) in PYSUBS2_FORMATS:
        return ParsedSubtitles(_parse_with_pysubs2(text, PYSUBS2_FORMATS[name]), [])
    return _parse_timed_lines(text.split("\n"), is_vtt=suffix.lower() == ".vtt")


def _parse_timed_lines(lines: list[str], *, is_vtt: bool) -> ParsedSubtitles:
    times = [(number, TIMES.fullmatch(line)) for number, line in enumerate(lines) if _is_time_line(line)]
    ends = [*(number for number, _ in times), len(lines)][1:]
    parsed = ParsedSubtitles([], [])
    for (number, match), end in zip(times, ends, strict=False):
        block = lines[number + 1 : end]
        line_above = lines[number - 1] if number else ""
        text = _vtt_text(block) if is_vtt else _srt_text(block, line_above, is_last=end == len(lines))
        if match:
            parsed.cues.append(RawCue(_seconds(*match.groups()[:4]), _seconds(*match.groups()[4:]), text))
        else:
            parsed.unreadable.append((number + 1, " ".join(text)))
    return parsed


def _is_time_line(line: str) -> bool:
    """Return whether a line is meant to hold times, well-formed or not."""
    return bool(TIMES.fullmatch(line)) or ("-->" in line and any(map(str.isdigit, line)))


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str | None) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction or 0}")


def _srt_text(block: list[str], line_above: str, *, is_last: bool) -> tuple[str, ...]:
    """Drop the number of the next cue: it follows an empty line, or continues the numbering."""
    if not is_last and block and NUMBER.fullmatch(block[-1]):
        continues = NUMBER.fullmatch(line_above) and int(block[-1]) == int(line_above) + 1
        if len(block) == 1 or not block[-2].strip() or continues:
            block = block[:-1]
    return _stripped(block)


def _vtt_text(block: list[str]) -> tuple[str, ...]:
    """Stop at the first empty line: notes and the name of the next cue follow it."""
    return _stripped(block[: block.index("")] if "" in block else block)


def _stripped(lines: list[str]) -> tuple[str, ...]:
    return tuple(line.strip() for line in lines if line.strip())


def _parse_ass(text: str) -> ParsedSubtitles:
    """Remove damaged times and all styles first: pysubs2 rejects a whole file for one error in them."""
    lines = list(enumerate(text.split("\n"), start=1))
    damaged = {number: line for number, line in lines if line.startswith("Dialogue:") and not DIALOGUE.match(line)}
    rest = (line for number, line in lines if number not in damaged and not line.startswith("Style:"))
    return ParsedSubtitles(_parse_with_pysubs2("\n".join(rest), "ass"), list(damaged.items()))


def _parse_with_pysubs2(text: str, name: str) -> list[RawCue]:
    import pysubs2

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # about margins and layers
            events = pysubs2.SSAFile.from_string(text, format_=name)
    except (pysubs2.Pysubs2Error, ValueError, KeyError, IndexError, SyntaxError) as error:
        raise DataError(f"It cannot be read as {name.upper()} subtitles ({error}).") from error
    return [
        RawCue(event.start / 1000, event.end / 1000, _stripped(event.plaintext.split("\n")))
        for event in events
        if event.is_text  # not a drawing or a comment
    ]
