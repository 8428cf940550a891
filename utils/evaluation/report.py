"""What an evaluation found, on screen and on disk: the models side by side, and the worst sentences first."""

import csv
import io
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from utils.core.errors import DataError
from utils.core.storage import read_json, write_atomically
from utils.evaluation.significance import compare
from utils.evaluation.utterance import METRICS, Metric, Utterance, restored

JSON, CSV = "report.json", "report.csv"
FORMAT = 1
COLUMNS = ("checkpoint", "voice", "text", "heard", *(metric.name for metric in METRICS), "flags_raised", "fault", "wav")
WORST, SHOWN = 10, 60  # sentences on screen, and letters of each


@dataclass(frozen=True)
class EvaluationReport:
    """What an evaluation found.

    Attributes:
        folder: Where it lies, with the sounds.
        utterances: Everything that was measured, the worst first.
        checkpoints: Names of the models, in the order in which they were named.
        notes: What has to be known to read the figures, in sentences.
        yardstick: Mean figures of the recordings themselves, which no model can be expected to surpass by much.
        settings: How the models spoke.
        missing: Sentences that were not spoken yet, because the evaluation was interrupted.
    """

    folder: Path
    utterances: tuple[Utterance, ...]
    checkpoints: tuple[str, ...]
    notes: tuple[str, ...] = ()
    yardstick: dict[str, float] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    missing: int = 0

    def of(self, checkpoint: str) -> list[Utterance]:
        """Return what one model spoke."""
        return [one for one in self.utterances if one.checkpoint == checkpoint]


def badness(utterance: Utterance) -> float:
    """Say how bad an utterance is, to put the worst first: what is wrong in it adds up, each at most twofold."""
    if utterance.fault:
        return 10.0
    shares = (utterance.cer, utterance.duration_error, float(len(utterance.flags)))
    return sum(min(2.0, share) for share in shares if share is not None)


def sorted_by_badness(utterances: Iterable[Utterance]) -> tuple[Utterance, ...]:
    """Put the worst first."""
    return tuple(sorted(utterances, key=badness, reverse=True))


def summary(utterances: Sequence[Utterance]) -> dict[str, float | None]:
    """Return the mean of each figure; of the speed the median, because a first sentence also warms up."""
    found: dict[str, float | None] = {}
    for metric in METRICS:
        values = [value for one in utterances if (value := metric.value(one)) is not None]
        middle = statistics.median if metric.name == "real_time_factor" else statistics.fmean
        found[metric.name] = middle(values) if values else None
    return found


def save(report: EvaluationReport) -> None:
    """Write report.json and report.csv, each as a whole."""
    data = {
        "format": FORMAT,
        "checkpoints": report.checkpoints,
        "summary": {name: summary(report.of(name)) for name in report.checkpoints},
        "yardstick": report.yardstick,
        "differences": [asdict(one) | {"sentence": str(one)} for one in compare(report.utterances)],
        "notes": report.notes,
        "settings": report.settings,
        "missing": report.missing,
        "utterances": [
            asdict(one) | {"duration_error": one.duration_error, "badness": badness(one)} for one in report.utterances
        ],
    }
    write_atomically(report.folder / JSON, json.dumps(data, ensure_ascii=False, indent=1))
    write_atomically(report.folder / CSV, "\ufeff" + _csv(report))  # the mark tells spreadsheets that it is UTF-8


def load(folder: Path) -> EvaluationReport:
    """Read a report again."""
    path = folder / JSON
    try:
        data = read_json(path)
        return EvaluationReport(
            folder,
            tuple(map(restored, data["utterances"])),
            tuple(data["checkpoints"]),
            tuple(data["notes"]),
            data["yardstick"],
            data["settings"],
            data["missing"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} cannot be read: {error!r}.", hint="Run the evaluation again.") from error


def text(report: EvaluationReport) -> str:
    """Write a report for a terminal: a table, what it means, and the sentences to listen to first."""
    parts = ["\n".join(_table(report)), *_by_voice(report), "\n".join(map(str, compare(report.utterances)))]
    worst = [one for one in report.utterances if badness(one) > 0][:WORST]
    if worst:
        parts.append("\n".join(["Worst first:", *map(_line, worst)]))
    parts.append("\n".join(f"Note: {note}" for note in report.notes))
    return "\n\n".join(part for part in parts if part)


def _table(report: EvaluationReport) -> list[str]:
    rows = [_row(name, report.of(name)) for name in report.checkpoints]
    if report.yardstick:
        cells = [metric.show(report.yardstick.get(metric.name)) for metric in METRICS]
        rows.append(["(the recordings)", "", *cells])
    return _aligned(["model", "sentences", *(metric.title for metric in METRICS)], rows)


def _by_voice(report: EvaluationReport) -> list[str]:
    """Return a table of voices where there are several: a good mean may hide one that failed."""
    if len({one.voice for one in report.utterances}) < 2:
        return []
    order = sorted(report.utterances, key=lambda one: (report.checkpoints.index(one.checkpoint), one.voice))
    groups = groupby(order, key=lambda one: (one.checkpoint, one.voice))
    rows = [_row(f"{name}, {voice or 'no name'}", list(found)) for (name, voice), found in groups]
    return ["\n".join(_aligned(["by voice", "sentences", *(metric.title for metric in METRICS)], rows))]


def _row(name: str, utterances: Sequence[Utterance]) -> list[str]:
    found = summary(utterances)
    failed = sum(bool(one.fault) for one in utterances)
    count = f"{len(utterances)}, {failed} failed" if failed else str(len(utterances))
    return [name, count, *(metric.show(found[metric.name]) for metric in METRICS)]


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]
    return [
        "  ".join(cell.ljust(width) if place < 2 else cell.rjust(width) for place, (cell, width) in cells).rstrip()
        for row in (header, *rows)
        for cells in [list(enumerate(zip(row, widths, strict=True)))]
    ]


def _line(one: Utterance) -> str:
    said = one.text if len(one.text) <= SHOWN else f"{one.text[:SHOWN]}…"
    figures = [f"{metric.title} {metric.show(value)}" for metric in _telling() if (value := metric.value(one))]
    return f"  {one.checkpoint}: {said} [{'; '.join([one.fault] if one.fault else [*figures, *one.flags])}]"


def _telling() -> list[Metric]:
    return [metric for metric in METRICS if metric.name in {"cer", "duration_error"}]


def _csv(report: EvaluationReport) -> str:
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for one in report.utterances:
        figures = {metric.name: _rounded(metric.value(one)) for metric in METRICS}
        writer.writerow(asdict(one) | figures | {"flags_raised": "; ".join(one.flags)})
    return table.getvalue()


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
