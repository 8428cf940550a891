"""The figures of an evaluation as a picture: every sentence a dot, the models side by side."""

from typing import TYPE_CHECKING

import numpy as np

from utils.core.plotting import new_figure
from utils.core.storage import atomic_writer
from utils.evaluation.report import EvaluationReport
from utils.evaluation.utterance import METRICS, Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILE = "report.png"
LETTERS = 24  # of a model's name below its column


def draw(report: EvaluationReport) -> None:
    """Draw one panel a figure into report.png."""
    columns = 4
    rows = -(-len(METRICS) // columns)
    figure = new_figure(4 * columns, 3.6 * rows)
    panels = figure.subplots(rows, columns).flat
    for metric in METRICS:
        _panel(next(panels), report, metric)
    for empty in panels:
        empty.set_visible(b=False)
    with atomic_writer(report.folder / FILE) as file:
        figure.savefig(file, format="png", dpi=100)


def _panel(axes: "Axes", report: EvaluationReport, metric: Metric) -> None:
    """Draw one figure: dots, and a line at the mean."""
    unit = f" ({metric.unit.strip()})" if metric.unit.strip() else ""
    axes.set(title=f"{metric.title}{unit}, {metric.better} is better")
    names = [name if len(name) <= LETTERS else f"…{name[-LETTERS:]}" for name in report.checkpoints]
    axes.set_xticks(range(len(names)), names, rotation=20, ha="right", fontsize=8)
    axes.set_xlim(-0.5, max(0, len(names) - 1) + 0.5)
    spread = np.random.default_rng(0)
    empty = True
    for place, name in enumerate(report.checkpoints):
        values = [metric.scale * value for one in report.of(name) if (value := metric.value(one)) is not None]
        if not values:
            continue
        empty = False
        axes.plot(place + spread.uniform(-0.2, 0.2, len(values)), values, "o", alpha=0.5, markersize=4)
        axes.hlines(float(np.mean(values)), place - 0.3, place + 0.3, colors="black")
    if empty:
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes)
