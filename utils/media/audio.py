"""Read and write audio: any format that FFmpeg reads becomes mono float32 at the requested sample rate.

The FFmpeg libraries in the ``av`` package decode every file, so no system package is needed and all formats behave
alike. ``load`` reads a file or a part of it, ``stream`` reads a long file in blocks.

Time 0 is the first sample of the file. Gaps in a recording (lost packets, damaged bytes) are filled with silence, so
that what follows keeps its time. A truncated file yields the audio that is left. Channels are averaged.
"""

import math
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import Any, NamedTuple

import av
import av.container
import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from utils.core.facts import Report, log_fact
from utils.core.storage import retry_while_in_use, storage_errors
from utils.media.arrays import Float32Array
from utils.media.facts import AudioCutOff, AudioDamaged, AudioFileError, AudioGapsFilled, AudioProblem
from utils.media.headers import has_frame_count, wav_size_ratio

Samples = Float32Array
NO_SAMPLES: Samples = np.zeros(0, np.float32)
FADE_SECONDS = 0.005  # too short to be heard, long enough to prevent a click
RUN_UP = 1.0  # seconds decoded before the wanted part: MP3 and Opus need some past before their output is exact
FILTER_REACH = 0.1  # seconds on each side that affect the resampling filter, with a margin
SHORTEST_HOLE = 0.05  # seconds; shorter: rounding
LONGEST_HOLE = 600.0  # longer: a broken timestamp
LONGEST_OVERLAP = 1.0  # seconds by which a frame may repeat what is known; more: recordings joined into one file
STREAM_TOLERANCE, CONTAINER_TOLERANCE = 0.1, 2.0  # seconds by which the length in a header may be wrong
MISSING_END = 0.3  # seconds by which the length in a header may exceed what can be read
COUNTED = frozenset({"wav", "w64", "flac", "aiff", "caf", "mov,mp4,m4a,3gp,3g2,mj2"})  # whose headers count the samples
LARGEST_SAMPLE = 1e9  # a little over what 32 bits hold; far larger ones become infinite when resampled
SAVED = (".wav", ".flac")
SYSTEM_ERROR = 2  # libsndfile: error of the operating system
MONO = (b"\x01\x00\x01\x00", b"\x03\x00\x01\x00", b"\xfe\xff\x01\x00")  # in a WAV: of integers, floats, either


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
    with _opened(Path(path), report) as reader:
        rate = reader.rate
        end = reader.find_end()
        stated = reader.counted_seconds()
    if end is None:
        with _opened(Path(path), report) as reader:
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


def require_finite(
    samples: Samples, position: int, rate: int, path: Path, problem: AudioProblem = "invalid_sample"
) -> None:
    """Raise if a sample is infinite, NaN or impossibly large; ``position`` is that of the first sample."""
    valid = np.abs(samples) <= LARGEST_SAMPLE
    if not valid.all():
        where = (position + int(np.argmin(valid))) / rate
        raise AudioFileError(path, problem, f"{where:.3f}")


def _resampled(path: Path, rate: int, first: int, stop: int | None, report: Report = log_fact) -> Iterator[Samples]:
    """Yield the samples [first, stop), counted at the requested rate."""
    with _opened(path, report) as reader:
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
        yield from _cut(converted, first - skipped, None if stop is None else stop - skipped)


def resample_parts(parts: Iterator[Samples], from_rate: int, to_rate: int) -> Iterator[Samples]:
    """Resample consecutive parts with one filter state, so that their borders leave no click."""
    if from_rate == to_rate:
        yield from parts
        return
    resampler = soxr.ResampleStream(from_rate, to_rate, 1, dtype="float32", quality="HQ")
    yield from map(resampler.resample_chunk, parts)
    yield resampler.resample_chunk(NO_SAMPLES, last=True)


def _cut(parts: Iterable[Samples], first: int, stop: int | None) -> Iterator[Samples]:
    """Keep the samples [first, stop) of consecutive parts."""
    position = 0
    for part in parts:
        wanted = part[max(0, first - position) : None if stop is None else max(0, stop - position)]
        position += part.size
        if wanted.size:
            yield wanted
        if stop is not None and position >= stop:
            return


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


