"""Subtitle files to clean cues: in order, with text, not overlapping, each line once. Every change is a warning.

``read_cues`` reads a file; ``fit_to_recording`` then checks the cues against the length of their recording. pysubs2
parses ASS, SSA, TTML and SAMI. SRT and VTT are parsed here, because pysubs2 silently drops cues whose times have no
milliseconds and last lines that are numbers, and takes VTT notes and cue names for text.
"""

import html
import re
import warnings
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

from utils.core import wording
from utils.core.errors import DataError
from utils.dataset.clip import abbreviate
from utils.dataset.text_files import is_garbled, read_any_encoding
from utils.recognition.spans import Cue, Span

STAMP = r"(?:(\d{1,4}):)?(\d{1,3}):(\d{1,2})(?:[.,:](\d{1,6}))?"
TIMES = re.compile(rf"\s*{STAMP}\s*-{{1,2}}>\s*{STAMP}(?:\s.*)?")
DIALOGUE = re.compile(r"Dialogue:[^,]*(?:,\s*\d+:\d{1,2}:\d{1,2}[.:,]\d+\s*){2},")
NUMBER = re.compile(r"\s*\d+\s*")
PYSUBS2_FORMATS = {".ass": "ass", ".ssa": "ssa", ".ttml": "ttml", ".smi": "sami", ".sami": "sami"}
SUFFIXES = frozenset({".srt", ".vtt", *PYSUBS2_FORMATS})

TAG = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|\{[\\*][^{}]*\}|\{[yY]:[^{}]*\}")
NOTE = re.compile(r"\[[^\[\]]*\]|[♪♫♬♩]+")  # [applause], [music]: not speech
TURN = re.compile(r"^\s*(?:[-–—](?!\d)\s*|>{1,3}\s*)+")  # the dash or >> that opens a turn; -5 is a number
LABEL = re.compile(r"^\s*([^\W\d_][\w'’.-]*(?: [\w'’.-]+)?)\s*[:：፦፥]\s+(?=\S)")
SAYING = re.compile(r"(?:^| )(?:አለ|አለች|አሉ|አልኩ|አልኳት|አልኩት|አላት|አላቸው|ይላል|ትላለች|ይላሉ)$")  # "he said:" belongs to the text
MIN_LABELS = 3  # a word and a colon that occur less often may belong to the text

SHORT_OVERLAP = 0.5  # seconds; a shorter overlap is an imprecise border, a longer one two voices
MIN_CUE = 0.3  # seconds; enough for one word
SLACK = 1.0  # seconds that a cue may end after its recording without a warning
HOUR = 3600.0
START = attrgetter("span.start")

Warn = Callable[[str], None]
Parsed = tuple[list[Cue], list[tuple[int, str]]]  # cues with all their lines, and the lines that cannot be parsed


def read_cues(path: Path) -> tuple[list[Cue], list[str]]:
    """Read a subtitle file: cues in order that do not overlap, and a warning for every repair or omission."""
    text, warned = read_any_encoding(path)
    try:
        cues, unreadable = _parse(text, path.suffix.lower())
    except DataError as error:
        hint = "Save the subtitles as SRT, for example with Subtitle Edit."
        raise DataError(f"{path}: {error}", hint=hint) from error
    if not cues:
        raise DataError(f"{path} contains no timed cues.", hint="Check that it is a subtitle file and not empty.")
    warned += [f"Line {line} has no readable times and was skipped: {text[:80]!r}." for line, text in unreadable]
    warn = warned.append
    cues = _sort(_clean_text(cues, warn), warn)
    cues = _drop(cues, lambda cue: not cue.text, "Without text", warn)
    reason = "Skipped, because they end before they start"  # then the start is not reliable either
    cues = _drop(cues, lambda cue: cue.span.seconds <= 0, reason, warn, show_text=True)
    cues = _drop_repeated(cues, warn)
    cues = _drop(cues, lambda cue: is_garbled(cue.text), "Skipped, because characters are damaged", warn)
    cues = _end_overlaps([Cue(cue.span, cue.text.replace("\n", " ")) for cue in cues], warn)
    return cues, [f"{path.name}: {warning}" for warning in warned]


