"""Voice activity detection: find the speech segments of a recording with Silero, or by loudness.

The file is read once, in blocks; only one probability and two levels per 32 ms are kept. The levels then refine the
result: the edges of a segment are moved outwards to where the sound ends, and speech longer than a clip is split at its
quietest places.
"""

import functools
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from utils.config import DatasetConfig
from utils.core.batching import grouped
from utils.core.facts import Report, log_fact
from utils.media.arrays import BoolArray, Float32Array
from utils.media.audio import NO_SAMPLES, Samples, stream
from utils.recognition.facts import RecogniserError
from utils.recognition.rumble import powers
from utils.recognition.spans import Span

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Frames = list[tuple[int, int]]  # (first, end) of segments, in frames

RATE = 16_000
# The next three as the Silero model was trained.
WINDOW = 512
CONTEXT = 64
STATE = (1, 1, 128)
FRAME = WINDOW // 2  # samples, 16 ms: one level each
FRAMES_PER_SECOND = RATE / FRAME
SECONDS_PER_BLOCK = 1000 * WINDOW / RATE  # whole windows, so that blocks join seamlessly
HYSTERESIS = 0.15  # speech ends when the probability falls this far below the threshold
MAX_EDGE_SHIFT = 12  # frames, 0.19 s: how far the detector may miss the end of a sound
SOUND_ABOVE_PAUSE = 10.0  # dB
MIN_LEVEL = -80.0  # dB; digital silence is lower
SMOOTHING = 5  # frames, 80 ms: longer than the closure of a stop consonant
EDGE_PENALTY = 6.0  # dB: of two equally quiet places, prefer the one nearer to the middle


@dataclass(frozen=True)
class SpeechTrack:
    """The length of a recording, a level per 16 ms, and a speech probability per 32 ms."""

    seconds: float
    levels: Float32Array
    probabilities: Float32Array


def speech_segments(path: Path, settings: DatasetConfig, report: Report = log_fact) -> list[Span]:
    """Find the speech segments of a recording, in order and without overlap.

    No segment is longer than a clip with its padding. Segments may touch.
    """
    detect = settings.segmenter == "vad"
    return segments_from(track_speech(stream(path, RATE, SECONDS_PER_BLOCK, report), detect=detect), settings)


# Long because it is one pass over the blocks: each needs what the one before has left.
def track_speech(blocks: Iterator[Samples], *, detect: bool = True) -> SpeechTrack:
    """Measure consecutive blocks at 16 kHz; all but the last must hold whole windows."""
    levels = [NO_SAMPLES]
    probabilities = [NO_SAMPLES]
    size = 0
    hidden = cell = np.zeros(STATE, np.float32)
    before = np.zeros(CONTEXT, np.float32)
    for block in blocks:
        size += block.size
        windows = np.pad(block, (0, -block.size % WINDOW)).reshape(-1, WINDOW)
        levels.append(_levels(windows.reshape(-1, FRAME)))
        if detect:
            contexts = np.vstack([before, windows[:-1, -CONTEXT:]])
            before = windows[-1, -CONTEXT:]
            inputs = {"input": np.hstack([contexts, windows]), "h": hidden, "c": cell}
            speech, hidden, cell = _silero().run(None, inputs)
            probabilities.append(np.asarray(speech, np.float32).reshape(-1))
    return SpeechTrack(size / RATE, np.concatenate(levels), np.concatenate(probabilities))


