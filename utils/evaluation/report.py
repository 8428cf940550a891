"""The report of an evaluation: JSON, CSV and a table for the terminal, worst sentences first."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from utils.core import wording
from utils.core.facts import Fact, from_json, to_json
from utils.core.storage import hash_json, read_document, write_atomically
from utils.evaluation.facts import EvaluationError
from utils.evaluation.metrics import compare
from utils.evaluation.results import METRICS, EvaluatedUtterance

JSON = "report.json"
CSV = "report.csv"
FORMAT = 1
COLUMNS = (
    "checkpoint voice text transcript".split() + [metric.name for metric in METRICS] + "flags_raised error wav".split()
)
WORST, MAX_LETTERS = 10, 60  # sentences in the terminal, and letters of each


@dataclass(frozen=True)
class EvaluationReport:
    """The result of an evaluation."""

    folder: Path  # of the report and the audio
    utterances: tuple[EvaluatedUtterance, ...]  # worst first
    checkpoints: tuple[str, ...]  # names of the models, in the order given
    notes: tuple[Fact, ...] = ()  # that explain the numbers
    recording_error_rates: dict[str, float] = field(default_factory=dict)  # means: the best a model can reach
    settings: dict[str, Any] = field(default_factory=dict)  # of speech
    missing: int = 0  # sentences not spoken yet, because the evaluation was interrupted

    def of(self, checkpoint: str) -> list[EvaluatedUtterance]:
        return [result for result in self.utterances if result.checkpoint == checkpoint]


def badness(utterance: EvaluatedUtterance) -> float:
    """Score an utterance for sorting: the sum of its problems, each counted up to 2."""
    if utterance.error:
        return 10.0
    problems = (utterance.cer, utterance.duration_error, float(len(utterance.flags)))
    return sum(min(2.0, problem) for problem in problems if problem is not None)


def summary(utterances: Sequence[EvaluatedUtterance]) -> dict[str, float | None]:
    """Return the mean of each metric; for the speed the median, because the first sentence also warms up."""
    means = {}
    for metric in METRICS:
        values = [value for result in utterances if (value := metric.value(result)) is not None]
        average = statistics.median if metric.name == "real_time_factor" else statistics.fmean
        means[metric.name] = average(values) if values else None
    return means


def save(report: EvaluationReport) -> None:
    data = {
        "format": FORMAT,
        "checkpoints": report.checkpoints,
        "summary": {name: summary(report.of(name)) for name in report.checkpoints},
        "recording_error_rates": report.recording_error_rates,
        "differences": [
            asdict(gap) | {"metric": gap.metric.name, "sentence": str(gap)} for gap in compare(report.utterances)
        ],
        "notes": list(map(to_json, report.notes)),
        "settings": report.settings,
        "missing": report.missing,
        "utterances": [
            result.to_json() | {"duration_error": result.duration_error, "badness": badness(result)}
            for result in report.utterances
        ],
    }
    text = json.dumps({"digest": hash_json(data), **data}, ensure_ascii=False, indent=1)
    write_atomically(report.folder / JSON, text)
    write_atomically(report.folder / CSV, f"\ufeff{_csv(report)}")  # spreadsheets need the mark to read UTF-8


def _csv(report: EvaluationReport) -> str:
    import pandas as pd

    rows = [
        asdict(result)
        | {metric.name: metric.value(result) for metric in METRICS}
        | {"flags_raised": "; ".join(map(str, result.flags)), "error": str(result.error or "")}
        for result in report.utterances
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(index=False, float_format="%.4f", lineterminator="\n")


def load(folder: Path) -> EvaluationReport:
    path = folder / JSON
    try:
        data = read_document(path)
        return EvaluationReport(
            folder,
            tuple(map(EvaluatedUtterance.parse, data["utterances"])),
            tuple(data["checkpoints"]),
            tuple(map(from_json, data["notes"])),
            data["recording_error_rates"],
            data["settings"],
            data["missing"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EvaluationError(str(path), "no_report", repr(error)) from error


def text(report: EvaluationReport) -> str:
    worst = [result for result in report.utterances if badness(result) > 0][:WORST]
    parts = [
        _table(report),
        _by_voice(report),
        list(map(str, compare(report.utterances))),
        ["Worst first:", *map(_line, worst)] if worst else [],
        [f"Note: {wording.describe(note)}" for note in report.notes],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _table(report: EvaluationReport) -> list[str]:
    rows = [_row(name, report.of(name)) for name in report.checkpoints]
    if report.recording_error_rates:
        cells = [metric.format(report.recording_error_rates.get(metric.name)) for metric in METRICS]
        rows.append(["(recordings)", "", *cells])
    return _aligned("model", rows)


def _by_voice(report: EvaluationReport) -> list[str]:
    """Return a table by voice where there are several."""
    if len({result.voice for result in report.utterances}) < 2:
        return []
    order = sorted(report.utterances, key=lambda result: (report.checkpoints.index(result.checkpoint), result.voice))
    groups = groupby(order, key=lambda result: (result.checkpoint, result.voice))
    return _aligned(
        "by voice", [_row(f"{name}, {voice or 'unnamed'}", list(results)) for (name, voice), results in groups]
    )


def _row(name: str, utterances: Sequence[EvaluatedUtterance]) -> list[str]:
    means = summary(utterances)
    failed = sum(bool(result.error) for result in utterances)
    count = f"{len(utterances)}, {failed} failed" if failed else str(len(utterances))
    return [name, count, *(metric.format(means[metric.name]) for metric in METRICS)]


def _aligned(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns: the first two to the left, numbers to the right."""
    header = [title, "sentences", *(metric.title for metric in METRICS)]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *rows)
    ]


def _line(result: EvaluatedUtterance) -> str:
    sentence = result.text if len(result.text) <= MAX_LETTERS else f"{result.text[:MAX_LETTERS]}…"
    metrics = [metric for metric in METRICS if metric.name in {"cer", "duration_error"}]
    values = [f"{metric.title} {metric.format(value)}" for metric in metrics if (value := metric.value(result))]
    problems = [str(result.error)] if result.error else [*values, *map(str, result.flags)]
    return f"  {result.checkpoint}: {sentence} [{'; '.join(problems)}]"
