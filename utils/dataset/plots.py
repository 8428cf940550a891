"""The statistics of a dataset as pictures for a report."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from utils.core.storage import atomic_writer
from utils.dataset.statistics import Statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 40


def draw(found: Statistics, path: Path) -> None:
    """Draw lengths, pace, noise and phonemes into one PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7), layout="constrained")
    (lengths, pace), (snr, phonemes) = figure.subplots(2, 2)
    _histogram(lengths, found.seconds, "Length of the clips", "seconds")
    _histogram(pace, found.pace, "Pace", "letters a second")
    _histogram(snr, found.snr, "Noise", "SNR in dB")
    _bars(phonemes, found.phonemes)
    with atomic_writer(path) as file:
        figure.savefig(file, format="png", dpi=120)


def _histogram(axes: "Axes", values: Sequence[float], title: str, unit: str) -> None:
    axes.set(title=title, xlabel=unit, ylabel="clips")
    if values:
        axes.hist(values, bins=BINS)
    else:
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes)


def _bars(axes: "Axes", counts: dict[str, int]) -> None:
    axes.set(title="Phonemes", ylabel="times", yscale="symlog")
    axes.bar(range(len(counts)), list(counts.values()))
    axes.set_xticks(range(len(counts)), list(counts), rotation=90, fontsize=8)
