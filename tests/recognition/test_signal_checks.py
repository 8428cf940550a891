"""What a recording lost is measured: synthetic speech as it is, and through a room, a telephone or a clipped input."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.dataset.recordings import Known, generated, recording
from utils.core.facts import WarningFact
from utils.media.audio import Samples, resample
from utils.recognition.facts import BandLimited, Hum, NoiseFloor, Offset, Reverberant
from utils.recognition.levels import measure
from utils.recognition.signal_checks import find_problems, plateau_share


@pytest.fixture(scope="module")
def talk() -> Known:
    return recording(25, pauses=(0.6, 1.0), noise_db=-75, speech=generated())


def as_it_is(samples: Samples) -> Samples:
    return samples


def on_the_telephone(samples: Samples) -> Samples:
    return resample(resample(samples, 16_000, 8_000), 8_000, 16_000)


def in_a_hall(samples: Samples) -> Samples:
    random, size = np.random.default_rng(0), 16_000
    room = random.standard_normal(size) * np.exp(-6.9 * np.arange(size) / (0.9 * 16_000))
    room[0] = 3.0
    padded = samples.size + size
    wet = np.fft.irfft(np.fft.rfft(samples, padded) * np.fft.rfft(room, padded), padded)[: samples.size]
    return np.asarray(0.5 * wet / np.abs(wet).max(), np.float32)


def beside_a_fan(samples: Samples) -> Samples:
    noise = np.random.default_rng(0).standard_normal(samples.size) * np.std(samples) * 0.15
    return (samples + noise).astype(np.float32)


def on_the_mains(samples: Samples) -> Samples:
    times = np.arange(samples.size) / 16_000
    return np.asarray(samples + np.std(samples) * np.sin(2 * np.pi * 50 * times), np.float32)


def with_an_offset(samples: Samples) -> Samples:
    return samples + np.float32(4 * np.std(samples))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (as_it_is, None),
        (on_the_telephone, BandLimited),
        (in_a_hall, Reverberant),
        (beside_a_fan, NoiseFloor),
        (on_the_mains, Hum),
        (with_an_offset, Offset),
    ],
)
def test_each_loss_is_reported_with_its_value(
    change: Callable[[Samples], Samples], problem: type[WarningFact] | None, talk: Known, tmp_path: Path
) -> None:
    path = Known(change(talk.samples), talk.utterances).save(tmp_path / "talk.wav")
    warnings = find_problems(path, talk.utterances)
    assert (problem in set(map(type, warnings))) == bool(warnings) == bool(problem)
    assert not find_problems(path, talk.utterances[:1])  # too little to judge


@pytest.mark.parametrize("gain", [1.0, 0.2])
def test_a_plateau_is_clipping_at_any_level(gain: float, talk: Known) -> None:
    assert plateau_share(talk.samples) < 0.0005
    clipped = np.clip(talk.samples, -0.12, 0.12) * np.float32(gain)
    resampled = resample(resample(clipped, 16_000, 44_100), 44_100, 24_000)
    assert plateau_share(clipped) > 0.002
    assert plateau_share(resampled) > 0.002


@pytest.mark.parametrize("change", [on_the_mains, with_an_offset])
def test_what_lies_below_the_voice_is_no_noise(change: Callable[[Samples], Samples], talk: Known) -> None:
    measured = measure(change(talk.samples), 16_000, talk.utterances, "")
    assert measured.snr_db is not None
    assert measured.snr_db > 20
    assert measured.clipping is not None
    assert measured.clipping < 0.0005
