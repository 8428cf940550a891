"""Subtitle files to clean cues: in order, with text, not overlapping, each line once. Every change is a warning.

``read_cues`` reads a file; ``fit_cues`` then checks the cues against the length of their recording. pysubs2
parses ASS, SSA, TTML and SAMI. SRT and VTT are parsed here, because pysubs2 silently drops cues whose times have no
milliseconds and last lines that are numbers, and takes VTT notes and cue names for text.
"""

import html
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

from utils.core import wording
from utils.core.facts import Fact
from utils.dataset.clip import abbreviate
from utils.dataset.readers.facts import ForeignFileError, TextRepair, TextRepaired
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
NAMED = "\ue000"  # between the name in a voice tag, which may have any characters, and what is said
NAME = r"[^\W\d_][\w'’.-]*(?: [\w'’.()-]+){0,3}"
LABEL = re.compile(rf"^\s*(?:([^{NAMED}]+?)\s*{NAMED}\s*|({NAME})\s*[:：፦፥]\s+)(?=\S)")
VOICE = re.compile(r"<v(?:\.[\w.]+)?\s+([^<>]+?)\s*>")  # of VTT
SAYING = re.compile(r"(?:^| )(?:አለ|አለች|አሉ|አልኩ|አልኳት|አልኩት|አላት|አላቸው|ይላል|ትላለች|ይላሉ)$")  # "he said:" belongs to the text
MEETING = 0.8  # share of lines
MIN_LABELS = 3  # a word and a colon that occur less often may belong to the text

SHORT_OVERLAP = 0.5  # seconds; a shorter overlap is an imprecise border, a longer one two voices
MIN_CUE = 0.3  # seconds; enough for one word
SLACK = 1.0  # seconds that a cue may end after its recording without a warning
HOUR = 3600.0

Parsed = tuple[list[Cue], list[tuple[int, str]]]  # cues with all their lines, and the lines that cannot be parsed


@dataclass
class Repairs:
    """What was changed in the cues of a file."""

    name: str
    facts: list[Fact] = field(default_factory=list)

    def note(self, repair: TextRepair, cues: Iterable[Cue], *, show_text: bool = False) -> None:
        """Note cues, if there are any, with their times."""
        shown = [f"{wording.clock(cue.span.start)} {cue.text[:40] if show_text else ''}".strip() for cue in cues]
        if shown:
            self.add(repair, len(shown), abbreviate(shown))

    def add(self, repair: TextRepair, count: int = 0, what: str = "") -> None:
        self.facts.append(TextRepaired(self.name, repair, count, what))


def read_cues(path: Path) -> tuple[list[Cue], list[Fact]]:
    """Read a subtitle file: cues in order that do not overlap, and a warning for every repair or omission."""
    text, facts = read_any_encoding(path)
    repairs = Repairs(path.name, facts)
    cues, unreadable = _parse(text, path)
    if not cues:
        raise ForeignFileError(path, "no_cues")
    for line, content in unreadable:
        repairs.add("no_times", line, content[:80])
    cues = _clean_text(_sort(cues, repairs), repairs)
    cues = _drop_unusable(cues, repairs)
    cues = _drop_repeated(cues, repairs)
    cues = _drop(cues, lambda cue: is_garbled(cue.text), "garbled", repairs)
    return _end_overlaps([replace(cue, text=cue.text.replace("\n", " ")) for cue in cues], repairs), repairs.facts


def fit_cues(cues: Sequence[Cue], seconds: float, name: str) -> tuple[list[Cue], list[Fact]]:
    """Return cues, which are in order, as those of a recording of a length; those after its end are dropped."""
    repairs = Repairs(name)
    cues = _remove_hours(_end_overlaps(_drop_unusable(cues, repairs), repairs), seconds, repairs)
    repairs.note("late", [cue for cue in cues if cue.span.start >= seconds])
    inside = [cue for cue in cues if cue.span.start < seconds]
    repairs.note("long", [cue for cue in inside if seconds < cue.span.end - SLACK])
    return [replace(cue, span=cue.span.within(0.0, seconds)) for cue in inside], repairs.facts


def _parse(text: str, path: Path) -> Parsed:
    """Parse a subtitle text; its first letters decide the format, then the suffix of its file."""
    suffix = path.suffix.lower()
    if text.lstrip().startswith("WEBVTT"):
        return _parse_timed_lines(text.split("\n"), is_vtt=True)
    if "[Script Info]" in text or "\n[Events]" in text:
        return _parse_with_pysubs2(text, path, "ass")
    if suffix in PYSUBS2_FORMATS:
        return _parse_with_pysubs2(text, path, PYSUBS2_FORMATS[suffix])
    return _parse_timed_lines(text.split("\n"), is_vtt=suffix == ".vtt")


