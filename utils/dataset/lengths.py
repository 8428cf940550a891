"""How long the clips of a dataset are, from the headers of their files: nothing is decoded."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from utils.core.errors import DataError
from utils.dataset.metadata import Row, list_files, read_list

SHARES = (50, 90, 95, 99, 99.5, 100)
SUGGESTED_SHARE = 99.5
LIMIT = 11.6  # seconds that XTTS can hold
WIDTH = 40  # characters of the longest bar


@dataclass(frozen=True)
class Lengths:
    """Lengths of many clips.

    Attributes:
        seconds: Of each clip whose header could be read.
        unreadable: Rows whose file could not.
        tokens: Of each text, where a vocabulary is given.
    """

    seconds: tuple[float, ...]
    unreadable: tuple[Row, ...] = ()
    tokens: tuple[int, ...] = ()


def measure(place: Path) -> tuple[list[Row], Lengths]:
    """Read the headers of all clips of a dataset folder or of one list."""
    rows = [row for path in list_files(place) for row in read_list(path)]
    found = [header_seconds(row.path) for row in rows]
    if not rows:
        raise DataError(f"{place} has no clips.", hint="Choose a dataset folder or a metadata list.")
    seconds = tuple(value for value in found if value is not None)
    return rows, Lengths(seconds, tuple(row for row, value in zip(rows, found, strict=True) if value is None))


def header_seconds(path: Path) -> float | None:
    """Return the length that a file's header states, or None where it cannot be read."""
    import soundfile

    try:
        return float(soundfile.info(path).duration)
    except (soundfile.LibsndfileError, OSError):
        return None


def suggested(seconds: Sequence[float]) -> float:
    """Return a max_audio_length that keeps 99.5 % of the clips: rounded up to a tenth, within what XTTS can hold."""
    tenths = math.ceil(round(10 * percentile(seconds, SUGGESTED_SHARE), 6))
    return min(LIMIT, max(1.0, tenths / 10))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of all does not exceed; always one that occurs."""
    return float(np.percentile(values, share, method="higher"))


def histogram(seconds: Sequence[float], width: float = 1.0) -> list[tuple[float, int]]:
    """Count the lengths in steps; each step is named by its start."""
    counts = np.bincount((np.asarray(seconds) / width).astype(int))
    return [(number * width, int(count)) for number, count in enumerate(counts)]


def report(lengths: Lengths) -> str:
    """Write the lengths as lines for a person."""
    lines = []
    if lengths.seconds:
        lines += [
            f"clips                {len(lengths.seconds)}, {sum(lengths.seconds) / 3600:.2f} h",
            f"seconds              {_percentiles(lengths.seconds, '.2f')}",
        ]
    if lengths.tokens:
        lines.append(f"tokens               {_percentiles(lengths.tokens, '.0f')}")
    if lengths.unreadable:
        shown = ", ".join(f"{row.list.name}:{row.line}" for row in lengths.unreadable[:5])
        lines.append(f"unreadable           {len(lengths.unreadable)}: {shown}{' …' * (len(lengths.unreadable) > 5)}")
    if lengths.seconds:
        lines += [
            *bars(histogram(lengths.seconds)),
            f"suggested            --max-audio-length {suggested(lengths.seconds):g}",
        ]
        over = sum(value > LIMIT for value in lengths.seconds)
        lines += [f"over {LIMIT} s          {over} clips, which XTTS cannot use"] if over else []
    return "\n".join(lines)


def bars(counts: Sequence[tuple[float, int]]) -> list[str]:
    """Draw a histogram in letters."""
    most = max((count for _, count in counts), default=0) or 1
    return [f"{start:>7g} s            {'█' * math.ceil(WIDTH * count / most)} {count}" for start, count in counts]


def _percentiles(values: Sequence[float], form: str) -> str:
    return ", ".join(f"{share:g} % {percentile(values, share):{form}}" for share in SHARES)
