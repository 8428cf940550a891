"""Pitch and buzz are measured on sounds of which they are known."""

import numpy as np
import numpy.typing as npt
import pytest

from tools.tiny_voice import judges, phone_judge
from tools.tiny_voice.pitch import pitch_correlation, track_pitch
from tools.tiny_voice.speakers import HELD_OUT, SPEAKERS
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE


def pulses(f0: npt.NDArray[np.float64], noise: float = 0.0) -> Samples:
    """A voice of decaying pulses with this pitch at every sample."""
    starts = np.diff(np.floor(np.cumsum(f0 / OUTPUT_RATE)), prepend=0) > 0
    ring = np.exp(-np.arange(120) / 25) * np.sin(np.arange(120) * 0.35)
    hiss = noise * np.random.default_rng(0).standard_normal(len(f0))
    return (0.5 * np.convolve(starts, ring)[: len(f0)] + hiss).astype(np.float32)


def glide(start: float, end: float, seconds: float = 1.5) -> npt.NDArray[np.float64]:
    return np.linspace(start, end, round(seconds * OUTPUT_RATE))


@pytest.mark.parametrize("pitch", [78.0, 140.0, 233.0, 370.0])
def test_the_pitch_of_a_pulse_train_is_found_within_a_percent(pitch: float) -> None:
    track = track_pitch(pulses(glide(pitch, pitch)), OUTPUT_RATE)
    assert track.voiced.mean() > 0.9
    assert float(np.median(track.f0[track.voiced])) == pytest.approx(pitch, rel=0.01)


def test_noise_has_no_pitch_and_lowers_the_harmonics_to_noise_ratio() -> None:
    noise = np.random.default_rng(1).standard_normal(OUTPUT_RATE).astype(np.float32)
    assert track_pitch(noise, OUTPUT_RATE).voiced.mean() < 0.1
    clean, noisy = (track_pitch(pulses(glide(120, 120), level), OUTPUT_RATE).hnr for level in (0.001, 0.05))
    assert clean > noisy + 6


def test_a_falling_pitch_correlates_with_itself_and_not_with_a_rising_one() -> None:
    falling, same, rising = (
        track_pitch(pulses(glide(*ends)), OUTPUT_RATE) for ends in ((180, 110), (190, 120), (110, 180))
    )
    assert pitch_correlation(falling, same) > 0.95
    assert pitch_correlation(falling, rising) < -0.9


def test_a_buzz_at_the_frame_rate_of_the_vocoder_is_counted() -> None:
    shares = [judges.at_frame_rate(np.full(50, pitch)) for pitch in (93.75, 187.0, 140.0)]
    assert shares == [1.0, 1.0, 0.0]


def test_the_phone_judge_learns_from_no_voice_that_it_judges() -> None:
    assert not set(phone_judge.VARIANTS) & {speaker.variant for speaker in (*SPEAKERS, *HELD_OUT)}
    assert len(set(phone_judge.VARIANTS)) == len(phone_judge.VARIANTS) >= 30


@pytest.mark.parametrize(("durations", "expected"), [([2, 5, 3], [0.04, 0.1, 0.06]), ([1, 1, 9], [0.02, 0.02, 0.18])])
def test_phones_are_aligned_with_the_frames_that_name_them(durations: list[int], expected: list[float]) -> None:
    names = [0, *np.repeat([1, 2, 3], durations), 0]
    scores = np.log(np.eye(4)[names] * 0.9 + 0.02)[:, [0, 1, 2, 3, 0]]
    assert phone_judge.align(scores)[1:-1] / phone_judge.FRAMES_A_SECOND == pytest.approx(expected)
