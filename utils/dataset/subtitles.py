"""Subtitle files to clean cues: in order, with text, not overlapping, each line once. Every change is a warning.

``read_cues`` reads a file; ``fit_to_recording`` then checks the cues against the length of their recording.
"""

import html
import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from utils.core.errors import DataError
from utils.dataset.clip import Cue, Span, abbreviate
from utils.dataset.subtitle_formats import RawCue, parse_subtitles
from utils.dataset.text_files import is_garbled, read_any_encoding

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

Warn = Callable[[str], None]


class SubtitleCues(NamedTuple):
    """The cues of a file, and a warning for every repair or omission."""

    cues: tuple[Cue, ...]
    warnings: tuple[str, ...] = ()


def read_cues(path: Path) -> SubtitleCues:
    """Read a subtitle file: cues in order that do not overlap."""
    text = read_any_encoding(path)
    try:
        parsed = parse_subtitles(text.text, path.suffix)
    except DataError as error:
        hint = "Save the subtitles as SRT, for example with Subtitle Edit."
        raise DataError(f"{path}: {error}", hint=hint) from error
    if not parsed.cues:
        raise DataError(f"{path} contains no timed cues.", hint="Check that it is a subtitle file and not empty.")
    warnings = [
        *text.warnings,
        *(f"Line {line} has no readable times and was skipped: {text[:80]!r}." for line, text in parsed.unreadable),
    ]
    cues: Sequence[RawCue] = parsed.cues
    for step in (_clean_text, _sort, _drop_empty, _drop_negative, _drop_repeated, _drop_garbled):
        cues = step(cues, warnings.append)
    separate = _end_overlaps([Cue(Span(cue.start, cue.end), " ".join(cue.lines)) for cue in cues], warnings.append)
    return SubtitleCues(tuple(separate), tuple(f"{path.name}: {warning}" for warning in warnings))


def fit_to_recording(subtitles: SubtitleCues, seconds: float, name: str) -> SubtitleCues:
    """Shift cues by whole hours where that fits, and drop those after the end of the recording.

    Args:
        subtitles: The cues of a file.
        seconds: Length of the recording.
        name: Name of the subtitle file, for the warnings.
    """
    warnings: list[str] = []
    cues = _remove_hours(list(subtitles.cues), seconds, warnings.append)
    if late := [cue for cue in cues if cue.span.start >= seconds]:
        warnings.append(
            f"Skipped, after the end of the recording ({seconds:.1f} s): {_describe(late)}, of {len(cues)}. "
            "Do the subtitles belong to this recording?"
        )
    if long := [cue for cue in cues if cue.span.start < seconds < cue.span.end - SLACK]:
        warnings.append(f"Cut at the end of the recording ({seconds:.1f} s): {_describe(long)}.")
    inside = (
        Cue(Span(cue.span.start, min(cue.span.end, seconds)), cue.text) for cue in cues if cue.span.start < seconds
    )
    return SubtitleCues(tuple(inside), subtitles.warnings + tuple(f"{name}: {warning}" for warning in warnings))


def _clean_text(cues: Sequence[RawCue], warn: Warn) -> list[RawCue]:
    """Strip tags, notes and speaker names from the text."""
    plain = [cue._replace(lines=tuple(map(_remove_tags, cue.lines))) for cue in cues]
    notes = Counter(note.strip() for cue in plain for line in cue.lines for note in NOTE.findall(line))
    if notes:
        warn(f"Notes that are not speech were removed: {_counts(notes)}.")
    labels = _speaker_labels(plain)
    if labels:
        warn(f"Speaker names were removed: {_counts(labels)}.")
    if len(labels) > 1:
        warn(f"{len(labels)} speakers take turns; train a voice on one speaker.")
    return [cue._replace(lines=_speech_lines(cue.lines, labels)) for cue in plain]


def _remove_tags(line: str) -> str:
    return TURN.sub("", html.unescape(TAG.sub("", line)).replace("\u200e", "").replace("\u200f", ""))


def _speech_lines(lines: Iterable[str], labels: Counter[str]) -> tuple[str, ...]:
    stripped = (NOTE.sub(" ", line) for line in lines)
    unnamed = (LABEL.sub("", line) if _label(line) in labels else line for line in stripped)
    return tuple(" ".join(words) for line in unnamed if (words := line.split()))


def _speaker_labels(cues: Iterable[RawCue]) -> Counter[str]:
    """Count the names that open several lines; one in Latin capitals counts from its first time."""
    names = Counter(label for cue in cues for line in cue.lines if (label := _label(NOTE.sub(" ", line))))
    return Counter({name: n for name, n in names.items() if n >= MIN_LABELS or (name.isupper() and len(name) > 1)})


def _label(line: str) -> str:
    match = LABEL.match(line)
    return match[1] if match and not SAYING.search(match[1]) else ""


def _sort(cues: Sequence[RawCue], warn: Warn) -> list[RawCue]:
    if moved := [later for earlier, later in pairwise(cues) if later.start < earlier.start]:
        warn(f"Sorted by time, because they were out of order: {_describe(moved)}.")
    return sorted(cues, key=lambda cue: (cue.start, cue.end))


