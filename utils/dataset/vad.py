"""Where somebody speaks: a long recording becomes spans of speech, by the Silero detector or by loudness.

The file is read once, in blocks; all that is kept of it is one probability and two levels for each 32 ms. What the
detector says is then made exact with the levels: the edges of a span are moved outwards to where the sound ends, and
speech that goes on longer than a clip may last is parted at its quietest places.
"""

import functools
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from utils.config import DatasetConfig
from utils.core.errors import DataError
from utils.dataset.clip import Span
from utils.media.audio import Samples, stream

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Floats = npt.NDArray[np.float32]
Frames = list[tuple[int, int]]  # (first, end) of each span, counted in frames

RATE = 16_000
WINDOW, CONTEXT, STATE = 512, 64, (1, 1, 128)  # what the Silero model was trained with
FRAME = WINDOW // 2  # samples, 16 ms: one level
FRAMES_PER_SECOND = RATE / FRAME
SECONDS_PER_BLOCK = 1000 * WINDOW / RATE  # whole windows, so that blocks join without a seam
HYSTERESIS = 0.15  # speech ends when the probability falls this far below the threshold
REACH = 12  # frames, 0.19 s: how far the detector may miss the end of a sound
ABOVE_FLOOR = 10.0  # dB over the pause that are still sound
QUIETEST = -80.0  # dB: levels below are digital silence and no measure of a room
SMOOTHING = 5  # frames, 80 ms: a pause, and not the closure of a stop consonant
EDGE_MALUS = 6.0  # dB: of two equally quiet places the one nearer to the middle leaves more even parts


@dataclass(frozen=True)
class SpeechTrack:
    """What is kept of a recording: its length, a level for each 16 ms, a probability of speech for each 32 ms."""

    seconds: float
    levels: Floats
    probabilities: Floats


def speech_segments(path: Path, settings: DatasetConfig) -> list[Span]:
    """Find the speech in a recording, in order and without overlaps; memory does not grow with its length.

    No span is longer than fits into a clip with its padding. Spans of one breath may touch.
    """
    detect = settings.segmenter == "vad"
    return segments_from(track_speech(stream(path, RATE, SECONDS_PER_BLOCK), detect=detect), settings)


def track_speech(blocks: Iterator[Samples], *, detect: bool = True) -> SpeechTrack:
    """Measure consecutive blocks at 16 kHz; all but the last hold whole windows."""
    levels, probabilities, size = [np.zeros(0, np.float32)], [np.zeros(0, np.float32)], 0
    detector = _Detector() if detect else None
    for block in blocks:
        size += block.size
        windows = np.pad(block, (0, -block.size % WINDOW)).reshape(-1, WINDOW)
        levels.append(_levels(windows.reshape(-1, FRAME)))
        if detector:
            probabilities.append(detector.probabilities(windows))
    return SpeechTrack(size / RATE, np.concatenate(levels), np.concatenate(probabilities))


