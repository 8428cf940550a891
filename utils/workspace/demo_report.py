"""The page that the demo ends with: audio, spectrograms, metrics and the loss curve."""

import base64
import html
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from utils.core.events import Event, iter_events
from utils.core.paths import Project
from utils.core.storage import write_atomically
from utils.evaluation.report import EvaluationReport, summary
from utils.evaluation.results import METRICS, EvaluatedUtterance
from utils.media import audio
from utils.media.rates import OUTPUT_RATE
from utils.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = "demo.html"
WINDOW, HOP = 1024, 256  # samples
FLOOR = -80.0  # dB below the maximum
AFTER, BEFORE = "after", "before"
SHOWN = ("similarity", "duration_error", "real_time_factor")  # the metrics that need no recogniser
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .3rem .9rem .3rem 0; text-align: left; vertical-align: top; }
img { max-width: 100%; } audio { width: 100%; } .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.note { color: #555; } .am { font-size: 1.2rem; }
"""


def write_page(
    project: Project, training: Run, report: EvaluationReport, reference: Path, notes: Sequence[str]
) -> Path:
    """Write demo.html with all audio and images embedded.

    Args:
        project: Project of the demo.
        training: The training run.
        report: Evaluation of the fine-tuned model and its base, in this order.
        reference: The reference clip.
        notes: Sentences for the top of the page.
    """
    events = list(iter_events(training.events))
    tuned, base = report.checkpoints
    before = {result.text: result for result in report.of(base)}
    parts = [
        "<h1>Fine-tuning on this computer</h1>",
        *(f"<p>{html.escape(note)}</p>" for note in notes),
        f"<h2>Reference voice</h2>{_player(reference)}",
        *(_sentence(report.folder, result, before[result.text]) for result in report.of(tuned)),
        f"<h2>Evaluation</h2>{_metrics(report)}",
        f"<h2>Training loss</h2>{_image(_loss_curve(events), 'loss by step')}",
        f"<h2>Optimizations</h2>{_optimizations(events)}",
    ]
    head = f'<meta charset="utf-8"><title>Amharic XTTS demo</title><style>{STYLE}</style>'
    path = project.root / PAGE
    write_atomically(path, f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n')
    return path


def _sentence(folder: Path, after: EvaluatedUtterance, before: EvaluatedUtterance) -> str:
    """Show both models side by side."""
    sides = "".join(
        f"<div>{title}{_audio(folder, result)}</div>" for title, result in ((BEFORE, before), (AFTER, after))
    )
    return f'<h2 class="am" lang="am">{html.escape(after.text)}</h2><div class="pair">{sides}</div>'


def _audio(folder: Path, result: EvaluatedUtterance) -> str:
    if not result.wav:
        return f'<p class="note">{html.escape(result.error or "; ".join(result.flags) or "no audio")}</p>'
    path = folder / result.wav
    return f"{_player(path)}{_image(_spectrogram(path), f'spectrogram: {result.text}')}"


def _metrics(report: EvaluationReport) -> str:
    shown = [metric for metric in METRICS if metric.name in SHOWN]
    rows = []
    for title, name in zip((AFTER, BEFORE), report.checkpoints, strict=True):
        means = summary(report.of(name))
        rows.append([title, *(metric.format(means[metric.name]) for metric in shown)])
    return _table(["", *(f"{metric.title}, {metric.better} is better" for metric in shown)], rows)


def _optimizations(events: Iterable[Event]) -> str:
    applied = [event for event in events if event["kind"] == "optimization"]
    rows = [[str(event.get(name, "")) for name in ("name", "changed", "detail")] for event in applied]
    return _table(["optimization", "changed", "detail"], rows)


def _loss_curve(events: Iterable[Event]) -> "Figure":
    points: dict[str, list[tuple[float, float]]] = {"train": [], "evaluation": []}
    for event in events:
        if event["kind"] in points and isinstance(event.get("loss"), int | float):
            points[str(event["kind"])].append((float(str(event["step"])), float(str(event["loss"]))))
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel="step", ylabel="audio loss")
    for name, label in (("train", "training clips"), ("evaluation", "held-out clips")):
        axes.plot(*zip(*points[name], strict=True) if points[name] else ([], []), label=label, marker=".")
    axes.legend()
    return figure


def _spectrogram(path: Path) -> "Figure":
    samples = audio.load(path, OUTPUT_RATE)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 2), layout="constrained")
    axes = figure.subplots()
    seconds, kilohertz = len(samples) / OUTPUT_RATE, OUTPUT_RATE / 2000
    axes.imshow(_decibels(samples), origin="lower", aspect="auto", extent=(0, seconds, 0, kilohertz))
    axes.set(xlabel="s", ylabel="kHz")
    return figure


def _decibels(samples: audio.Samples) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the magnitude of each frequency over time, in dB below the maximum."""
    padded = np.pad(samples.astype(np.float64), (0, max(WINDOW - len(samples), 0)))
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP] * np.hanning(WINDOW)
    magnitude = np.abs(np.fft.rfft(frames)).T
    decibels: np.ndarray[tuple[int, int], np.dtype[np.float64]] = 20 * np.log10(
        magnitude / max(magnitude.max(), 1e-9) + 1e-9
    )
    return decibels.clip(min=FLOOR)


def _image(figure: "Figure", description: str) -> str:
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=100)
    return f'<img alt="{html.escape(description)}" src="data:image/png;base64,{_base64(image.getvalue())}">'


def _player(path: Path) -> str:
    kind = path.suffix.removeprefix(".")
    return f'<audio controls src="data:audio/{kind};base64,{_base64(path.read_bytes())}"></audio>'


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{html.escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
