"""Subtitles to cues that one can trust: in order, not empty, not overlapping, said once; every change is told.

``read_cues`` reads a file; ``fit`` then holds the cues against the length of their recording.
"""

import html
import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from utils.core.errors import DataError
from utils.dataset.clip import Cue, Span, abbreviate
from utils.dataset.encodings import is_garbled, read_any
from utils.dataset.subtitle_blocks import Raw, read_blocks

TAG = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|\{[\\*][^{}]*\}|\{[yY]:[^{}]*\}")
NOTE = re.compile(r"\[[^\[\]]*\]|[♪♫♬♩]+")  # [applause], [music]: heard, but not said
TURN = re.compile(r"^\s*(?:[-–—](?!\d)\s*|>{1,3}\s*)+")  # the dash or >> that opens a turn; -5 is a number
LABEL = re.compile(r"^\s*([^\W\d_][\w'’.-]*(?: [\w'’.-]+)?)\s*[:：፦፥]\s+(?=\S)")
SAYING = re.compile(r"(?:^| )(?:አለ|አለች|አሉ|አልኩ|አልኳት|አልኩት|አላት|አላቸው|ይላል|ትላለች|ይላሉ)$")  # "he said:" belongs to the speech
LABELS_NEEDED = 3  # a name and a colon that occur less often may belong to the text

TOUCHING = 0.5  # seconds; a shorter overlap is an inexact border, a longer one two voices
SHORTEST = 0.3  # seconds in which a word can be said
SLACK = 1.0  # seconds that a cue may reach beyond its recording before anyone has to hear of it
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Cues:
    """The cues of a file, and what had to be mended or left out."""

    cues: tuple[Cue, ...]
    warnings: tuple[str, ...] = ()


def read_cues(path: Path) -> Cues:
    """Read SRT, VTT, ASS and what else pysubs2 knows: cues in order of time that do not overlap."""
    text = read_any(path)
    try:
        blocks = read_blocks(text.text, path.suffix)
    except DataError as error:
        raise DataError(
            f"{path}: {error}", hint="Save the subtitles as SRT, for example with Subtitle Edit."
        ) from error
    if not blocks.cues:
        raise DataError(f"{path} holds no cue with times.", hint="Check that it is a subtitle file and not empty.")
    warnings = [
        *text.warnings,
        *(f"Line {lost.line} has no readable times; left out: {lost.text[:80]!r}." for lost in blocks.unreadable),
    ]
    cues: Sequence[Raw] = blocks.cues
    for step in (_without_marks, _in_order, _without_empty, _without_strange_times, _said_once, _readable):
        cues = step(cues, warnings.append)
    apart = _apart([Cue(Span(cue.start, cue.end), " ".join(cue.lines)) for cue in cues], warnings.append)
    return Cues(tuple(apart), tuple(f"{path.name}: {warning}" for warning in warnings))


def fit(found: Cues, seconds: float, name: str) -> Cues:
    """Hold cues against the length of their recording: take whole hours off, and leave out what lies beyond its end.

    Args:
        found: The cues of the file.
        seconds: How long the recording is.
        name: Name of the subtitle file, for the warnings.
    """
    warnings: list[str] = []
    cues = _without_hours(list(found.cues), seconds, warnings.append)
    beyond = [cue for cue in cues if cue.span.start >= seconds]
    if beyond:
        warnings.append(
            f"Left out, beyond the end of the recording ({seconds:.1f} s): {_spans(beyond)}, of {len(cues)}. "
            "Do the subtitles belong to this recording?"
        )
    if cut := [cue for cue in cues if cue.span.start < seconds < cue.span.end - SLACK]:
        warnings.append(f"Cut at the end of the recording ({seconds:.1f} s): {_spans(cut)}.")
    inside = (
        Cue(Span(cue.span.start, min(cue.span.end, seconds)), cue.text) for cue in cues if cue.span.start < seconds
    )
    return Cues(tuple(inside), found.warnings + tuple(f"{name}: {warning}" for warning in warnings))


Warn = Callable[[str], None]


