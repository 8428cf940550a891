"""Speech on the grid: every code holds a whole number of periods, and what is not voiced stays."""

import numpy as np

from tools.tiny_voice.grid import CODE, RATE, move_to_grid, steady
from tools.tiny_voice.pitch import track_pitch

SIZE = 24 * CODE


def voiced_sound(pitch: float) -> np.ndarray:
    """Pulses through a resonance, with a rising pitch, after and before silence."""
    time = np.arange(SIZE) / RATE
    phase = np.cumsum(pitch + 20 * time) / RATE
    sound = np.where(np.floor(phase[1:]) > np.floor(phase[:-1]), 1.0, 0.0)
    ring = np.exp(-60 * time[:2000]) * np.sin(2 * np.pi * 700 * time[:2000])
    heard = (time[1:] > 0.1) & (time[1:] < 1.0)
    return np.append(np.convolve(sound * heard, ring)[: SIZE - 1], 0).astype(np.float32) * 0.3


def test_codes_hold_whole_periods() -> None:
    sound = voiced_sound(185.0)
    moved = move_to_grid(sound, track_pitch(sound, RATE))
    inner = moved[6 * CODE : 16 * CODE].reshape(-1, CODE)
    shares = [np.corrcoef(inner[:-1].ravel(), inner[1:].ravel())[0, 1]]
    before = sound[6 * CODE : 16 * CODE].reshape(-1, CODE)
    assert shares[0] > 0.6 > np.corrcoef(before[:-1].ravel(), before[1:].ravel())[0, 1]


def test_one_pitch_repeats_itself_in_every_code() -> None:
    sound = voiced_sound(185.0)
    track = track_pitch(sound, RATE)
    inner = move_to_grid(sound, track, steady(track))[6 * CODE : 16 * CODE].reshape(-1, CODE)
    assert np.corrcoef(inner[:-1].ravel(), inner[1:].ravel())[0, 1] > 0.95


def test_noise_stays_as_it_is() -> None:
    noise = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32) * 0.1
    assert np.array_equal(move_to_grid(noise, track_pitch(np.zeros(SIZE, np.float32), RATE)), noise)


def test_the_length_is_kept() -> None:
    sound = voiced_sound(120.0)
    assert len(move_to_grid(sound, track_pitch(sound, RATE), block=2)) == len(sound)