def segments_from(track: SpeechTrack, settings: DatasetConfig) -> list[Span]:
    """Turn what was measured into spans of speech."""
    if not track.levels.size:
        return []
    if settings.segmenter == "vad":
        active = np.repeat(_latched(track.probabilities, settings.vad_threshold), WINDOW // FRAME)
    else:
        active = track.levels > settings.energy_threshold_db
    found = _without_clicks(_without_short_pauses(_runs(active), settings), settings)
    smooth = np.convolve(track.levels, np.full(SMOOTHING, 1 / SMOOTHING, np.float32), "same")
    exact = _with_exact_edges(found, track.levels, smooth)
    parts = [part for span in exact for part in _parted(span, track.levels, smooth, settings)]
    return [Span(first / FRAMES_PER_SECOND, min(track.seconds, end / FRAMES_PER_SECOND)) for first, end in parts]


class _Detector:
    """The Silero model on its way through one recording: it remembers what it heard."""

    def __init__(self) -> None:
        self.session = _session()
        self.hidden = self.cell = np.zeros(STATE, np.float32)
        self.before = np.zeros(CONTEXT, np.float32)

    def probabilities(self, windows: Samples) -> Floats:
        """Return the probability of speech in each of the windows that follow."""
        contexts = np.vstack([self.before, windows[:-1, -CONTEXT:]])
        self.before = windows[-1, -CONTEXT:]
        heard = {"input": np.hstack([contexts, windows]), "h": self.hidden, "c": self.cell}
        found, self.hidden, self.cell = self.session.run(None, heard)
        return np.asarray(found, np.float32).reshape(-1)


@functools.cache
def _session() -> "InferenceSession":
    """Load the model that lies inside faster-whisper, without importing that package."""
    import onnxruntime

    package = importlib.util.find_spec("faster_whisper")
    places = (package.submodule_search_locations if package else None) or []
    models = [model for place in places for model in sorted(Path(place, "assets").glob("silero_vad*.onnx"))]
    if not models:
        raise DataError(
            "The speech detector is missing: faster-whisper is not installed, or without its Silero model.",
            hint="Install requirements.txt again, or choose segmenter: energy.",
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # two are slower: the windows follow one another
    return onnxruntime.InferenceSession(models[-1], options, providers=["CPUExecutionProvider"])


def _levels(frames: Samples) -> Floats:
    """Return the level of each frame in dB below full scale; a constant offset is no sound."""
    power = np.einsum("ij,ij->i", frames, frames) / FRAME - frames.mean(axis=1) ** 2
    return np.asarray(10 * np.log10(np.maximum(power, 10 ** (QUIETEST / 10))), np.float32)


def _latched(probabilities: Floats, threshold: float) -> npt.NDArray[np.bool_]:
    """Speech begins at the threshold and goes on until the probability is clearly below it."""
    certain = (probabilities >= threshold) | (probabilities < max(threshold - HYSTERESIS, threshold / 2))
    latest = np.maximum.accumulate(np.where(certain, np.arange(probabilities.size), 0))
    return probabilities[latest] >= threshold


def _runs(active: npt.NDArray[np.bool_]) -> Frames:
    edges = np.flatnonzero(np.diff(active.astype(np.int8), prepend=0, append=0))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def _without_short_pauses(spans: Frames, settings: DatasetConfig) -> Frames:
    joined: Frames = []
    for first, end in spans:
        if joined and first - joined[-1][1] < settings.min_pause_seconds * FRAMES_PER_SECOND:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((first, end))
    return joined


def _without_clicks(spans: Frames, settings: DatasetConfig) -> Frames:
    least = settings.min_speech_seconds * FRAMES_PER_SECOND
    return [(first, end) for first, end in spans if end - first >= least]


def _with_exact_edges(spans: Frames, levels: Floats, smooth: Floats) -> Frames:
    """Move the edges outwards over what is louder than the pause, at most to its quietest place."""
    pauses = zip([0, *(end for _, end in spans)], [*(first for first, _ in spans), levels.size], strict=True)
    edges: list[int] = []
    for first, end in pauses:
        quietest = first + int(np.argmin(smooth[first:end])) if end > first else first
        edges.append(first + _overhang(levels[first:quietest]))
        edges.append(end - _overhang(levels[quietest:end][::-1]))
    return list(zip(edges[1:-1:2], edges[2:-1:2], strict=True))


def _overhang(levels: Floats) -> int:
    """Count the frames next to speech that belong to it, given the levels on the way into the pause."""
    near = levels[:REACH]
    if not near.size:
        return 0
    loud = np.flatnonzero(near > near.min() + ABOVE_FLOOR)
    return int(loud[-1]) + 1 if loud.size else 0


def _parted(span: tuple[int, int], levels: Floats, smooth: Floats, settings: DatasetConfig) -> Frames:
    """Part speech without a pause at its quietest place until every part fits into a clip."""
    pending, parts = [span], Frames()
    longest = max(settings.max_seconds - 2 * settings.padding_seconds, settings.max_seconds / 2) * FRAMES_PER_SECOND
    while pending:
        first, end = pending.pop()
        if end - first <= longest:
            parts.append((first, end))
            continue
        margin = int(min(settings.min_seconds * FRAMES_PER_SECOND, (end - first) / 3))
        valley = first + margin + _valley(smooth[first + margin : end - margin])
        left, right = _shores(levels, valley, first + 1, end - 1)
        pending += [(right, end), (first, left)]
    return parts


def _valley(smooth: Floats) -> int:
    return int(np.argmin(smooth + EDGE_MALUS * np.abs(np.linspace(-1, 1, smooth.size))))


def _shores(levels: Floats, valley: int, lowest: int, highest: int) -> tuple[int, int]:
    """Return where the sound ends before a valley and begins again behind it."""
    limit = levels[valley] + ABOVE_FLOOR
    before, behind = levels[max(lowest, valley - REACH) : valley][::-1], levels[valley : min(highest, valley + REACH)]
    return valley - _quiet(before, limit), valley + _quiet(behind, limit)


def _quiet(levels: Floats, limit: float) -> int:
    """Count the frames up to the first loud one."""
    loud = levels > limit
    return int(np.argmax(loud)) if loud.any() else levels.size