def _without_marks(cues: Sequence[Raw], warn: Warn) -> list[Raw]:
    """Strip tags, notes and the names of speakers from the text."""
    plain = [Raw(cue.start, cue.end, tuple(map(_untagged, cue.lines))) for cue in cues]
    notes = Counter(note.strip() for cue in plain for line in cue.lines for note in NOTE.findall(line))
    if notes:
        warn(f"Notes that nobody says were taken out of the text: {abbreviate(_counted(notes))}.")
    labels = _labels(plain)
    if labels:
        warn(f"Names of speakers were taken out of the text: {abbreviate(_counted(labels))}.")
    if len(labels) > 1:
        warn(f"{len(labels)} speakers take turns; a voice should be trained on one of them.")
    return [Raw(cue.start, cue.end, _spoken(cue.lines, labels)) for cue in plain]


def _untagged(line: str) -> str:
    return TURN.sub("", html.unescape(TAG.sub("", line)).replace("\u200e", "").replace("\u200f", ""))


def _spoken(lines: Iterable[str], labels: Counter[str]) -> tuple[str, ...]:
    stripped = (NOTE.sub(" ", line) for line in lines)
    unnamed = (LABEL.sub("", line) if _label(line) in labels else line for line in stripped)
    return tuple(" ".join(words) for line in unnamed if (words := line.split()))


def _labels(cues: Iterable[Raw]) -> Counter[str]:
    """Count the names that open lines again and again; in Latin capitals once is enough."""
    names = Counter(label for cue in cues for line in cue.lines if (label := _label(NOTE.sub(" ", line))))
    return Counter({name: n for name, n in names.items() if n >= LABELS_NEEDED or (name.isupper() and len(name) > 1)})


def _label(line: str) -> str:
    match = LABEL.match(line)
    return match[1] if match and not SAYING.search(match[1]) else ""


def _in_order(cues: Sequence[Raw], warn: Warn) -> list[Raw]:
    moved = [later for earlier, later in pairwise(cues) if later.start < earlier.start]
    if moved:
        warn(f"Sorted by time, because they stand out of order: {_times(moved)}.")
    return sorted(cues, key=lambda cue: (cue.start, cue.end))


def _without_empty(cues: Sequence[Raw], warn: Warn) -> list[Raw]:
    empty = [cue for cue in cues if not cue.lines]
    if empty:
        warn(f"Without text: {_times(empty)}.")
    return [cue for cue in cues if cue.lines]


def _without_strange_times(cues: Sequence[Raw], warn: Warn) -> list[Raw]:
    """Leave out cues that end before they begin; where they begin is not sure either."""
    strange = [cue for cue in cues if cue.end <= cue.start]
    if strange:
        texts = abbreviate((repr(" ".join(cue.lines)[:40]) for cue in strange), 3)
        warn(f"Left out, because they end before they begin: {_times(strange)}: {texts}.")
    return [cue for cue in cues if cue.end > cue.start]


def _said_once(cues: Sequence[Raw], warn: Warn) -> list[Raw]:
    """Fold rolling captions, where each cue shows the last line again, and cues that stand there twice."""
    shown = list(dict.fromkeys(cues))
    if len(shown) < len(cues):
        warn(f"Taken once, because they stand there again: {_times((Counter(cues) - Counter(shown)).elements())}.")
    repeats = [_repeated(earlier, later) for earlier, later in pairwise(shown)]
    if sum(map(bool, repeats)) < max(2, len(repeats) / 2):
        return shown
    warn("The captions roll: lines that are shown again were taken once.")
    new = [Raw(cue.start, cue.end, _words(cue)[known:]) for cue, known in zip(shown, [0, *repeats], strict=True)]
    return [Raw(cue.start, cue.end, (" ".join(cue.lines),)) for cue in new if cue.lines]


def _repeated(earlier: Raw, later: Raw) -> int:
    """Count the first words of a cue that the cue before it showed already: whole lines, or all that it showed."""
    before, now = _words(earlier), _words(later)
    if later.start - earlier.end > TOUCHING:
        return 0
    lines = [len(" ".join(later.lines[:count]).split()) for count in range(len(later.lines), 0, -1)]
    return max((n for n in {*lines, len(before)} if 0 < n <= len(now) and before[-n:] == now[:n]), default=0)


def _words(cue: Raw) -> tuple[str, ...]:
    return tuple(" ".join(cue.lines).split())


def _readable(cues: Sequence[Raw], warn: Warn) -> list[Raw]:
    garbled = [cue for cue in cues if is_garbled(" ".join(cue.lines))]
    if garbled:
        warn(f"Left out, because letters are lost for good: {_times(garbled)}.")
    return [cue for cue in cues if not is_garbled(" ".join(cue.lines))]