def _drop_empty(cues: Sequence[RawCue], warn: Warn) -> list[RawCue]:
    if empty := [cue for cue in cues if not cue.lines]:
        warn(f"Without text: {_describe(empty)}.")
    return [cue for cue in cues if cue.lines]


def _drop_negative(cues: Sequence[RawCue], warn: Warn) -> list[RawCue]:
    """Drop cues that end before they start; their start is not reliable either."""
    if negative := [cue for cue in cues if cue.end <= cue.start]:
        texts = abbreviate((repr(" ".join(cue.lines)[:40]) for cue in negative), 3)
        warn(f"Skipped, because they end before they start: {_describe(negative)}: {texts}.")
    return [cue for cue in cues if cue.end > cue.start]


def _drop_repeated(cues: Sequence[RawCue], warn: Warn) -> list[RawCue]:
    """Drop duplicates, and the lines that each cue of rolling captions repeats from the one before."""
    unique = list(dict.fromkeys(cues))
    if len(unique) < len(cues):
        warn(f"Duplicates skipped: {_describe((Counter(cues) - Counter(unique)).elements())}.")
    repeated = [_repeated_words(earlier, later) for earlier, later in pairwise(unique)]
    if sum(map(bool, repeated)) < max(2, len(repeated) / 2):
        return unique
    warn("These are rolling captions; repeated lines were removed.")
    rest = (cue._replace(lines=_words(cue)[count:]) for cue, count in zip(unique, [0, *repeated], strict=True))
    return [cue._replace(lines=(" ".join(cue.lines),)) for cue in rest if cue.lines]


def _repeated_words(earlier: RawCue, later: RawCue) -> int:
    """Count the first words of a cue that the cue before it showed already: whole lines, or all that it showed."""
    before, now = _words(earlier), _words(later)
    if later.start - earlier.end > SHORT_OVERLAP:
        return 0
    lines = [len(" ".join(later.lines[:count]).split()) for count in range(len(later.lines), 0, -1)]
    return max((n for n in {*lines, len(before)} if 0 < n <= len(now) and before[-n:] == now[:n]), default=0)


def _words(cue: RawCue) -> tuple[str, ...]:
    return tuple(" ".join(cue.lines).split())


def _drop_garbled(cues: Sequence[RawCue], warn: Warn) -> list[RawCue]:
    garbled = {cue: None for cue in cues if is_garbled(" ".join(cue.lines))}  # in order
    if garbled:
        warn(f"Skipped, because characters are damaged: {_describe(garbled)}.")
    return [cue for cue in cues if cue not in garbled]


def _end_overlaps(cues: list[Cue], warn: Warn) -> list[Cue]:
    """End short overlaps at the later start; join cues that overlap longer, because two voices cannot be separated."""
    overlaps = [earlier.span.end - later.span.start for earlier, later in pairwise(cues)]
    overlapping = sum(seconds > 0 for seconds in overlaps)
    if not overlapping:
        return cues
    staggered = len(overlaps) > 2 and overlapping * 2 > len(overlaps)  # cues stay on screen; nobody talks at once
    separate, ended, joined = cues[:1], [], []
    for cue in cues[1:]:
        last = separate[-1]
        if last.span.end <= cue.span.start:
            separate.append(cue)
        elif _can_end_early(last, cue, staggered=staggered):
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


def _can_end_early(last: Cue, cue: Cue, *, staggered: bool) -> bool:
    """Return whether a cue stays long enough if it ends where the next one starts."""
    rest = cue.span.start - last.span.start
    if cue.span.end < last.span.end:
        return False
    if staggered:
        return rest >= MIN_CUE
    return rest * 2 >= last.span.seconds and last.span.end - cue.span.start <= SHORT_OVERLAP


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
        insort(placed, fitting[0] if len(fitting) == 1 else cue, key=_start)
        moved += [cue] if len(fitting) == 1 else []
    if moved:
        warn(f"Moved by whole hours into the gap where they fit: {_describe(moved)}.")
    return placed


def _shifted(cue: Cue, hours: int) -> Cue:
    return Cue(Span(round(cue.span.start - hours * HOUR, 3), round(cue.span.end - hours * HOUR, 3)), cue.text)


def _fits(cue: Cue, others: Sequence[Cue], seconds: float) -> bool:
    """Return whether a cue lies inside the recording and between two of the others, which are in order."""
    after = bisect_left(others, cue.span.start, key=_start)
    near = others[max(0, after - 1) : after + 1]
    overlaps = any(cue.span.start < other.span.end and other.span.start < cue.span.end for other in near)
    return not overlaps and cue.span.end <= seconds + SLACK


def _start(cue: Cue | RawCue) -> float:
    return cue.span.start if isinstance(cue, Cue) else cue.start


def _counts(names: Counter[str]) -> str:
    return abbreviate(f"{name} ({count})" for name, count in names.most_common())


def _describe(cues: Iterable[Cue | RawCue]) -> str:
    """Return the number of cues and where the first ones start."""
    starts = [_start(cue) for cue in cues]
    return f"{len(starts)} {'cue' if len(starts) == 1 else 'cues'} ({abbreviate(_clock(starts))})"


def _clock(starts: Iterable[float]) -> Iterator[str]:
    for start in starts:
        minutes, seconds = divmod(start, 60)
        yield f"{int(minutes) // 60}:{int(minutes) % 60:02d}:{seconds:04.1f}"
