"""Error rates, mel-cepstral distance and the significance of differences."""

import numpy as np
import pytest

from tests.dataset.recordings import babble
from utils.evaluation.metrics import MIN_PAIRS, difference, error_rates, mel_cepstra, mel_cepstral_distance
from utils.evaluation.results import METRICS, EvaluatedUtterance
from utils.media.audio import Samples, resample

BY_NAME = {metric.name: metric for metric in METRICS}


@pytest.mark.parametrize(
    ("text", "transcript", "language", "cer", "wer"),
    [
        ("ሰላም ለዓለም።", "ሰላም ለዓለም", "am", 0.0, 0.0),
        ("ሰላም፣ ለዓለም!", "ሠላም ለአለም", "am", 0.0, 0.0),  # letters that sound alike
        ("በ2016 ተወለደ", "በሁለት ሺህ አሥራ ስድስት ተወለደ", "am", 0.0, 0.0),
        ("ሰላም ለዓለም", "ሰላምለዓለም", "am", 0.0, 1.0),  # two words became one
        ("ሰላም ለዓለም", "ሰላም ለአለሙ", "am", 1 / 7, 0.5),
        ("ሰላም", "ሰላም ሰላም ሰላም", "am", 2.0, 2.0),
        ("ሰላም ከመይ", "ሠላም ከመይ", "ti", 1 / 6, 0.5),  # only Amharic speaks these letters alike
    ],
)
def test_error_rates(text: str, transcript: str, language: str, cer: float, wer: float) -> None:
    assert error_rates("!?", transcript, language) is None
    rates = error_rates(text, transcript, language)
    assert rates is not None
    assert list(rates) == pytest.approx([cer, wer])


def speech(seconds: float = 2.0, seed: int = 1) -> Samples:
    return resample(babble(seconds, seed=seed), 16_000, 24_000)


def test_a_sound_is_at_no_distance_from_itself_whatever_its_volume() -> None:
    assert mel_cepstral_distance(speech(), speech()) == pytest.approx(0, abs=0.05)
    assert mel_cepstral_distance(speech(), speech() * np.float32(0.3)) == pytest.approx(0, abs=0.2)


def test_other_words_are_farther_than_another_pace_or_noise() -> None:
    spoken = speech()
    slower = resample(spoken, 24_000, 26_000)
    noisy = spoken + np.random.default_rng(0).standard_normal(spoken.size).astype(np.float32) * 0.003
    others = mel_cepstral_distance(spoken, speech(seed=2)) or 0.0
    for near in (slower, noisy.astype(np.float32)):
        assert 0 < (mel_cepstral_distance(spoken, near) or 0.0) < 0.8 * others


@pytest.mark.parametrize(("order", "height"), [(1, 2.0), (4, 8.0)])
def test_a_ripple_in_the_envelope_counts_as_its_root_mean_square_in_db(order: int, height: float) -> None:
    spoken = np.random.default_rng(3).standard_normal(48_000).astype(np.float32)
    spectrum, hertz = np.fft.rfft(spoken), np.fft.rfftfreq(spoken.size, 1 / 24_000)
    wave = height * np.cos(np.pi * order * np.log1p(hertz / 700) / np.log1p(8000 / 700))
    rippled = np.fft.irfft(spectrum * 10 ** (wave / 20)).astype(np.float32)
    assert mel_cepstral_distance(spoken, rippled) == pytest.approx(height / np.sqrt(2), rel=0.1)


def test_too_short_a_sound_has_no_distance() -> None:
    for samples in (np.zeros(0, np.float32), np.zeros(500, np.float32)):
        assert mel_cepstral_distance(samples, speech()) is None
        assert mel_cepstra(samples).shape == (0, 13)


def results(name: str, values: list[float | None], **fixed: float) -> list[EvaluatedUtterance]:
    return [
        EvaluatedUtterance(f"{name}{number}", name, "ሰላም", "am", "", f"s{number}", cer=value, **fixed)  # type: ignore[arg-type]
        for number, value in enumerate(values)
    ]


def drawn(mean: float, seed: int, count: int = 40) -> list[float | None]:
    return [float(value) for value in np.random.default_rng(seed).normal(mean, 0.05, count)]


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        (drawn(0.30, 1), drawn(0.20, 2), "B"),
        (drawn(0.20, 1), drawn(0.30, 2), "A"),
        (drawn(0.25, 1), drawn(0.25, 2), ""),
        (drawn(0.30, 1, MIN_PAIRS - 1), drawn(0.10, 2, MIN_PAIRS - 1), ""),
        ([0.2] * 20, [0.2] * 20, ""),
    ],
)
def test_only_a_significant_difference_has_a_winner(
    first: list[float | None], second: list[float | None], winner: str
) -> None:
    gap = difference(results("A", first) + results("B", second), BY_NAME["cer"], "A", "B")
    assert gap is not None
    assert gap.winner == winner
    assert gap.low <= gap.mean <= gap.high
    assert not winner or str(gap).startswith(f"CER: {winner} is better")


def test_only_shared_sentences_are_compared() -> None:
    utterances = results("A", [0.1, None, 0.1, 0.1]) + results("B", [0.2, 0.2, None])
    gap = difference(utterances, BY_NAME["cer"], "A", "B")
    assert gap is not None
    assert gap.pairs == 1
    assert difference(results("A", [None, 0.1]) + results("B", [0.1, None]), BY_NAME["cer"], "A", "B") is None
