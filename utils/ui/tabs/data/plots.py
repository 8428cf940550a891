"""Drawings of a dataset as SVG: histograms, bars, and the waveform of a clip; knows nothing of gradio."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

import numpy as np

from utils.media.audio import Samples
from utils.ui.i18n import t
from utils.ui.views import note

BINS = 30
WIDTH, HEIGHT = 600, 160
WAVE_WIDTH, WAVE_HEIGHT = 600, 120

CSS = """
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 260px), 1fr)); gap: 16px;
  margin-block: 8px; }
.picture { margin: 0; min-width: 0; }
.picture figcaption { font-weight: 600; font-size: var(--text-sm); margin-bottom: 2px; color: var(--body-text-color); }
.picture svg { width: 100%; height: 110px; display: block; background: var(--block-background-fill);
  border: 1px solid var(--border-color-primary); border-radius: 4px; }
.picture rect { fill: #047857; } .dark .picture rect { fill: #34d399; }
.picture rect.none { fill: #b91c1c; } .dark .picture rect.none { fill: #fca5a5; }
.picture .xs { display: flex; justify-content: space-between; font-size: 12px; font-variant-numeric: tabular-nums;
  color: var(--body-text-color-subdued); }
.sounds { display: flex; flex-wrap: wrap; gap: 4px; margin: 4px 0; padding: 0 !important; list-style: none !important; }
.sounds li { font-size: 12px; border: 1px solid var(--border-color-primary); border-radius: 4px; padding: 1px 6px;
  margin: 0 !important; }
.sounds li.none { border-color: #b91c1c; font-weight: 700; }
.wave { position: relative; margin: 6px 0; --start: 0; --end: 1; --split: -1; --at: -1; overflow: hidden;
  border: 1px solid var(--border-color-primary); border-radius: 4px; background: var(--block-background-fill); }
.wave svg { display: block; width: 100%; height: 110px; }
.wave path { fill: #047857; } .dark .wave path { fill: #34d399; }
.wave i { position: absolute; top: 0; bottom: 0; pointer-events: none; }
.wave .before { left: 0; width: calc(var(--start) * 100%); background: #64748b88; }
.wave .after { right: 0; width: calc((1 - var(--end)) * 100%); background: #64748b88; }
.wave .cut { left: calc(var(--split) * 100%); border-left: 2px dashed #b45309; }
.wave .now { left: calc(var(--at) * 100%); border-left: 2px solid #1d4ed8; }
.dark .wave .cut { border-color: #fbbf24; } .dark .wave .now { border-color: #93c5fd; }
"""


def pictures(drawn: Sequence[str]) -> str:
    """Put pictures side by side, as many as there is room for."""
    return f'<div class="pictures">{"".join(drawn)}</div>'


def histogram(title: str, values: Sequence[float], unit: str, language: str) -> str:
    """Draw how often which values occur; without any, say so."""
    if not values:
        return _figure(title, note(t("data.not_measured", language)))
    counts, edges = np.histogram(np.asarray(values, np.float64), bins=BINS)
    middle = float(np.median(values))
    ends = [f"{edges[0]:.3g}", t("data.median", language, value=f"{middle:.3g}"), f"{edges[-1]:.3g} {unit}"]
    told = f"{title}: {', '.join(ends)}"
    return _figure(title, _bars(counts.tolist(), told) + _below(ends))


def sounds(title: str, counts: Mapping[str, int], language: str) -> str:
    """Draw how often each sound occurs, on a logarithmic scale, and name those that occur nowhere."""
    if not counts:
        return _figure(title, note(t("data.amharic_only", language)))
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    heights = [math.log10(1 + count) for _, count in ordered]
    ends = [f"{ordered[0][0]} × {ordered[0][1]}", f"{ordered[-1][0]} × {ordered[-1][1]}"]
    return _figure(title, _bars(heights, f"{title}: {ends[0]} … {ends[1]}") + _below(ends))


def sound_list(counts: Mapping[str, int]) -> str:
    """List sounds with how often each occurs."""
    items = (
        f"<li{'' if count else ' class=none'}>{escape(sound)} × {count}</li>"
        for sound, count in sorted(counts.items(), key=lambda item: item[1])
    )
    return f'<ul class="sounds">{"".join(items)}</ul>'


def waveform(samples: Samples, told: str) -> str:
    """Draw the outline of a sound, with the marks that the sliders move."""
    return (
        f'<div class="wave"><svg viewBox="0 0 {WAVE_WIDTH} {WAVE_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(told)}"><path d="{outline(samples)}"/></svg>'
        '<i class="before"></i><i class="after"></i><i class="cut"></i><i class="now"></i></div>'
    )


def outline(samples: Samples) -> str:
    """Return the path around the loudest points of each stretch."""
    if not samples.size:
        return "M0 0"
    edges = np.linspace(0, samples.size, min(WAVE_WIDTH, samples.size) + 1).astype(int)
    parts = [samples[begin:end] for begin, end in pairwise(edges)]
    top = max(1e-3, float(np.abs(samples).max()))
    middle = WAVE_HEIGHT / 2
    step = WAVE_WIDTH / len(parts)
    upper = [
        f"{number * step:.0f} {middle - middle * float(part.max()) / top:.1f}" for number, part in enumerate(parts)
    ]
    lower = [
        f"{number * step:.0f} {middle - middle * float(part.min()) / top:.1f}" for number, part in enumerate(parts)
    ]
    return f"M{'L'.join([*upper, *reversed(lower)])}Z"


def _figure(title: str, inside: str) -> str:
    return f'<figure class="picture"><figcaption>{escape(title)}</figcaption>{inside}</figure>'


def _bars(heights: Sequence[float], told: str) -> str:
    step, most = WIDTH / len(heights), max(heights) or 1.0
    bars = "".join(
        f'<rect x="{number * step:.1f}" y="{HEIGHT - HEIGHT * height / most:.1f}" width="{step * 0.9:.1f}" '
        f'height="{HEIGHT * height / most:.1f}"/>'
        for number, height in enumerate(heights)
    )
    return (
        f'<svg viewBox="0 -6 {WIDTH} {HEIGHT + 6}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(told)}">{bars}</svg>'
    )


def _below(texts: Sequence[str]) -> str:
    return f'<div class="xs">{"".join(f"<span>{escape(text)}</span>" for text in texts)}</div>'
