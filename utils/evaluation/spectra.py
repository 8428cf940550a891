"""How unlike two recordings of the same words sound, whatever their pace: mel-cepstral distance along the best path."""

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE

Floats = npt.NDArray[np.float32]
Distances = npt.NDArray[np.float64]
WINDOW, HOP = 1024, 240  # samples: 43 ms every 10 ms
BANDS, HIGHEST = 40, 8000.0  # Hz
ORDER = 13  # cepstra, without the first: that is loudness
FLOOR = 60.0  # dB below the loudest band of a recording: what is quieter is its room, which is not compared
SCALE = 10 / np.log(10) * np.sqrt(2)  # to dB: of cepstra that add up, as cosines, to the logarithm of the envelope


def distance(first: Samples, second: Samples) -> float | None:
    """Return the mean distance in dB of two sounds at 24 kHz, each without silence around it; None when one is empty.

    The cepstra come from 40 mel bands and not from WORLD's envelopes, so the figures compare models here with each
    other, and not with figures that were published elsewhere.
    """
    one, other = cepstra(first), cepstra(second)
    if not one.size or not other.size:
        return None
    return float(SCALE * aligned(one, [other])[0])


def cepstra(samples: Samples) -> Floats:
    """Return 13 cepstra of each 10 ms."""
    if samples.size < WINDOW:
        return np.zeros((0, ORDER), np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(WINDOW).astype(np.float32), axis=1)))
    bands = power @ _filters().T
    lowest = max(float(bands.max()) * 10 ** (-FLOOR / 10), 1e-12)
    return np.asarray(np.log(np.maximum(bands, lowest)) / 2 @ _cosines().T, np.float32)


def aligned(first: Floats, others: Sequence[Floats]) -> Distances:
    """Return the mean distance along the cheapest path through a sequence and each of some others (time warping).

    Anti-diagonals depend only on the two before, so each is computed at once, and for all others. Beside its cost, each
    cell carries the length of its path. What is empty is infinitely far.
    """
    rows, columns = len(first), max(map(len, others))
    costs = np.full((len(others), rows, columns), np.inf)
    for place, other in enumerate(others):
        costs[place, :, : len(other)] = _distances(first, other)
    costs = costs[:, :, ::-1]
    found = np.full(len(others), np.inf)
    ends = rows + np.array([len(other) for other in others]) - 2  # the diagonal of each last cell
    before, last = ((np.full((len(others), rows + 1), np.inf), np.zeros((len(others), rows + 1))) for _ in range(2))
    before[0][:, 0] = 0.0  # where every path begins
    for number in range(rows + columns - 1):
        low, high = max(0, number - columns + 1), min(rows, number + 1)
        # row i lies at i + 1, so that index i of the last diagonal is the cell above
        best = tuple(part[:, low + 1 : high + 1] for part in last)
        for way in (tuple(part[:, low:high] for part in one) for one in (last, before)):
            shorter = way[0] < best[0]
            best = np.where(shorter, way[0], best[0]), np.where(shorter, way[1], best[1])
        new = np.full_like(last[0], np.inf), np.zeros_like(last[1])
        new[0][:, low + 1 : high + 1] = best[0] + costs.diagonal(columns - 1 - number, 1, 2)
        new[1][:, low + 1 : high + 1] = best[1] + 1
        over = ends == number
        found[over] = new[0][over, rows] / new[1][over, rows]
        before, last = last, new
    return found


def _distances(first: Floats, second: Floats) -> Distances:
    squares = np.square(first).sum(1)[:, None] + np.square(second).sum(1)[None] - 2 * first @ second.T
    return np.asarray(np.sqrt(np.maximum(squares, 0)), np.float64)


@functools.cache
def _filters() -> Floats:
    """Return triangles evenly spaced in mel, one a row."""
    top = 2595 * np.log10(1 + HIGHEST / 700)
    edges = 700 * (10 ** (np.linspace(0, top, BANDS + 2) / 2595) - 1)
    frequencies = np.fft.rfftfreq(WINDOW, 1 / OUTPUT_RATE)
    left, middle, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (frequencies - left) / (middle - left), (right - frequencies) / (right - middle)
    return np.asarray(np.maximum(0, np.minimum(rising, falling)), np.float32)


@functools.cache
def _cosines() -> Floats:
    """Return the rows 1 to 13 of the DCT-II whose cepstra are the heights of cosines."""
    orders, places = np.arange(1, ORDER + 1)[:, None], np.arange(BANDS)[None] + 0.5
    return np.asarray(2 / BANDS * np.cos(np.pi * orders * places / BANDS), np.float32)
