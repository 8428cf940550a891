import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.dataset import recordings
from tests.dataset.recordings import RATE
from utils.config import DatasetConfig
from utils.core.paths import ROOT
from utils.dataset.cutting import cut_speech
from utils.media.audio import Samples
from utils.recognition.spans import Span
from utils.recognition.vad import SECONDS_PER_BLOCK, segments_from, track_speech

pytestmark = pytest.mark.slow

SETTINGS = DatasetConfig()
ENERGY = DatasetConfig(segmenter="energy")


def blocks(samples: Samples) -> Iterator[Samples]:
    size = round(SECONDS_PER_BLOCK * RATE)
    return (samples[begin : begin + size] for begin in range(0, samples.size, size))


def segments(samples: Samples, settings: DatasetConfig = SETTINGS) -> list[Span]:
    return segments_from(track_speech(blocks(samples), detect=settings.segmenter == "vad"), settings)


@pytest.mark.parametrize("speech", dict.fromkeys([recordings.utterances, recordings.generated]))
@pytest.mark.parametrize(
    ("pauses", "noise_db", "gain", "settings"),
    [
        ((0.2, 0.4), -65.0, 1.0, SETTINGS),
        ((0.8, 3.0), -45.0, 1.0, SETTINGS),
        ((0.3, 1.5), -65.0, 0.03, SETTINGS),
        ((0.3, 1.5), -65.0, 1.0, ENERGY),
    ],
)
def test_every_utterance_is_whole_in_its_clip(
    speech: Callable[[], tuple[Samples, ...]],
    pauses: tuple[float, float],
    noise_db: float,
    gain: float,
    settings: DatasetConfig,
) -> None:
    known = recordings.recording(75, seed=1, pauses=pauses, noise_db=noise_db, speech=speech())
    samples = (known.samples * gain).astype(np.float32)
    clips = cut_speech(segments(samples, settings), known.seconds, settings)
    usable = [clip for clip in clips if SETTINGS.min_seconds <= clip.seconds <= SETTINGS.max_seconds]
    inside = (
        max(0.0, min(span.end, clip.end) - max(span.start, clip.start)) for span in known.utterances for clip in usable
    )
    assert sum(inside) >= 0.99 * sum(span.seconds for span in known.utterances)
    edges = [edge for clip in clips for edge in (clip.start, clip.end)]
    assert [edge for edge in edges for span in known.utterances if span.start < edge < span.end] == []


def test_a_minute_without_a_pause_is_split_at_its_quietest_places() -> None:
    track = track_speech(blocks(recordings.babble(60, seed=1)))
    clips = cut_speech(segments_from(track, SETTINGS), 60, SETTINGS)
    assert all(SETTINGS.min_seconds <= clip.seconds <= SETTINGS.max_seconds for clip in clips)
    assert sum(clip.seconds for clip in clips) == pytest.approx(60, abs=0.5)
    borders = [track.levels[round(clip.end * 62.5) - 1] for clip in clips[:-1]]
    assert max(borders) < np.percentile(track.levels, 20)


@pytest.mark.parametrize("settings", [SETTINGS, ENERGY], ids=["vad", "energy"])
def test_there_is_no_speech_in_nothing_an_offset_or_faint_noise(settings: DatasetConfig) -> None:
    noise = (np.random.default_rng(0).standard_normal(10 * RATE) * 0.002).astype(np.float32)
    for samples in (np.zeros(0, np.float32), np.zeros(100, np.float32), np.full(10 * RATE, 0.4, np.float32), noise):
        assert segments(samples, settings) == []


def test_the_detector_reports_nothing_to_its_makers(tmp_path: Path) -> None:
    code = "import numpy as np, utils.recognition.vad as vad; vad.track_speech(iter([np.zeros(16_000, np.float32)]))"
    environment = os.environ | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
    assert not list(tmp_path.rglob("*onnxruntime*"))


def test_blocks_join_without_a_seam() -> None:
    known = recordings.recording(80, seed=6)
    whole, parts = track_speech(iter([known.samples])), track_speech(blocks(known.samples))
    np.testing.assert_allclose(whole.probabilities, parts.probabilities, atol=1e-4)
    assert whole.seconds == parts.seconds == known.seconds


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [0.5, 1.5, 1.9, 2.5]),
        ({"min_pause_seconds": 0.5}, [0.5, 2.5]),
        ({"min_speech_seconds": 0.8}, [0.5, 1.5]),
        ({"energy_threshold_db": -5.0}, []),
    ],
)
def test_the_energy_segmenter_follows_its_settings(changes: dict[str, float], expected: list[float]) -> None:
    samples = np.zeros(4 * RATE, np.float32)
    for start, end in ((0.5, 1.5), (1.9, 2.5), (3.2, 3.25)):
        size = round((end - start) * RATE)
        samples[round(start * RATE) :][:size] = np.sin(np.arange(size) * 0.3) * 0.3
    spans = segments(samples, DatasetConfig.parse({"segmenter": "energy", **changes}))
    assert [edge for span in spans for edge in (span.start, span.end)] == pytest.approx(expected, abs=0.035)