def tidy_cues(cues: Sequence[Cue]) -> tuple[list[Cue], list[str]]:
    """Return cues, which are in order, without those that cannot be used and without overlaps; and what was changed."""
    warned: list[str] = []
    tidy = _drop(cues, lambda cue: not cue.text, "Without text", warned.append)
    tidy = _drop(tidy, lambda cue: cue.span.seconds <= 0, "Skipped, because they end before they start", warned.append)
    return _end_overlaps(tidy, warned.append), warned


def fit_to_recording(cues: list[Cue], seconds: float) -> tuple[list[Cue], list[str]]:
    """Shift cues by whole hours where that fits, and drop those after the end of the recording, with a warning."""
    warned: list[str] = []
    cues = _remove_hours(cues, seconds, warned.append)
    if late := [cue for cue in cues if cue.span.start >= seconds]:
        warned.append(
            f"Skipped, after the end of the recording ({seconds:.1f} s): {_describe(late)}, of {len(cues)}. "
            "Do the subtitles belong to this recording?"
        )
    inside = [cue for cue in cues if cue.span.start < seconds]
    if long := [cue for cue in inside if seconds < cue.span.end - SLACK]:
        warned.append(f"Cut at the end of the recording ({seconds:.1f} s): {_describe(long)}.")
    return [Cue(Span(cue.span.start, min(cue.span.end, seconds)), cue.text) for cue in inside], warned


def _parse(text: str, suffix: str) -> Parsed:
    """Parse a subtitle text; its first letters decide the format, then the suffix of its file."""
    if text.lstrip().startswith("WEBVTT"):
        return _parse_timed_lines(text.split("\n"), is_vtt=True)
    if "[Script Info]" in text or "\n[Events]" in text:
        return _parse_with_pysubs2(text, "ass")
    if suffix in PYSUBS2_FORMATS:
        return _parse_with_pysubs2(text, PYSUBS2_FORMATS[suffix])
    return _parse_timed_lines(text.split("\n"), is_vtt=suffix == ".vtt")


def _parse_timed_lines(lines: list[str], *, is_vtt: bool) -> Parsed:
    times = [
        (number, match)
        for number, line in enumerate(lines)
        if (match := TIMES.fullmatch(line)) or ("-->" in line and any(map(str.isdigit, line)))
    ]
    head = [line for line in lines[: times[0][0] if times else None] if not NUMBER.fullmatch(line)]
    cues, unreadable = list[Cue](), [(1, _strip(head).replace("\n", " "))] if not is_vtt and _strip(head) else []
    ends = [*(number for number, _ in times[1:]), len(lines)]
    for (number, match), end in zip(times, ends, strict=False):
        block = lines[number + 1 : end]
        if is_vtt:  # notes and the name of the next cue follow an empty line
            block = block[: block.index("")] if "" in block else block
        elif end < len(lines):
            block = _without_next_number(block, lines[number - 1] if number else "")
        text = _strip(block)
        if match:
            cues.append(Cue(Span(_seconds(*match.groups()[:4]), _seconds(*match.groups()[4:])), text))
        else:
            unreadable.append((number + 1, text.replace("\n", " ")))
    return cues, unreadable


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str | None) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction or 0}")


def _without_next_number(block: list[str], line_above: str) -> list[str]:
    """Drop the number of the next cue: it follows an empty line, or continues the numbering."""
    if not block or not NUMBER.fullmatch(block[-1]):
        return block
    continues = NUMBER.fullmatch(line_above) and int(block[-1]) == int(line_above) + 1
    return block[:-1] if len(block) == 1 or not block[-2].strip() or continues else block


def _strip(lines: Iterable[str]) -> str:
    return "\n".join(line.strip() for line in lines if line.strip())


