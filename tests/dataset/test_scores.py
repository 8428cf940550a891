import time
from pathlib import Path

import numpy as np
import pytest

from tests.dataset import recordings
from tests.dataset.recordings import RATE, Known
from utils.config import DatasetConfig
from utils.dataset.clip import Span
from utils.dataset.cutting import cut_speech
from utils.dataset.scores import letters, loudness, measure, signal_to_noise
from utils.dataset.vad import speech_segments
from utils.media.audio import Samples, load


def noisy(snr_db: float, *, pauses: bool = True) -> tuple[Samples, list[Span]]:
    """Make 4 s, of which 3 are speech with this much power over the noise."""
    speech = recordings.babble(3.0, seed=1)
    power = float(np.mean(speech**2)) / 10 ** (snr_db / 10)
    noise = np.random.default_rng(0).standard_normal(4 * RATE) * np.sqrt(power)
    samples = noise.astype(np.float32)
    samples[RATE // 2 :][: speech.size] += speech
    return (samples, [Span(0.5, 3.5)]) if pauses else (samples[RATE // 2 :][: speech.size], [Span(0, 3)])


@pytest.mark.parametrize("snr_db", [0, 10, 20, 40, 60])
def test_the_noise_is_estimated_from_the_pauses(snr_db: float) -> None:
    samples, speech = noisy(snr_db)
    assert signal_to_noise(samples, RATE, speech) == pytest.approx(snr_db, abs=1.0)


@pytest.mark.parametrize("snr_db", [0, 10, 20, 40])
def test_without_a_pause_the_quietest_frames_stand_in(snr_db: float) -> None:
    samples, speech = noisy(snr_db, pauses=False)
    found = signal_to_noise(samples, RATE, speech)
    assert found is not None
    assert min(snr_db, 18) - 6 < found < snr_db + 4  # speech is never silent for long, so this is a lower bound


def test_digital_silence_gives_a_finite_number() -> None:
    samples = np.concatenate([np.zeros(RATE, np.float32), recordings.babble(2.0)])
    assert 60 < (signal_to_noise(samples, RATE, [Span(1, 3)]) or 0) < 110


@pytest.mark.parametrize(("gain", "share"), [(1.0, 0.0), (10.0, 0.87)], ids=["as recorded", "clipped"])
def test_clipping_is_the_share_at_full_scale(gain: float, share: float) -> None:
    tone = np.sin(np.arange(RATE) * 0.05).astype(np.float32) * 0.5
    assert measure(np.clip(tone * gain, -1, 1), RATE, [], "").clipping == pytest.approx(share, abs=0.02)


def test_loudness_is_that_of_bs_1770() -> None:
    tone = np.sin(np.arange(5 * 48_000, dtype=np.float64) * 2 * np.pi * 997 / 48_000).astype(np.float32)
    assert loudness(tone, 48_000) == pytest.approx(-3.01, abs=0.05)  # the reference tone of the standard, one channel
    assert loudness(tone * np.float32(0.1), 48_000) == pytest.approx(-23.01, abs=0.05)


@pytest.mark.parametrize("samples", [np.zeros(RATE, np.float32), np.ones(100, np.float32), np.zeros(0, np.float32)])
def test_silence_and_crumbs_have_no_loudness(samples: Samples) -> None:
    assert loudness(samples, RATE) is None


def test_a_clip_is_measured_as_a_whole() -> None:
    samples, speech = noisy(30)
    scores = measure(samples, RATE, [Span(-1, 0), *speech, Span(9, 10)], "አበበ በሶ በላ፤ 3 ጊዜ።")
    assert scores.speech_ratio == pytest.approx(0.75)
    assert scores.chars_per_second == pytest.approx(10 / 4)
    assert scores.clipping == 0
    assert scores.confidence is None
    assert measure(samples, RATE, speech, "").chars_per_second is None


def test_an_empty_clip_is_measured_without_a_fault() -> None:
    scores = measure(np.zeros(0, np.float32), RATE, [], "a")
    assert (scores.speech_ratio, scores.snr_db, scores.loudness_lufs) == (0.0, None, None)


@pytest.mark.parametrize(("text", "count"), [("", 0), ("ሰላም!", 3), ("a b, c. 12", 5), ("።፣…", 0)])
def test_signs_and_spaces_are_no_letters(text: str, count: int) -> None:
    assert letters(text) == count


def scored(known: Known, path: Path) -> int:
    """Do all that is done without a recogniser: find speech, cut, read each clip and measure it."""
    settings = DatasetConfig()
    speech = speech_segments(path, settings)
    clips = cut_speech(speech, known.seconds, settings)
    for clip in clips:
        within = [Span(one.start - clip.start, one.end - clip.start) for one in speech if one.end > clip.start]
        measure(load(path, 22_050, clip.start, clip.end), 22_050, within, "")
    return len(clips)


@pytest.mark.alone
@pytest.mark.slow
def test_cutting_and_measuring_is_sixty_times_faster_than_listening(tmp_path: Path) -> None:
    known = recordings.recording(600, seed=8)
    path = known.save(tmp_path / "ten minutes.wav")
    begin = time.process_time()
    assert scored(known, path) > 50
    assert 600 / (time.process_time() - begin) >= 60
