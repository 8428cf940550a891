import dataclasses

import numpy as np
import pytest

from tests.dataset import recordings
from tests.dataset.recordings import RATE
from utils.config import DatasetConfig
from utils.dataset.clip import Clip
from utils.dataset.filters import judge
from utils.media.audio import Samples
from utils.media.loudness import loudness
from utils.recognition.levels import ClipScores, measure, signal_to_noise
from utils.recognition.spans import Span


def noisy(snr_db: float) -> Samples:
    """Make 4 s with speech from 0.5 to 3.5 s that has this much power over the noise."""
    speech = recordings.babble(3.0, seed=1)
    power = float(np.mean(speech**2)) / 10 ** (snr_db / 10)
    noise = np.random.default_rng(0).standard_normal(4 * RATE) * np.sqrt(power)
    samples: Samples = noise.astype(np.float32)
    samples[RATE // 2 :][: speech.size] += speech
    return samples


@pytest.mark.parametrize("snr_db", [0, 20, 60])
def test_the_noise_is_estimated_from_the_pauses(snr_db: float) -> None:
    assert signal_to_noise(noisy(snr_db), RATE, [Span(0.5, 3.5)]) == pytest.approx(snr_db, abs=1.0)
    without_pauses = signal_to_noise(noisy(snr_db)[RATE // 2 : 7 * RATE // 2], RATE, [Span(0, 3)])
    assert without_pauses is not None
    assert min(snr_db, 18) - 6 < without_pauses < snr_db + 4  # a lower bound: speech is never silent for long


def test_a_clip_is_measured_as_a_whole() -> None:
    scores = measure(noisy(30), RATE, [Span(-1, 0), Span(0.5, 3.5), Span(9, 10)], "አበበ በሶ በላ፤ 3 ጊዜ።")
    assert scores.speech_ratio == pytest.approx(0.75)
    assert scores.chars_per_second == pytest.approx(10 / 4)
    assert (scores.clipping, scores.confidence) == (0, None)
    tone = np.sin(np.arange(RATE) * 0.05).astype(np.float32) * 5
    assert measure(np.clip(tone, -1, 1), RATE, [], "").clipping == pytest.approx(0.87, abs=0.02)  # share at full scale
    silence = np.concatenate([np.zeros(RATE, np.float32), recordings.babble(2.0)])
    assert 60 < (signal_to_noise(silence, RATE, [Span(1, 3)]) or 0) < 110  # digital silence: a finite number
    empty = measure(np.zeros(0, np.float32), RATE, [], "a")
    assert (empty.speech_ratio, empty.snr_db, empty.loudness_lufs, empty.chars_per_second) == (0.0, None, None, None)


SCORES = ClipScores(0.9, 40.0, 0.0, -20.0, 8.0, 0.9, 0.05)
GOOD = Clip("a", "b", "c.wav", Span(0, 4), "d", "አበበ በሶ በላ", scores=SCORES)


@pytest.mark.parametrize(
    ("changes", "scores", "reason"),
    [
        ({}, {}, None),
        ({"span": Span(0, 1.0)}, {}, None),
        ({"span": Span(5, 16.6)}, {}, None),
        ({"span": Span(0, 0.99)}, {}, "too short"),
        ({"span": Span(5, 16.7)}, {}, "too long"),
        ({}, {"speech_ratio": 0.1}, "no speech"),
        ({}, {"clipping": 0.01}, "clipped"),
        ({}, {"snr_db": 3.0}, "noisy"),
        ({"text": " ።"}, {}, "empty text"),
        ({}, {"confidence": 0.1}, "low confidence"),
        ({}, {"chars_per_second": 30.0}, "too fast"),
        ({}, {"chars_per_second": 0.5}, "too slow"),
        ({}, {"second_cer": 0.5}, "recognisers disagree"),
        ({"span": Span(0, 0.5)}, {"snr_db": 3.0}, "too short"),
        ({}, dataclasses.asdict(ClipScores()), None),  # what was not measured is not judged
    ],
)
def test_the_first_rule_that_applies_gives_the_reason(
    changes: dict[str, object], scores: dict[str, float], reason: str | None
) -> None:
    clip = dataclasses.replace(GOOD, scores=dataclasses.replace(SCORES, **scores), **changes)  # type: ignore[arg-type]
    assert judge(clip, DatasetConfig()) == reason


def test_loudness_is_that_of_bs_1770() -> None:
    tone = np.sin(np.arange(5 * 48_000, dtype=np.float64) * 2 * np.pi * 997 / 48_000).astype(np.float32)
    assert loudness(tone, 48_000) == pytest.approx(-3.01, abs=0.05)  # the reference tone of the standard, one channel
    assert loudness(tone * np.float32(0.1), 48_000) == pytest.approx(-23.01, abs=0.05)
    assert loudness(np.zeros(RATE, np.float32), RATE) is None
    assert loudness(np.ones(100, np.float32), RATE) is None