@contextmanager
def _opened(path: Path, report: Report) -> Iterator["_Reader"]:
    """Open a file for decoding; every problem is raised as AudioFileError.

    FFmpeg gets no protocol, so a playlist dressed up as a recording cannot make it read other files. In plain WAV it
    looks for surround sound in disguise, which takes 10 ms and is not to be found in one channel.
    """
    try:
        if not path.is_file():
            raise AudioFileError(path, "folder" if path.is_dir() else "pipe" if path.exists() else "missing")
        if not path.stat().st_size:
            raise AudioFileError(path, "empty")
        with path.open("rb") as file:
            options = {"protocol_whitelist": ""}
            start = file.read(24)
            file.seek(0)
            if start[:4] == b"RIFF" and start[8:16] == b"WAVEfmt " and start[20:24] in MONO:
                options |= {"probesize": "4096", "max_size": "65536"}
            with av.open(file, "r", metadata_errors="replace", options=options) as container:
                yield _Reader(path, container, report)
    except av.error.FFmpegError as error:
        raise AudioFileError(path, "undecodable", str(error.strerror)) from error
    except OSError as error:
        raise AudioFileError(path, "unreadable", str(error.strerror)) from error


class _Reader:
    """The first audio stream of one open file, decoded to mono at its own rate. Good for one pass."""

    def __init__(self, path: Path, container: av.container.InputContainer, report: Report) -> None:
        if not container.streams.audio:
            raise AudioFileError(path, "no_audio")
        self.path = path
        self.report = report
        self.container = container
        self.stream = container.streams.audio[0]
        self.rate = 0
        self.tick = self.stream.time_base or Fraction(1, av.time_base)
        self.frames = self._decoded()
        self.head = list(islice(self.frames, 2))
        if not self.head:
            raise AudioFileError(path, "no_audio")

    def samples(self, first: int, stop: int | None) -> Iterator[Samples]:
        """Yield the samples [first, stop), counted at the file's own rate."""
        frames = self._near(first)
        head = next(frames, None)
        if head is None:
            return
        begin = min(self._position(head) or 0, first)
        parts = self._continuous(chain([head], frames), begin)
        for part in _cut(parts, first - begin, None if stop is None else stop - begin):
            require_finite(part, first, self.rate, self.path)
            first += part.size
            yield part

    def find_end(self) -> int | None:
        """Return the number of samples: the header says where to look, the last frames say the truth.

        Where they differ, the last packet says where to look. A file in which that differs too is damaged: None.
        """
        tolerance = STREAM_TOLERANCE if self.stream.duration else CONTAINER_TOLERANCE
        for find_seconds in (self._stated, self._last_packet):
            seconds = find_seconds()
            end = self._end_after(seconds)
            if abs(end / self.rate - seconds) <= tolerance:
                return end
        return None

    def _stated(self) -> float:
        """Return the length in the header; that of a container includes its pictures. 0 if it states none."""
        if self.stream.duration:
            return float(self.stream.duration * self.tick)
        return (self.container.duration or 0) / av.time_base

    def counted_seconds(self) -> float:
        """Return the length in the header if it was counted; 0 if it is an estimate, from the size of the file."""
        name = self.container.format.name
        if not self.stream.duration or not (name in COUNTED or (name == "mp3" and has_frame_count(self.path))):
            return 0.0
        seconds = float(self.stream.duration * self.tick)
        return seconds * wav_size_ratio(self.path) if name == "wav" else seconds

    def _end_after(self, seconds: float) -> int:
        """Decode from two seconds before a time to the end of the file."""
        end = 0
        for frame in self._near(round((seconds - RUN_UP) * self.rate)):
            position = self._position(frame)
            end = (end if position is None else position) + frame.samples
        return end

    def _last_packet(self) -> float:
        """Read all packets for the time of the last one, then stand at the beginning again."""
        self.container.seek(0)
        origin = self.head[0].pts or 0
        times = (packet.pts - origin for packet in self.container.demux(self.stream) if packet.pts is not None)
        last = max(times, default=0)
        self.container.seek(0)
        self.frames = self._decoded()
        self.head = list(islice(self.frames, 2)) or self.head  # a seek may land where nothing can be decoded
        return float(last * self.tick) + self.head[-1].samples / self.rate

    def _decoded(self) -> Iterator[av.AudioFrame]:
        """Decode from where the container stands; damaged packets are left out, as every player does."""
        damaged = 0
        for packet in self.container.demux(self.stream):
            try:
                frames = packet.decode()
            except av.error.InvalidDataError:
                damaged += 1
                continue
            for frame in frames:
                self.rate = self.rate or frame.sample_rate
                if frame.sample_rate != self.rate:
                    raise AudioFileError(self.path, "rate_changes")
                yield frame
        if damaged:
            self.report(AudioDamaged(self.path, damaged))

    def _near(self, first: int) -> Iterator[av.AudioFrame]:
        """Yield frames from a little before a sample, by seeking where that pays."""
        origin = self.head[0].pts
        seconds = first / self.rate - RUN_UP
        if seconds <= RUN_UP or origin is None:
            return chain(self.head, self.frames)
        try:
            self.container.seek(origin + int(seconds / self.tick), stream=self.stream)
        except av.error.FFmpegError:  # a rare format without seeking: from the beginning then
            return chain(self.head, self.frames)
        return dropwhile(lambda frame: frame.pts is None, self._decoded())

    def _position(self, frame: av.AudioFrame) -> int | None:
        """Number the first sample of a frame by its timestamp.

        Frames follow each other in equal sizes, so a timestamp coarser than a sample is moved to the nearest border.
        """
        if frame.pts is None or self.head[0].pts is None:
            return None
        stamped = float((frame.pts - self.head[0].pts) * self.tick * self.rate)
        border = self.head[0].samples
        size = self.head[-1].samples
        nearest = border + round((stamped - border) / size) * size
        return nearest if abs(nearest - stamped) <= self.tick * self.rate + 1 else round(stamped)

    # Long because it is one pass over the frames: each begins where the one before has ended.
    def _continuous(self, frames: Iterable[av.AudioFrame], position: int) -> Iterator[Samples]:
        """Turn frames into mono samples from a position on, with silence where the recording has a hole."""
        shortest = 0.0  # the first frame after a seek may lie behind a hole: there every sample counts
        latest = (self._stated() or math.inf) * self.rate + self.rate * CONTAINER_TOLERANCE  # of a plausible time
        missing = 0
        for frame in frames:
            stamped = self._position(frame)
            gap = 0 if stamped is None else stamped - position
            if shortest < gap / self.rate < LONGEST_HOLE and position + gap <= latest:
                yield from (np.zeros(min(self.rate, gap - done), np.float32) for done in range(0, gap, self.rate))
                position += gap
                missing += gap
            part = _mono(frame)
            if -LONGEST_OVERLAP < gap / self.rate < -SHORTEST_HOLE:  # a damaged packet was decoded twice
                part = part[-gap:]
            yield part
            position += part.size
            shortest = SHORTEST_HOLE
        if missing:
            self.report(AudioGapsFilled(self.path, missing / self.rate))


def _mono(frame: av.AudioFrame) -> Samples:
    """Average the channels of a frame and scale it to +-1."""
    if frame.format.name.startswith("s64"):  # unknown to av
        (frame,) = av.AudioResampler("dbl").resample(frame)
    raw: npt.NDArray[Any] = frame.to_ndarray()
    channels = raw if frame.format.is_planar else raw.reshape(-1, frame.layout.nb_channels).T
    with np.errstate(invalid="ignore", over="ignore"):  # the reader refuses non-finite samples
        mixed: Samples = channels.mean(axis=0, dtype=np.float32)
    if raw.dtype.kind == "u":
        return mixed / np.float32(128) - np.float32(1)
    if raw.dtype.kind == "i":
        return mixed / -np.float32(np.iinfo(raw.dtype).min)
    return mixed