def segments_from(track: SpeechTrack, settings: DatasetConfig) -> list[Span]:
    """Derive speech segments from levels and probabilities."""
    levels = track.levels
    if not levels.size:
        return []
    if settings.segmenter == "vad":
        active = np.repeat(_apply_hysteresis(track.probabilities, settings.vad_threshold), WINDOW // FRAME)
    else:
        active = levels > settings.energy_threshold_db
    smooth = np.convolve(levels, np.full(SMOOTHING, 1 / SMOOTHING, np.float32), "same")
    segments = _extend_edges(_join_active(active, settings), levels, smooth)
    parts = [part for segment in segments for part in _split_long(segment, levels, smooth, settings)]
    return [Span(first / FRAMES_PER_SECOND, min(track.seconds, end / FRAMES_PER_SECOND)) for first, end in parts]


@functools.cache
def _silero() -> "InferenceSession":
    """Load the model that comes with faster-whisper, without importing that package."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # it would report to Microsoft
    import onnxruntime

    package = importlib.util.find_spec("faster_whisper")
    folders = (package.submodule_search_locations if package else None) or []
    models = [model for folder in folders for model in sorted(Path(folder, "assets").glob("silero_vad*.onnx"))]
    if not models:
        raise RecogniserError("Silero", "no_silero")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # two are slower, because windows are sequential
    return onnxruntime.InferenceSession(models[-1], options, providers=["CPUExecutionProvider"])


def _levels(frames: Samples) -> Float32Array:
    """Return the level of each frame in dB relative to full scale, ignoring a constant offset."""
    return np.asarray(10 * np.log10(np.maximum(powers(frames), 10 ** (MIN_LEVEL / 10))), np.float32)


def _apply_hysteresis(probabilities: Float32Array, threshold: float) -> BoolArray:
    """Speech starts at the threshold and lasts until the probability is clearly below it."""
    certain = (probabilities >= threshold) | (probabilities < max(threshold - HYSTERESIS, threshold / 2))
    latest = np.maximum.accumulate(np.where(certain, np.arange(probabilities.size), 0))
    return probabilities[latest] >= threshold


def _join_active(active: BoolArray, settings: DatasetConfig) -> Frames:
    """Join active frames over short pauses, then drop what is too short for speech."""
    edges = np.flatnonzero(np.diff(active.astype(np.int8), prepend=0, append=0)).reshape(-1, 2).tolist()
    pause = settings.min_pause_seconds * FRAMES_PER_SECOND
    groups = grouped(edges, lambda group, edge: edge[0] - group[-1][1] < pause)
    joined = [(group[0][0], group[-1][1]) for group in groups]
    return [(first, end) for first, end in joined if end - first >= settings.min_speech_seconds * FRAMES_PER_SECOND]


def _extend_edges(segments: Frames, levels: Float32Array, smooth: Float32Array) -> Frames:
    """Move the edges outwards over sound that is louder than the pause, at most to its quietest place."""
    pauses = zip([0, *(end for _, end in segments)], [*(first for first, _ in segments), levels.size], strict=True)
    edges = []
    for first, end in pauses:
        quietest = first + int(np.argmin(smooth[first:end])) if end > first else first
        edges.append(first + _overhang(levels[first:quietest]))
        edges.append(end - _overhang(levels[quietest:end][::-1]))
    return list(zip(edges[1:-1:2], edges[2:-1:2], strict=True))


def _overhang(levels: Float32Array) -> int:
    """Count the frames that still belong to the speech, given the levels from its edge into the pause."""
    near = levels[:MAX_EDGE_SHIFT]
    loud = np.flatnonzero(near > near.min(initial=np.inf) + SOUND_ABOVE_PAUSE)
    return int(loud[-1]) + 1 if loud.size else 0


def _split_long(
    segment: tuple[int, int], levels: Float32Array, smooth: Float32Array, settings: DatasetConfig
) -> Frames:
    """Split speech without a pause at its quietest places until every part fits into a clip."""
    pending = [segment]
    parts = Frames()
    longest = max(settings.max_seconds - 2 * settings.padding_seconds, settings.max_seconds / 2) * FRAMES_PER_SECOND
    while pending:
        first, end = pending.pop()
        if end - first <= longest:
            parts.append((first, end))
            continue
        margin = int(min(settings.min_seconds * FRAMES_PER_SECOND, (end - first) / 3))
        valley = first + margin + _quietest(smooth[first + margin : end - margin])
        before, after = _quiet_around(valley, first, end, levels)
        pending += [(after, end), (first, before)]
    return parts


def _quiet_around(valley: int, first: int, end: int, levels: Float32Array) -> tuple[int, int]:
    """Return the quiet stretch around a place in a segment."""
    limit = levels[valley] + SOUND_ABOVE_PAUSE
    before = levels[max(first + 1, valley - MAX_EDGE_SHIFT) : valley][::-1]
    after = levels[valley : min(end - 1, valley + MAX_EDGE_SHIFT)]
    return valley - _count_quiet(before, limit), valley + _count_quiet(after, limit)


def _quietest(levels: Float32Array) -> int:
    """Return the quietest frame; one near the middle is preferred to one near an edge."""
    return int(np.argmin(levels + EDGE_PENALTY * np.abs(np.linspace(-1, 1, levels.size))))


def _count_quiet(levels: Float32Array, limit: float) -> int:
    """Count the frames up to the first loud one."""
    loud = levels > limit
    return int(np.argmax(loud)) if loud.any() else levels.size
