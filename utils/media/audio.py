"""Read and write audio: any format that FFmpeg reads becomes mono float32 at the requested sample rate.

The FFmpeg libraries in the ``av`` package decode every file, so no system package is needed and all formats behave
alike. ``load`` reads a file or a part of it, ``stream`` reads a long file in blocks.

Time 0 is the first sample of the file. Gaps in a recording (lost packets, damaged bytes) are filled with silence, so
that what follows keeps its time. A truncated file yields the audio that is left. Channels are averaged.
"""

import math
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import soxr

from utils.core.facts import Report, log_fact
from utils.core.storage import retry_while_in_use, storage_errors
from utils.media.arrays import Float32Array
from utils.media.facts import AudioCutOff, AudioFileError
from utils.media.file_reader import cut, opened, require_finite

Samples = Float32Array
NO_SAMPLES: Samples = np.zeros(0, np.float32)
FADE_SECONDS = 0.005  # too short to be heard, long enough to prevent a click
FILTER_REACH = 0.1  # seconds on each side that affect the resampling filter, with a margin
MISSING_END = 0.3  # seconds by which the length in a header may exceed what can be read
SAVED = (".wav", ".flac")
SYSTEM_ERROR = 2  # libsndfile: error of the operating system


class AudioInfo(NamedTuple):
    """Properties of an audio file that are known without decoding all of it."""

    seconds: float
    rate: int


def probe(path: Path | str, report: Report = log_fact) -> AudioInfo:
    """Read the properties of a file from its header and its last packets, and report what is damaged.

    The length in the header is only a hint: the last two seconds are decoded. If there is nothing (a truncated file),
    all packets are read without decoding, and a damaged file is decoded. So the length is that of the audio that can
    be read.
    """
    with opened(Path(path), report) as reader:
        rate = reader.rate
        end = reader.find_end()
        stated = reader.counted_seconds()
    if end is None:
        with opened(Path(path), report) as reader:
            end = sum(part.size for part in reader.samples(0, None))
    if stated - end / rate > MISSING_END:
        report(AudioCutOff(Path(path), end / rate, stated))
    return AudioInfo(end / rate, rate)


def duration(path: Path | str, report: Report = log_fact) -> float:
    """Return the length of a file in seconds; see ``probe``."""
    return probe(path, report).seconds


def load(path: Path | str, rate: int, start: float | None = None, end: float | None = None) -> Samples:
    """Read a file, or the part between two times in seconds, as mono float32 at ``rate``.

    A part is reached by seeking and is the same slice of the whole file, to the sample. (MKV and WebM keep times in
    whole milliseconds: there a Vorbis track, or the sound behind a hole, can be off by one.)
    """
    path = Path(path)
    first = round((start or 0.0) * rate)
    stop = None if end is None else round(end * rate)
    if first < 0 or (stop is not None and stop <= first):
        raise AudioFileError(path, "out_of_range", f"{start}-{end} s")
    parts = list(_resampled(path, rate, first, stop))
    if not parts:
        raise AudioFileError(path, "out_of_range", f"{start} s")
    return np.concatenate(parts)


def stream(
    path: Path | str, rate: int, seconds_per_block: float = 30.0, report: Report = log_fact
) -> Iterator[Samples]:
    """Yield a file as mono float32 blocks of equal length, the last one shorter.

    Joined, the blocks equal ``load`` of the whole file; memory holds a block or two, however long the file is.
    """
    yield from _equal_blocks(_resampled(Path(path), rate, 0, None, report), max(1, round(seconds_per_block * rate)))


def resample(samples: Samples, from_rate: int, to_rate: int) -> Samples:
    return np.concatenate([NO_SAMPLES, *resample_parts(iter([samples]), from_rate, to_rate)])


def faded(samples: Samples, rate: int) -> Samples:
    """Return a copy with short fades at both ends, so that the edges do not click."""
    size = min(round(FADE_SECONDS * rate), samples.size // 2)
    ramp = np.linspace(0, 1, size, endpoint=False, dtype=np.float32)
    result = samples.copy()
    result[:size] *= ramp
    result[samples.size - size :] *= ramp[::-1]
    return result


def centred(samples: Samples) -> Samples:
    return samples - samples.mean(dtype=np.float64).astype(np.float32) if samples.size else samples


def save(path: Path | str, samples: Samples, rate: int) -> None:
    """Write mono samples as a WAV or FLAC of 16 bits; the file appears under its name only when it is complete."""
    path = Path(path)
    if path.suffix.lower() not in SAVED:
        raise AudioFileError(path, "extension", ", ".join(SAVED))
    if samples.ndim != 1:
        raise AudioFileError(path, "several_channels", str(samples.shape))
    require_finite(samples, 0, rate, path)
    with (
        storage_errors(path),
        tempfile.TemporaryDirectory(prefix=".saving-", dir=path.parent, ignore_cleanup_errors=True) as folder,
    ):
        temporary = Path(folder, path.name)
        _write(temporary, samples, rate)
        retry_while_in_use(lambda: temporary.replace(path))


def _write(path: Path, samples: Samples, rate: int) -> None:
    """Write a file and read its header, because writing to a full disk does not always fail."""
    try:
        soundfile.write(path, samples, rate, subtype="PCM_16")
        complete = soundfile.info(path).frames == samples.size
    except AssertionError:  # how soundfile reports a short write
        complete = False
    except (soundfile.LibsndfileError, ValueError) as error:
        if getattr(error, "code", None) != SYSTEM_ERROR:
            raise AudioFileError(Path(path.name), "not_encodable", f"{rate} Hz, {error}") from error
        complete = False
    if not complete:
        raise OSError("it was written only in part")


def _resampled(path: Path, rate: int, first: int, stop: int | None, report: Report = log_fact) -> Iterator[Samples]:
    """Yield the samples [first, stop), counted at the requested rate."""
    with opened(path, report) as reader:
        if reader.rate == rate:
            yield from reader.samples(first, stop)
            return
        # Reading begins where a sample of the file and one of the result fall on the same instant: a part is then
        # resampled with the same phase as the whole.
        step = reader.rate // math.gcd(reader.rate, rate)
        begin = max(0, math.floor((first / rate - FILTER_REACH) * reader.rate / step) * step)
        until = None if stop is None else math.ceil((stop / rate + FILTER_REACH) * reader.rate)
        skipped = begin * rate // reader.rate
        native = _equal_blocks(reader.samples(begin, until), reader.rate)  # fewer calls than one a frame
        converted = resample_parts(native, reader.rate, rate)
        yield from cut(converted, first - skipped, None if stop is None else stop - skipped)


def resample_parts(parts: Iterator[Samples], from_rate: int, to_rate: int) -> Iterator[Samples]:
    """Resample consecutive parts with one filter state, so that their borders leave no click."""
    if from_rate == to_rate:
        yield from parts
        return
    resampler = soxr.ResampleStream(from_rate, to_rate, 1, dtype="float32", quality="HQ")
    yield from map(resampler.resample_chunk, parts)
    yield resampler.resample_chunk(NO_SAMPLES, last=True)


def _equal_blocks(parts: Iterable[Samples], size: int) -> Iterator[Samples]:
    waiting = []
    count = 0
    for part in parts:
        waiting.append(part)
        count += part.size
        if count < size:
            continue
        joined = np.concatenate(waiting)
        for begin in range(0, count - size + 1, size):
            yield joined[begin : begin + size].copy()  # a view would keep all of `joined` alive
        waiting = [joined[count - count % size :].copy()]
        count = count % size
    if count:
        yield np.concatenate(waiting)