def _parse_timed_lines(lines: list[str], *, is_vtt: bool) -> Parsed:
    times = _find_times(lines)
    head = [line for line in lines[: times[0][0] if times else None] if not NUMBER.fullmatch(line)]
    cues = []
    unreadable = [(1, _strip(head).replace("\n", " "))] if not is_vtt and _strip(head) else []
    ends = [*(number for number, _ in times[1:]), len(lines)]
    for (number, match), end in zip(times, ends, strict=False):
        text = _strip(_block(lines, number, end, is_vtt=is_vtt))
        if match:
            cues.append(Cue(Span(_seconds(*match.groups()[:4]), _seconds(*match.groups()[4:])), text))
        else:
            unreadable.append((number + 1, text.replace("\n", " ")))
    return cues, unreadable


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str | None) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction or 0}")


def _find_times(lines: Iterable[str]) -> list[tuple[int, re.Match[str] | None]]:
    """Return the numbers of lines with times, and what they match; None where the times cannot be read."""
    return [
        (number, match)
        for number, line in enumerate(lines)
        if (match := TIMES.fullmatch(line)) or ("-->" in line and any(map(str.isdigit, line)))
    ]


def _block(lines: list[str], number: int, end: int, *, is_vtt: bool) -> list[str]:
    """Return the lines of a cue, given those of its times and of the times of the next cue."""
    block = lines[number + 1 : end]
    if is_vtt:  # notes and the name of the next cue follow an empty line
        return block[: block.index("")] if "" in block else block
    return _without_next_number(block, lines[number - 1] if number else "") if end < len(lines) else block


def _without_next_number(block: list[str], line_above: str) -> list[str]:
    """Drop the number of the next cue: it follows an empty line, or continues the numbering."""
    if not block or not NUMBER.fullmatch(block[-1]):
        return block
    continues = NUMBER.fullmatch(line_above) and int(block[-1]) == int(line_above) + 1
    return block[:-1] if len(block) == 1 or not block[-2].strip() or continues else block


def _strip(lines: Iterable[str]) -> str:
    return "\n".join(line.strip() for line in lines if line.strip())


def _parse_with_pysubs2(text: str, path: Path, name: str) -> Parsed:
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
        raise ForeignFileError(path, "no_subtitles", f"{name.upper()}: {error}") from error
    cues = [
        Cue(Span(event.start / 1000, event.end / 1000), _strip(event.plaintext.split("\n")))
        for event in events
        if event.is_text  # not a drawing or a comment
    ]
    return cues, list(damaged.items())


def _clean_text(cues: Sequence[Cue], repairs: Repairs) -> list[Cue]:
    """Strip tags, notes and speaker names from the text; a speaker talks until another one takes the turn."""
    tagged = [[_remove_tags(line) for line in cue.text.split("\n")] for cue in cues]
    plain = [[TURN.sub("", line) for line in of_cue] for of_cue in tagged]
    lines = [line for of_cue in plain for line in of_cue]
    if notes := Counter(note.strip() for line in lines for note in NOTE.findall(line)):
        repairs.add("notes", len(notes), _counts(notes))
    labels = _labels(lines)
    if labels:
        repairs.add("speakers", len(labels), _counts(labels))
    if len(labels) > 1:
        repairs.add("turns", len(labels))
    cleaned = []
    talking = [""]
    for cue, with_turns, of_cue in zip(cues, tagged, plain, strict=True):
        names = [name if name in labels else "" for name in map(_label, of_cue)]
        before = "" if TURN.match(with_turns[0]) else talking[-1]
        talking = [names[0] or before, *filter(None, names[1:])]
        cleaned.append(Cue(cue.span, _speech(of_cue, labels), tuple(filter(None, dict.fromkeys(talking)))))
    return cleaned


def _labels(lines: Sequence[str]) -> Counter[str]:
    """Count the names of speakers; one in a tag or in Latin capitals counts from its first time.

    So does each one where nearly every line begins with a name, as in the transcript of a meeting.
    """
    names = Counter(filter(None, map(_label, lines)))
    tagged = {_label(line) for line in lines if NAMED in line}
    is_meeting = names.total() >= max(MIN_LABELS, MEETING * len(lines))
    sure = {name for name in names if is_meeting or name in tagged or (name.isupper() and len(name) > 1)}
    return Counter({name: n for name, n in names.items() if n >= MIN_LABELS or name in sure})


def _remove_tags(line: str) -> str:
    plain = TAG.sub("", line)
    if (voice := VOICE.match(line.lstrip())) and NOTE.sub("", plain).strip():
        plain = f"{voice[1]}{NAMED}{plain}"
    return html.unescape(plain).replace("\u200e", "").replace("\u200f", "")


def _speech(lines: Iterable[str], labels: Counter[str]) -> str:
    spoken = (NOTE.sub(" ", line) for line in lines)
    unnamed = (LABEL.sub("", line) if _label(line) in labels else line for line in spoken)
    return _strip(" ".join(line.replace(NAMED, " ").split()) for line in unnamed)


