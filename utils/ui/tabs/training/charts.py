"""Curves as HTML and SVG of our own: they follow light and dark, stay readable on a phone, and cost no library.

The lines are drawn in SVG that is stretched to the room there is; all words stand beside it as HTML, so that they keep
their size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from utils.ui.i18n import t
from utils.ui.views import note

WIDTH, HEIGHT = 1000, 300
ROOM = 0.05  # above and below the curves
TONES = 6

Points = Sequence[tuple[float, float]]

CSS = """
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr)); gap: 16px; }
.chart { margin: 0; min-width: 0; }
.chart figcaption { font-weight: 600; font-size: var(--text-sm); margin-bottom: 2px; color: var(--body-text-color); }
.chart .plot { display: grid; grid-template-columns: auto 1fr; gap: 0 6px; }
.chart .ys { display: flex; flex-direction: column; justify-content: space-between; text-align: end; }
.chart :is(.ys, .xs, .legend) { font-size: 12px; font-variant-numeric: tabular-nums;
  color: var(--body-text-color-subdued); }
.chart .xs { grid-column: 2; display: flex; justify-content: space-between; }
.chart svg { width: 100%; height: 150px; display: block; background: var(--block-background-fill);
  border: 1px solid var(--border-color-primary); border-radius: 4px; }
.chart path { fill: none; vector-effect: non-scaling-stroke; stroke-width: 1.75; stroke-linejoin: round; }
.chart path.dots { stroke-width: 7; stroke-linecap: round; }
.chart path.grid { stroke: var(--border-color-primary); stroke-width: 1; }
.chart .legend { display: flex; flex-wrap: wrap; gap: 0 12px; margin-top: 2px; }
.chart .legend b { color: var(--body-text-color); }
.chart .legend span::before { content: ""; display: inline-block; width: 14px; height: 4px; border-radius: 2px;
  margin-inline-end: 5px; vertical-align: middle; background: var(--tone); }
.tone0 { --tone: #047857; } .tone1 { --tone: #b45309; } .tone2 { --tone: #1d4ed8; }
.tone3 { --tone: #be185d; } .tone4 { --tone: #6d28d9; } .tone5 { --tone: #475569; }
.dark .tone0 { --tone: #34d399; } .dark .tone1 { --tone: #fbbf24; } .dark .tone2 { --tone: #60a5fa; }
.dark .tone3 { --tone: #f472b6; } .dark .tone4 { --tone: #a78bfa; } .dark .tone5 { --tone: #cbd5e1; }
.chart path.line, .chart path.dots { stroke: var(--tone); }
"""


@dataclass(frozen=True)
class Line:
    """A curve of a chart.

    Attributes:
        label: What it is, already in the language of the page.
        points: Steps with values.
        dotted: Few points that are shown each.
    """

    label: str
    points: Points
    dotted: bool = False


def charts(made: Sequence[str]) -> str:
    """Put charts side by side, as many as there is room for."""
    return f'<div class="charts">{"".join(made)}</div>'


def chart(title: str, lines: Sequence[Line], language: str) -> str:
    """Draw curves over their steps; without a point, say so."""
    drawn = [(number, line) for number, line in enumerate(lines) if line.points]
    if not drawn:
        waiting = note(t("training.no_points", language))
        return f'<figure class="chart"><figcaption>{escape(title)}</figcaption>{waiting}</figure>'
    frame = Frame.around([line.points for _, line in drawn])
    paths = "".join(_path(frame, line, number % TONES) for number, line in drawn)
    said = "; ".join(f"{line.label} {short(line.points[-1][1])}" for _, line in drawn)
    legend = "".join(
        f'<span class="tone{number % TONES}">{escape(line.label)} <b>{short(line.points[-1][1])}</b></span>'
        for number, line in drawn
    )
    grid = f"M0 {HEIGHT / 2:g}H{WIDTH}"
    return (
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption><div class="plot">'
        f'<div class="ys"><span>{short(frame.high)}</span><span>{short((frame.low + frame.high) / 2)}</span>'
        f"<span>{short(frame.low)}</span></div>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(f"{title}: {said}")}"><path class="grid" d="{grid}"/>{paths}</svg>'
        f'<div class="xs"><span>{frame.first:g}</span><span>{escape(t("common.step", language))}</span>'
        f"<span>{frame.last:g}</span></div></div>"
        f'<div class="legend">{legend}</div></figure>'
    )


@dataclass(frozen=True)
class Frame:
    """The rectangle that holds all points."""

    first: float
    last: float
    low: float
    high: float

    @classmethod
    def around(cls, curves: Sequence[Points]) -> "Frame":
        """Find the frame of several curves; one point alone gets some room too."""
        steps = [step for points in curves for step, _ in points]
        values = [value for points in curves for _, value in points]
        low, high = min(values), max(values)
        room = (high - low) * ROOM or abs(high) * ROOM or 1.0
        low = max(0.0, low - room) if low >= 0 else low - room
        return cls(min(steps), max(steps), low, high + room)

    def place(self, step: float, value: float) -> str:
        """Return where a point lies in the picture."""
        x = (step - self.first) / ((self.last - self.first) or 1) * WIDTH
        y = HEIGHT - (value - self.low) / (self.high - self.low) * HEIGHT
        return f"{x:.1f} {y:.1f}"


def _path(frame: Frame, line: Line, tone: int) -> str:
    places = [frame.place(step, value) for step, value in line.points]
    path = f'<path class="line tone{tone}" d="M{"L".join(places)}"/>'
    if line.dotted or len(places) == 1:
        path += f'<path class="dots tone{tone}" d="{"".join(f"M{place}h0.01" for place in places)}"/>'
    return path


def short(value: float) -> str:
    """Write a figure in three digits."""
    if value and abs(value) < 0.001:
        return f"{value:.2e}".replace("e-0", "e-")
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
