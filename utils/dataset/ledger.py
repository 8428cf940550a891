"""Where every second of every recording went: kept, set aside for a reason, or a pause between clips."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from utils.dataset.clip import Clip, Span


@dataclass(frozen=True, slots=True)
class Entry:
    """One recording, or one file that could not be used.

    Attributes:
        source: Path or address.
        seconds: Length of the recording.
        kept: Seconds in clips that are in use.
        aside: Seconds set aside, by reason.
        fault: Why the file could not be used.
    """

    source: str
    seconds: float
    kept: float
    aside: Mapping[str, float]
    fault: str = ""

    @property
    def between(self) -> float:
        """Return the seconds that are in no clip: the pauses."""
        return self.seconds - self.kept - sum(self.aside.values())


class Ledger:
    """The sum of all recordings."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, source: str, seconds: float, clips: Iterable[Clip]) -> Entry:
        """Account for one recording; a second that lies in two clips counts once, for the one that is kept."""
        entry = account(source, seconds, clips)
        self.entries.append(entry)
        return entry

    def fail(self, source: str, fault: str) -> None:
        """Account for a file of which nothing could be used."""
        self.entries.append(Entry(source, 0.0, 0.0, {}, fault))

    @property
    def seconds(self) -> float:
        """Return the length of all recordings."""
        return sum(entry.seconds for entry in self.entries)

    @property
    def kept(self) -> float:
        """Return the seconds in use."""
        return sum(entry.kept for entry in self.entries)

    @property
    def aside(self) -> dict[str, float]:
        """Return the seconds set aside by reason, the costliest first."""
        total: dict[str, float] = defaultdict(float)
        for entry in self.entries:
            for reason, seconds in entry.aside.items():
                total[reason] += seconds
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    @property
    def between(self) -> float:
        """Return the seconds of the pauses between clips."""
        return sum(entry.between for entry in self.entries)

    @property
    def faults(self) -> list[Entry]:
        """Return the files that could not be used."""
        return [entry for entry in self.entries if entry.fault]

    def render(self) -> str:
        """Write one paragraph, in minutes, whose parts add up."""
        aside = self.aside
        reasons = ", ".join(f"{reason} {_minutes(seconds)}" for reason, seconds in aside.items())
        told = (
            f"Input {_minutes(self.seconds)} min: in use {_minutes(self.kept)},"
            f" pauses between clips {_minutes(self.between)},"
            f" excluded {_minutes(sum(aside.values()))}{': ' if reasons else ''}{reasons}."
        )
        faults = "; ".join(f"{entry.source} ({entry.fault.rstrip('.')})" for entry in self.faults)
        return f"{told} Not used: {faults}." if faults else told


def account(source: str, seconds: float, clips: Iterable[Clip]) -> Entry:
    """Divide one recording among its clips."""
    ordered = sorted(clips, key=lambda clip: (clip.status != "kept", clip.span.start))
    kept = [clip.span for clip in ordered if clip.status == "kept"]
    taken = _union(kept, seconds)
    in_use = _length(taken)
    aside: dict[str, float] = {}
    for reason in dict.fromkeys(clip.reason for clip in ordered if clip.status == "excluded"):
        spans = [clip.span for clip in ordered if clip.status == "excluded" and clip.reason == reason]
        before = _length(taken)
        taken = _union([*taken, *spans], seconds)
        aside[reason] = _length(taken) - before
    return Entry(source, seconds, in_use, aside)


def _union(spans: Iterable[Span], seconds: float) -> list[Span]:
    """Join spans that overlap, within the recording."""
    return list(_merged(sorted((max(0.0, span.start), min(seconds, span.end)) for span in spans)))


def _merged(edges: Sequence[tuple[float, float]]) -> Iterator[Span]:
    reached = 0.0
    for start, end in edges:
        if end > reached:
            yield Span(max(start, reached), end)
            reached = end


def _length(spans: Iterable[Span]) -> float:
    return sum(span.seconds for span in spans)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"