def _label(line: str) -> str:
    """Return the name that opens a line."""
    match = LABEL.match(NOTE.sub(" ", line))
    if not match:
        return ""
    tagged, written = match.groups()
    if tagged:
        return tagged.strip()
    return "" if SAYING.search(written) else written


def _sort(cues: Sequence[Cue], repairs: Repairs) -> list[Cue]:
    repairs.note("sorted", (b for a, b in pairwise(cues) if b.span.start < a.span.start))
    return sorted(cues, key=attrgetter("span.start", "span.end"))


def _drop_unusable(cues: Sequence[Cue], repairs: Repairs) -> list[Cue]:
    """Drop cues without text, and those that end before they start: then the start is not reliable either."""
    with_text = _drop(cues, lambda cue: not cue.text, "empty", repairs)
    return _drop(with_text, lambda cue: cue.span.seconds <= 0, "reversed", repairs)


def _drop(cues: Sequence[Cue], is_bad: Callable[[Cue], bool], repair: TextRepair, repairs: Repairs) -> list[Cue]:
    repairs.note(repair, filter(is_bad, cues), show_text=repair == "reversed")
    return [cue for cue in cues if not is_bad(cue)]


def _drop_repeated(cues: Sequence[Cue], repairs: Repairs) -> list[Cue]:
    """Drop duplicates, and the lines that each cue of rolling captions repeats from the one before."""
    unique = list({(cue.span, cue.text): cue for cue in reversed(cues)}.values())[::-1]
    repairs.note("repeated", (Counter(cues) - Counter(unique)).elements())
    repeated = [_count_repeated(earlier, later) for earlier, later in pairwise(unique)]
    if sum(map(bool, repeated)) < max(2, len(repeated) / 2):
        return unique
    repairs.add("rolling")
    rest = (replace(cue, text=" ".join(cue.text.split()[n:])) for cue, n in zip(unique, [0, *repeated], strict=True))
    return [cue for cue in rest if cue.text]


def _count_repeated(earlier: Cue, later: Cue) -> int:
    """Count the first words of a cue that the cue before it showed already: whole lines, or all that it showed.

    After a pause, a cue that shows nothing new is said again.
    """
    is_far = later.span.start - earlier.span.end > SHORT_OVERLAP
    before = earlier.text.split()
    now = later.text.split()
    lines = later.text.split("\n")
    whole = (len(" ".join(lines[:count]).split()) for count in range(1, len(lines) + 1))
    return max((n for n in {*whole, len(before)} if 0 < n <= len(now) - is_far and before[-n:] == now[:n]), default=0)


# Long because it is one pass over the cues: each meets what those before it have become.
def _end_overlaps(cues: list[Cue], repairs: Repairs) -> list[Cue]:
    """End short overlaps at the later start; join cues that overlap longer, because two voices cannot be separated."""
    overlapping = sum(earlier.span.end > later.span.start for earlier, later in pairwise(cues))
    staggered = len(cues) > 3 and overlapping * 2 > len(cues) - 1  # cues stay on screen longer than the speech lasts
    separate = cues[:1]
    ended = []
    joined = []
    for cue in cues[1:]:
        last = separate[-1]
        overlap = last.span.end - cue.span.start
        rest = cue.span.start - last.span.start
        is_long_enough = rest >= MIN_CUE if staggered else rest * 2 >= last.span.seconds and overlap <= SHORT_OVERLAP
        if overlap <= 0:
            separate.append(cue)
        elif is_long_enough and last.span.end <= cue.span.end:
            separate[-1:] = [replace(last, span=Span(last.span.start, cue.span.start)), cue]
            ended.append(last)
        else:
            span = Span(last.span.start, max(last.span.end, cue.span.end))
            separate[-1] = Cue(span, f"{last.text} {cue.text}", tuple(dict.fromkeys((*last.speakers, *cue.speakers))))
            joined.append(cue)
    repairs.note("ended", ended)
    repairs.note("joined", joined)
    return separate


def _remove_hours(cues: list[Cue], seconds: float, repairs: Repairs) -> list[Cue]:
    """Shift all cues by whole hours if the last one ends after the recording and all of them then fit."""
    hours = int(cues[0].span.start // HOUR) if cues and cues[-1].span.end > seconds + SLACK else 0
    if not hours or cues[-1].span.end - hours * HOUR > seconds + SLACK:
        return cues
    repairs.add("hours", hours)
    return [replace(cue, span=_shifted(cue.span, hours)) for cue in cues]


def _shifted(span: Span, hours: int) -> Span:
    return Span(round(span.start - hours * HOUR, 3), round(span.end - hours * HOUR, 3))


def _counts(names: Counter[str]) -> str:
    return abbreviate(f"{name} ({count})" for name, count in names.most_common())
