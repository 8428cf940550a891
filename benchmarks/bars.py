"""Bar charts as SVG, written by hand: the same bytes from the same figures on every machine, and sharp at any size."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, MARGIN, LETTER, GAP = 800, 16, 7.3, 10  # pixels: of the picture, at its edges, of a letter, around the bars
TOP, ROW, BOTTOM, THICK = 58, 28, 14, 18
NAMESPACE = "http://www.w3.org/2000/svg"  # a name that tells what SVG is; nobody calls this address
INK, SOFT, LINE = "#1f2933", "#52606d", "#c3ccd5"
COLOURS = {"ours": "#157f77", "theirs": "#9aa5b1"}
FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"


class Bar(NamedTuple):
    """One bar.

    Attributes:
        label: On its left.
        value: Its length.
        text: The figure at the right edge.
        kind: "ours" or "theirs".
    """

    label: str
    value: float
    text: str
    kind: str


def chart(title: str, note: str, bars: Sequence[Bar], reference: float | None = None) -> str:
    """Draw bars below each other; the reference, if any, is an upright line."""
    height = TOP + ROW * len(bars) + BOTTOM
    left = MARGIN + GAP + LETTER * max(len(bar.label) for bar in bars)
    right = WIDTH - MARGIN - GAP - LETTER * max(len(bar.text) for bar in bars)
    scale = (right - left) / max(bar.value for bar in bars)
    parts = [
        f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        f'<g font-family="{FONT}" font-size="14">',
        f"<title>{escape(title)}</title>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6" fill="#ffffff" stroke="{LINE}"/>',
        f'<text x="{MARGIN}" y="26" font-size="16" font-weight="600" fill="{INK}">{escape(title)}</text>',
        f'<text x="{MARGIN}" y="46" font-size="13" fill="{SOFT}">{escape(note)}</text>',
    ]
    for number, bar in enumerate(bars):
        parts += drawn(bar, TOP + ROW * number, left, scale)
    if reference:
        x, foot = f"{left + reference * scale:.1f}", height - BOTTOM
        parts.append(f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{foot}" stroke="{INK}" stroke-dasharray="3 3"/>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


def drawn(bar: Bar, top: int, left: float, scale: float) -> list[str]:
    """Draw one bar with its label and its figure."""
    length, middle, edge = f"{bar.value * scale:.1f}", top + ROW // 2 + 5, top + (ROW - THICK) // 2
    return [
        f'<text x="{left - GAP:.1f}" y="{middle}" text-anchor="end" fill="{INK}">{escape(bar.label)}</text>',
        f'<rect x="{left:.1f}" y="{edge}" width="{length}" height="{THICK}" fill="{COLOURS[bar.kind]}"/>',
        f'<text x="{WIDTH - MARGIN}" y="{middle}" text-anchor="end" fill="{INK}">{escape(bar.text)}</text>',
    ]
