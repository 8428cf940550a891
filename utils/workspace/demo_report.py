"""The page that a demonstration ends with: what was prepared and learnt, and both voices to listen to and look at."""

import base64
import html
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from utils.core.events import Event, iter_events
from utils.core.paths import Project
from utils.core.plotting import new_figure
from utils.core.storage import write_atomically
from utils.evaluation.report import EvaluationReport, summary
from utils.evaluation.utterance import METRICS, Utterance
from utils.media import audio
from utils.media.rates import OUTPUT_RATE
from utils.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = "demo.html"
WINDOW, STEP = 1024, 256  # samples of a spectrum, and from one to the next
DEEPEST = -80.0  # dB below the loudest that is drawn
AFTER, BEFORE = "after", "before"  # as the page names the two models
FIGURES = ("similarity", "duration_error", "real_time_factor")  # none needs a recogniser
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .3rem .9rem .3rem 0; text-align: left; vertical-align: top; }
img { max-width: 100%; } audio { width: 100%; } .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.told { color: #555; } .am { font-size: 1.2rem; }
"""


def write_page(project: Project, training: Run, report: EvaluationReport, reference: Path, told: Sequence[str]) -> Path:
    """Write the page, with every sound and picture inside.

    Args:
        project: Of the demonstration; the page goes into its folder.
        training: The run that taught the voice.
        report: What both models spoke and what was measured of it; the taught one is named first.
        reference: The clip whose voice was asked for.
        told: What else has to be known, in sentences.
    """
    events = list(iter_events(training.events))
    before = {one.text: one for one in report.of(report.checkpoints[1])}
    parts = [
        "<h1>From a recording to a voice, on this computer</h1>",
        *(f"<p>{html.escape(sentence)}</p>" for sentence in told),
        f"<h2>The voice it was to learn</h2>{_player(reference)}",
        *(_sentence(report, one, before[one.text]) for one in report.of(report.checkpoints[0])),
        f"<h2>Measured</h2>{_figures(report)}",
        f"<h2>The loss while it learnt</h2>{_image(_curve(events), 'loss over updates')}",
        f"<h2>What each box did</h2>{_switches(events)}",
    ]
    head = f'<meta charset="utf-8"><title>A voice for Amharic</title><style>{STYLE}</style>'
    path = project.root / PAGE
    write_atomically(path, f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n')
    return path


def _sentence(report: EvaluationReport, after: Utterance, before: Utterance) -> str:
    """Show what both models made of a sentence, side by side."""
    sides = "".join(
        f"<div>{title}{_side(report.folder, one)}</div>" for title, one in ((BEFORE, before), (AFTER, after))
    )
    return f'<h2 class="am" lang="am">{html.escape(after.text)}</h2><div class="pair">{sides}</div>'


def _side(folder: Path, one: Utterance) -> str:
    if not one.wav:
        return f'<p class="told">{html.escape(one.fault or "; ".join(one.flags) or "no sound")}</p>'
    sound = folder / one.wav
    return f"{_player(sound)}{_image(_spectrogram(sound), f'spectrogram: {one.text}')}"


def _figures(report: EvaluationReport) -> str:
    shown = [metric for metric in METRICS if metric.name in FIGURES]
    rows = []
    for title, name in zip((AFTER, BEFORE), report.checkpoints, strict=True):
        found = summary(report.of(name))
        rows.append([title, *(metric.show(found[metric.name]) for metric in shown)])
    return _table(["", *(f"{metric.title}, {metric.better} is better" for metric in shown)], rows)


def _switches(events: Iterable[Event]) -> str:
    found = [event for event in events if event["kind"] == "optimization"]
    rows = [[str(event.get(name, "")) for name in ("name", "changed", "detail")] for event in found]
    return _table(["switch", "changed", "what it did"], rows)


def _curve(events: Iterable[Event]) -> "Figure":
    points: dict[str, list[tuple[float, float]]] = {"train": [], "evaluation": []}
    for event in events:
        if event["kind"] in points and isinstance(event.get("loss"), int | float):
            points[str(event["kind"])].append((float(str(event["step"])), float(str(event["loss"]))))
    figure = new_figure(8, 3)
    axes = figure.subplots()
    axes.set(xlabel="update", ylabel="loss of the audio codes")
    for name, label in (("train", "clips it learns from"), ("evaluation", "clips it never learns from")):
        axes.plot(*zip(*points[name], strict=True) if points[name] else ([], []), label=label, marker=".")
    axes.legend()
    return figure


def _spectrogram(path: Path) -> "Figure":
    sound = audio.load(path, OUTPUT_RATE)
    figure = new_figure(5, 2)
    axes = figure.subplots()
    axes.imshow(
        spectrum_of(sound), origin="lower", aspect="auto", extent=(0, len(sound) / OUTPUT_RATE, 0, OUTPUT_RATE / 2000)
    )
    axes.set(xlabel="s", ylabel="kHz")
    return figure


def spectrum_of(sound: audio.Samples) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the loudness of each frequency over time, in dB below the loudest."""
    padded = np.pad(sound.astype(np.float64), (0, max(WINDOW - len(sound), 0)))
    pieces = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::STEP] * np.hanning(WINDOW)
    loud = np.abs(np.fft.rfft(pieces)).T
    decibels: np.ndarray[tuple[int, int], np.dtype[np.float64]] = 20 * np.log10(loud / max(loud.max(), 1e-9) + 1e-9)
    return decibels.clip(min=DEEPEST)


def _image(figure: "Figure", described: str) -> str:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=100)
    return f'<img alt="{html.escape(described)}" src="data:image/png;base64,{_text(drawn.getvalue())}">'


def _player(path: Path) -> str:
    kind = path.suffix.removeprefix(".")
    return f'<audio controls src="data:audio/{kind};base64,{_text(path.read_bytes())}"></audio>'


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{html.escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
