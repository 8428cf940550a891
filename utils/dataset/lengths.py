"""Lengths of the clips of a dataset, from the headers of their files: nothing is decoded."""

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
    """Lengths of many clips."""

    seconds: tuple[float, ...]
    unreadable: tuple[Row, ...] = ()
    tokens: tuple[int, ...] = ()  # of each text, if a vocabulary is given


def measure(path: Path) -> tuple[list[Row], Lengths]:
    """Read the headers of all clips of a dataset folder or of one list."""
    rows = [row for listed in list_files(path) for row in read_list(listed)]
    if not rows:
        raise DataError(f"{path} has no clips.", hint="Choose a dataset folder or a metadata list.")
    seconds = [header_seconds(row.path) for row in rows]
    unreadable = tuple(row for row, value in zip(rows, seconds, strict=True) if value is None)
    return rows, Lengths(tuple(value for value in seconds if value is not None), unreadable)


def header_seconds(path: Path) -> float | None:
    """Return the length that a file's header states, or None if it cannot be read."""
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


def report(lengths: Lengths) -> str:
    """Describe the lengths in lines of text, with a histogram in steps of a second."""
    lines = []
    if lengths.seconds:
        lines.append(f"clips                {len(lengths.seconds)}, {sum(lengths.seconds) / 3600:.2f} h")
    for name, values, form in (("seconds", lengths.seconds, ".2f"), ("tokens", lengths.tokens, ".0f")):
        if values:
            lines.append(
                f"{name:<21}" + ", ".join(f"{share:g} % {percentile(values, share):{form}}" for share in SHARES)
            )
    if lengths.unreadable:
        shown = ", ".join(f"{row.list.name}:{row.line}" for row in lengths.unreadable[:5])
        lines.append(f"unreadable           {len(lengths.unreadable)}: {shown}{' …' * (len(lengths.unreadable) > 5)}")
    if lengths.seconds:
        counts = np.bincount(np.asarray(lengths.seconds).astype(int)).tolist()
        lines += [
            f"{second:>7} s            {'█' * math.ceil(WIDTH * count / max(counts))} {count}"
            for second, count in enumerate(counts)
        ]
        lines.append(f"suggested            --max-audio-length {suggested(lengths.seconds):g}")
        if over := sum(value > LIMIT for value in lengths.seconds):
            lines.append(f"over {LIMIT} s          {over} clips, which XTTS cannot use")
    return "\n".join(lines)