def _parse_with_pysubs2(text: str, name: str) -> Parsed:
    import pysubs2

    damaged = {}
    if name == "ass":  # a whole file would be rejected for one damaged time or style
        lines = dict(enumerate(text.split("\n"), start=1))
        damaged = {n: line for n, line in lines.items() if "Dialogue:" in line and not DIALOGUE.match(line)}
        text = "\n".join(line for n, line in lines.items() if n not in damaged and not line.startswith("Style:"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # about margins and layers
            events = pysubs2.SSAFile.from_string(text, format_=name)
    except (pysubs2.Pysubs2Error, ValueError, LookupError, SyntaxError, NotImplementedError) as error:
        raise DataError(f"It cannot be read as {name.upper()} subtitles ({error}).") from error
    cues = [
        Cue(Span(event.start / 1000, event.end / 1000), _strip(event.plaintext.split("\n")))
        for event in events
        if event.is_text  # not a drawing or a comment
    ]
    return cues, list(damaged.items())


def _clean_text(cues: Sequence[Cue], warn: Warn) -> list[Cue]:
    """Strip tags, notes and speaker names from the text."""
    plain = [(cue.span, [_remove_tags(line) for line in cue.text.split("\n")]) for cue in cues]
    lines = [line for _, of_cue in plain for line in of_cue]
    if notes := Counter(note.strip() for line in lines for note in NOTE.findall(line)):
        warn(f"Notes that are not speech were removed: {_counts(notes)}.")
    names = Counter(label for line in lines if (label := _label(NOTE.sub(" ", line))))
    # a name in Latin capitals counts from its first time
    labels = Counter({name: n for name, n in names.items() if n >= MIN_LABELS or (name.isupper() and len(name) > 1)})
    if labels:
        warn(f"Speaker names were removed: {_counts(labels)}.")
    if len(labels) > 1:
        warn(f"{len(labels)} speakers take turns; train a voice on one speaker.")
    return [Cue(span, _speech(of_cue, labels)) for span, of_cue in plain]


def _remove_tags(line: str) -> str:
    return TURN.sub("", html.unescape(TAG.sub("", line)).replace("\u200e", "").replace("\u200f", ""))


def _speech(lines: Iterable[str], labels: Counter[str]) -> str:
    spoken = (NOTE.sub(" ", line) for line in lines)
    unnamed = (LABEL.sub("", line) if _label(line) in labels else line for line in spoken)
    return _strip(" ".join(line.split()) for line in unnamed)


def _label(line: str) -> str:
    """Return the name that opens a line."""
    match = LABEL.match(line)
    return match[1] if match and not SAYING.search(match[1]) else ""


def _sort(cues: Sequence[Cue], warn: Warn) -> list[Cue]:
    if moved := [later for earlier, later in pairwise(cues) if later.span.start < earlier.span.start]:
        warn(f"Sorted by time, because they were out of order: {_describe(moved)}.")
    return sorted(cues, key=attrgetter("span.start", "span.end"))


def _drop(
    cues: Sequence[Cue], is_bad: Callable[[Cue], bool], reason: str, warn: Warn, *, show_text: bool = False
) -> list[Cue]:
    if bad := [cue for cue in cues if is_bad(cue)]:
        texts = abbreviate((repr(cue.text.replace("\n", " ")[:40]) for cue in bad), 3)
        warn(f"{reason}: {_describe(bad)}{f': {texts}' if show_text else ''}.")
    return [cue for cue in cues if not is_bad(cue)]


def _drop_repeated(cues: Sequence[Cue], warn: Warn) -> list[Cue]:
    """Drop duplicates, and the lines that each cue of rolling captions repeats from the one before."""
    unique = list(dict.fromkeys(cues))
    if len(unique) < len(cues):
        warn(f"Duplicates skipped: {_describe((Counter(cues) - Counter(unique)).elements())}.")
    repeated = [_count_repeated(earlier, later) for earlier, later in pairwise(unique)]
    if sum(map(bool, repeated)) < max(2, len(repeated) / 2):
        return unique
    warn("These are rolling captions; repeated lines were removed.")
    rest = ((cue.span, cue.text.split()[count:]) for cue, count in zip(unique, [0, *repeated], strict=True))
    return [Cue(span, " ".join(words)) for span, words in rest if words]


def _count_repeated(earlier: Cue, later: Cue) -> int:
    """Count the first words of a cue that the cue before it showed already: whole lines, or all that it showed."""
    if later.span.start - earlier.span.end > SHORT_OVERLAP:
        return 0
    before, now = earlier.text.split(), later.text.split()
    lines = later.text.split("\n")
    whole = (len(" ".join(lines[:count]).split()) for count in range(1, len(lines) + 1))
    return max((n for n in {*whole, len(before)} if 0 < n <= len(now) and before[-n:] == now[:n]), default=0)


def _end_overlaps(cues: list[Cue], warn: Warn) -> list[Cue]:
    """End short overlaps at the later start; join cues that overlap longer, because two voices cannot be separated."""
    overlapping = sum(earlier.span.end > later.span.start for earlier, later in pairwise(cues))
    staggered = len(cues) > 3 and overlapping * 2 > len(cues) - 1  # cues stay on screen longer than the speech lasts
    separate, ended, joined = cues[:1], [], []
    for cue in cues[1:]:
        last = separate[-1]
        overlap, rest = last.span.end - cue.span.start, cue.span.start - last.span.start
        is_long_enough = rest >= MIN_CUE if staggered else rest * 2 >= last.span.seconds and overlap <= SHORT_OVERLAP
        if overlap <= 0:
            separate.append(cue)
        elif is_long_enough and last.span.end <= cue.span.end:
            separate[-1:] = [Cue(Span(last.span.start, cue.span.start), last.text), cue]
            ended.append(last)
        else:
            separate[-1] = Cue(Span(last.span.start, max(last.span.end, cue.span.end)), f"{last.text} {cue.text}")
            joined.append(cue)
    if ended:
        warn(f"Ended where the next one starts: {_describe(ended)}.")
    if joined:
        warn(f"Joined with the one before, because they overlap too much: {_describe(joined)}.")
    return separate


def _remove_hours(cues: list[Cue], seconds: float, warn: Warn) -> list[Cue]:
    """Shift cues after the end by whole hours: all cues, or those that then fall into a gap."""
    if not cues or cues[-1].span.end <= seconds + SLACK:
        return cues
    hours = int(cues[0].span.start // HOUR)
    if hours and cues[-1].span.end - hours * HOUR <= seconds + SLACK:
        warn(f"All times were {hours} h after the recording ({seconds:.1f} s); {hours} h were subtracted.")
        return [_shifted(cue, hours) for cue in cues]
    placed = [cue for cue in cues if cue.span.start < seconds]
    moved: list[Cue] = []
    for cue in cues[len(placed) :]:
        shifted = (_shifted(cue, hours) for hours in range(1, int(cue.span.start // HOUR) + 1))
        fitting = [candidate for candidate in shifted if _fits(candidate, placed, seconds)]
        insort(placed, fitting[0] if len(fitting) == 1 else cue, key=START)
        moved += [cue] if len(fitting) == 1 else []
    if moved:
        warn(f"Moved by whole hours into the gap where they fit: {_describe(moved)}.")
    return placed


def _shifted(cue: Cue, hours: int) -> Cue:
    return Cue(Span(round(cue.span.start - hours * HOUR, 3), round(cue.span.end - hours * HOUR, 3)), cue.text)


def _fits(cue: Cue, others: Sequence[Cue], seconds: float) -> bool:
    """Return whether a cue lies inside the recording and between two of the others, which are in order."""
    after = bisect_left(others, cue.span.start, key=START)
    near = others[max(0, after - 1) : after + 1]
    overlaps = any(cue.span.start < other.span.end and other.span.start < cue.span.end for other in near)
    return not overlaps and cue.span.end <= seconds + SLACK


def _counts(names: Counter[str]) -> str:
    return abbreviate(f"{name} ({count})" for name, count in names.most_common())


def _describe(cues: Iterable[Cue]) -> str:
    """Return the number of cues and where the first ones start."""
    times = [wording.clock(cue.span.start) for cue in cues]
    return f"{len(times)} {'cue' if len(times) == 1 else 'cues'} ({abbreviate(times)})"
