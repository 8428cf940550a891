"""Mel-cepstral distance: the same words are near whatever their pace and loudness, others are far."""

import time

import numpy as np
import pytest

from tests.dataset.recordings import babble
from utils.evaluation.spectra import Floats, _distances, aligned, cepstra, distance
from utils.media.audio import Samples, resample


def speech(seconds: float = 2.0, seed: int = 1) -> Samples:
    return resample(babble(seconds, seed=seed), 16_000, 24_000)


def by_the_book(first: Floats, second: Floats) -> float:
    """Dynamic time warping as it is taught, one cell after the other."""
    costs = _distances(first, second)
    best = np.full((len(first) + 1, len(second) + 1), np.inf)
    steps = np.zeros_like(best)
    best[0, 0] = 0
    for row in range(len(first)):
        for column in range(len(second)):
            ways = [(row, column + 1), (row + 1, column), (row, column)]
            way = min(ways, key=lambda at: best[at])
            best[row + 1, column + 1] = best[way] + costs[row, column]
            steps[row + 1, column + 1] = steps[way] + 1
    return float(best[-1, -1] / steps[-1, -1])


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 6), (6, 1), (7, 11), (11, 7), (20, 20)])
def test_the_path_is_that_of_the_book(rows: int, columns: int) -> None:
    random = np.random.default_rng(rows)
    first, second = (random.standard_normal((size, 13)).astype(np.float32) for size in (rows, columns))
    assert aligned(first, [second]) == pytest.approx(by_the_book(first, second))


def test_of_several_each_is_as_far_as_alone_and_an_empty_one_infinitely() -> None:
    random = np.random.default_rng(1)
    first, *others = (random.standard_normal((size, 13)).astype(np.float32) for size in (9, 5, 14, 0, 1, 9))
    alone = [by_the_book(first, other) if len(other) else np.inf for other in others]
    assert aligned(first, others) == pytest.approx(alone)


def test_a_sound_is_at_no_distance_from_itself_however_loud() -> None:
    assert distance(speech(), speech()) == pytest.approx(0, abs=0.05)
    assert distance(speech(), speech() * np.float32(0.3)) == pytest.approx(0, abs=0.2)


def test_other_words_are_farther_than_another_pace_and_noise() -> None:
    spoken = speech()
    slower = resample(spoken, 24_000, 26_000)
    noisy = spoken + np.random.default_rng(0).standard_normal(spoken.size).astype(np.float32) * 0.003
    others = distance(spoken, speech(seed=2)) or 0.0
    for near in (slower, noisy.astype(np.float32)):
        assert 0 < (distance(spoken, near) or 0.0) < 0.8 * others


@pytest.mark.parametrize(("order", "height"), [(1, 2.0), (1, 8.0), (4, 8.0)])
def test_a_wave_in_the_envelope_counts_as_its_root_mean_square_in_db(order: int, height: float) -> None:
    spoken = np.random.default_rng(3).standard_normal(48_000).astype(np.float32)
    spectrum, hertz = np.fft.rfft(spoken), np.fft.rfftfreq(spoken.size, 1 / 24_000)
    wave = height * np.cos(np.pi * order * np.log1p(hertz / 700) / np.log1p(8000 / 700))
    waved = np.fft.irfft(spectrum * 10 ** (wave / 20)).astype(np.float32)
    assert distance(spoken, waved) == pytest.approx(height / np.sqrt(2), rel=0.1)


@pytest.mark.parametrize("samples", [np.zeros(0, np.float32), np.zeros(500, np.float32)])
def test_what_is_too_short_has_no_distance(samples: Samples) -> None:
    assert distance(samples, speech()) is None
    assert cepstra(samples).shape == (0, 13)


def test_ten_seconds_take_less_than_a_second() -> None:
    first, second = speech(10.0), speech(10.0, seed=2)
    began = time.perf_counter()
    distance(first, second)
    assert time.perf_counter() - began < 1.0
