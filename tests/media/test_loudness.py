"""Speech reaches the loudness that was asked for, as a whole and in chunks, and never clips."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.signal import resample_poly

from testing.random_model import synthetic_speech
from utils.media.audio import Samples
from utils.media.loudness import Normalizer, loudness, normalized
from utils.media.rates import OUTPUT_RATE as RATE

SPEECH = synthetic_speech(6.0, seed=1)


def true_peak(samples: Samples) -> float:
    return float(20 * np.log10(np.abs(resample_poly(samples, 8, 1)).max()))


def in_chunks(samples: Samples, target: float, *ends: int) -> Samples:
    normalizer = Normalizer(RATE, target)
    parts = [normalizer.push(samples[start:end]) for start, end in pairwise([0, *ends, samples.size])]
    return np.concatenate([*parts, normalizer.finish()])


@pytest.mark.parametrize("gain", [0.2, 1.0, 10.0])
def test_speech_of_any_level_gets_the_same_loudness(gain: float) -> None:
    result = normalized(SPEECH * np.float32(gain), RATE, -16)
    assert result.size == SPEECH.size
    assert loudness(result, RATE) == pytest.approx(-16, abs=0.5)
    assert true_peak(result) < -0.9


def test_only_peaks_are_lowered() -> None:
    peaky = SPEECH.copy()
    peaky[RATE] = 1.0
    result, plain = normalized(peaky, RATE, -16), normalized(SPEECH, RATE, -16)
    assert true_peak(result) < -0.9
    far = slice(3 * RATE, None)
    assert np.abs(result[far]).max() == pytest.approx(np.abs(plain[far]).max(), rel=0.05)


def test_a_stream_is_as_loud_as_the_whole_from_its_first_chunk() -> None:
    result = in_chunks(SPEECH, -16, *range(RATE // 2, SPEECH.size, RATE))
    assert result.size == SPEECH.size
    assert loudness(result, RATE) == pytest.approx(-16, abs=1)
    assert loudness(result[: RATE // 2], RATE) == pytest.approx(-16, abs=2)
    assert true_peak(result) < -0.9


def test_chunks_of_any_size_join_without_a_gap() -> None:
    tone = np.sin(2 * np.pi * 200 * np.arange(2 * RATE) / RATE).astype(np.float32)  # its gain does not change
    whole = normalized(tone, RATE, -2)
    assert np.abs(whole).max() < 0.9
    np.testing.assert_allclose(in_chunks(tone, -2, RATE, RATE + 7, RATE + 5000), whole, atol=2e-2)


def test_silence_short_sounds_and_no_target() -> None:
    silence = np.zeros(RATE, np.float32)
    assert not normalized(silence, RATE, -16).any()
    word = SPEECH[: RATE // 5]
    assert loudness(np.resize(normalized(word, RATE, -16), RATE), RATE) == pytest.approx(-16, abs=1)
    np.testing.assert_array_equal(normalized(SPEECH, RATE, 0), SPEECH)
