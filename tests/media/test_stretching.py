import numpy as np
import pytest

from tests.speech.made_speech import tone, voiced
from utils.media.audio import Samples
from utils.media.facts import SpeedError
from utils.media.stretching import Stretcher, stretch

RATE = 24_000
SPEEDS = [0.25, 0.5, 0.97, 1.35, 2.0, 4.0]


def pitch(samples: Samples, near: float) -> float:
    """The strongest frequency near an expected one."""
    size = 1 << 20
    strength = np.abs(np.fft.rfft(samples * np.hanning(samples.size), size))
    frequency = np.fft.rfftfreq(size, 1 / RATE)
    around = (frequency > near * 0.9) & (frequency < near * 1.1)
    return float(frequency[around][np.argmax(strength[around])])


def speechlike(seconds: float) -> Samples:
    """Vowels that glide in pitch, hisses and pauses in turn."""
    time = np.arange(round(seconds * RATE)) / RATE
    phase = 2 * np.pi * np.cumsum(120 + 30 * np.sin(2 * np.pi * 0.7 * time)) / RATE
    vowel = sum(np.cos(number * phase) / number for number in range(1, 25))
    hiss = np.random.default_rng(0).normal(size=time.size)
    turn = np.sin(2 * np.pi * 2 * time)
    sound = 0.1 * vowel * np.clip(turn, 0, 1) + 0.05 * hiss * np.clip(-turn - 0.3, 0, 1)
    return sound.astype(np.float32)


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("voice", [70.0, 400.0])
def test_the_pitch_stays_and_nothing_clicks(voice: float, speed: float) -> None:
    sound = voiced(voice, 1.0)
    bent = stretch(sound, RATE, speed)
    assert pitch(bent, voice) == pytest.approx(voice, rel=0.002)
    inner = bent[720:-720]
    assert np.abs(np.diff(inner)).max() < 1.05 * np.abs(np.diff(sound)).max()
    level = np.sqrt(np.convolve(inner**2, np.full(1200, 1 / 1200), "valid"))
    assert level.min() > 0.85 * level.max()


@pytest.mark.parametrize("size", [0, 1, 719, 24_001])
@pytest.mark.parametrize("speed", [*SPEEDS, 1.0])
@pytest.mark.parametrize("rate", [8_000, RATE])
def test_the_length_is_right_to_the_sample(size: int, speed: float, rate: int) -> None:
    bent = stretch(tone(2.0)[:size], rate, speed)
    assert bent.size == round(size / speed)
    assert bent.dtype == np.float32


@pytest.mark.parametrize("speed", [0.5, 1.0, 1.35])
@pytest.mark.parametrize("part", [1, 700, 5_000])
def test_parts_joined_are_the_whole(speed: float, part: int) -> None:
    sound = speechlike(0.5 if part == 1 else 2.0)
    stretcher = Stretcher(RATE, speed)
    parts = [stretcher.push(sound[begin : begin + part]) for begin in range(0, sound.size, part)]
    assert np.array_equal(np.concatenate([*parts, stretcher.finish()]), stretch(sound, RATE, speed))


@pytest.mark.parametrize("speed", [0.24, 4.01, float("nan")])
def test_an_impossible_speed_is_refused(speed: float) -> None:
    with pytest.raises(SpeedError):
        stretch(tone(0.1), RATE, speed)