def _apart(cues: list[Cue], warn: Warn) -> list[Cue]:
    """End overlaps: a short one at the later start; a long one by joining, for two voices cannot be cut apart."""
    over = [earlier.span.end - later.span.start for earlier, later in pairwise(cues)]
    overlapping = sum(seconds > 0 for seconds in over)
    if not overlapping:
        return cues
    staggered = len(over) > 2 and overlapping * 2 > len(over)  # then the display lingers, and nobody talks at once
    apart, ended, joined = cues[:1], [], []
    for cue in cues[1:]:
        last = apart[-1]
        if last.span.end <= cue.span.start:
            apart.append(cue)
        elif _can_end_at(last, cue, staggered=staggered):
            apart[-1:] = [Cue(Span(last.span.start, cue.span.start), last.text), cue]
            ended.append(last)
        else:
            apart[-1] = Cue(Span(last.span.start, max(last.span.end, cue.span.end)), f"{last.text} {cue.text}")
            joined.append(cue)
    if ended:
        warn(f"Ended where the next one begins: {_spans(ended)}.")
    if joined:
        warn(f"Joined with the one before, because they overlap too far to be cut apart: {_spans(joined)}.")
    return apart


def _can_end_at(last: Cue, cue: Cue, *, staggered: bool) -> bool:
    """Tell whether a cue keeps enough of its time when it ends where the next one begins."""
    rest = cue.span.start - last.span.start
    if cue.span.end < last.span.end:
        return False
    return (
        rest >= SHORTEST if staggered else rest * 2 >= last.span.seconds and last.span.end - cue.span.start <= TOUCHING
    )


def _without_hours(cues: list[Cue], seconds: float, warn: Warn) -> list[Cue]:
    """Take whole hours off cues that lie beyond the end: off all of them, or off those that then fall into a gap."""
    if not cues or cues[-1].span.end <= seconds + SLACK:
        return cues
    hours = int(cues[0].span.start // HOUR)
    if hours and cues[-1].span.end - hours * HOUR <= seconds + SLACK:
        warn(f"All times are {hours} h ahead of the recording ({seconds:.1f} s); {hours} h were taken off.")
        return [_earlier(cue, hours) for cue in cues]
    kept = [cue for cue in cues if cue.span.start < seconds]
    moved: list[Cue] = []
    for cue in cues[len(kept) :]:
        gaps = [shifted for shifted in _earlier_by_hours(cue) if _fits(shifted, kept, seconds)]
        insort(kept, gaps[0] if len(gaps) == 1 else cue, key=_start)
        moved += [cue] if len(gaps) == 1 else []
    if moved:
        warn(f"Moved by whole hours into the gap where they belong: {_spans(moved)}.")
    return kept


def _earlier_by_hours(cue: Cue) -> list[Cue]:
    return [_earlier(cue, hours) for hours in range(1, int(cue.span.start // HOUR) + 1)]


def _fits(cue: Cue, others: Sequence[Cue], seconds: float) -> bool:
    """Tell whether a cue lies inside the recording, and between two of the others, which are in order."""
    after = bisect_left(others, cue.span.start, key=_start)
    free = not any(_overlap(cue, other) for other in others[max(0, after - 1) : after + 1])
    return free and cue.span.end <= seconds + SLACK


def _start(cue: Cue) -> float:
    return cue.span.start


def _earlier(cue: Cue, hours: int) -> Cue:
    return Cue(Span(round(cue.span.start - hours * HOUR, 3), round(cue.span.end - hours * HOUR, 3)), cue.text)


def _overlap(one: Cue, other: Cue) -> bool:
    return one.span.start < other.span.end and other.span.start < one.span.end


def _counted(names: Counter[str]) -> Iterator[str]:
    return (f"{name} ({count})" for name, count in names.most_common())


def _times(cues: Iterable[Raw]) -> str:
    return _listed([cue.start for cue in cues])


def _spans(cues: Iterable[Cue]) -> str:
    return _listed([cue.span.start for cue in cues])


def _listed(starts: Sequence[float]) -> str:
    return f"{len(starts)} {'cue' if len(starts) == 1 else 'cues'} ({abbreviate(map(_clock, starts))})"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes) // 60}:{int(minutes) % 60:02d}:{rest:04.1f}"
