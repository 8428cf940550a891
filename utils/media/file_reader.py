"""Decodes one audio file with FFmpeg, in order: samples by their time, with silence where the recording has a hole."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import Any

import av
import av.container
import numpy as np
import numpy.typing as npt

from utils.core.facts import Report
from utils.media.arrays import Float32Array
from utils.media.facts import AudioDamaged, AudioFileError, AudioGapsFilled, AudioProblem
from utils.media.headers import has_frame_count, wav_size_ratio

RUN_UP = 1.0  # seconds decoded before the wanted part: MP3 and Opus need some past before their output is exact
SHORTEST_HOLE = 0.05  # seconds; shorter: rounding
LONGEST_HOLE = 600.0  # longer: a broken timestamp
LONGEST_OVERLAP = 1.0  # seconds by which a frame may repeat what is known; more: recordings joined into one file
STREAM_TOLERANCE, CONTAINER_TOLERANCE = 0.1, 2.0  # seconds by which the length in a header may be wrong
COUNTED = frozenset({"wav", "w64", "flac", "aiff", "caf", "mov,mp4,m4a,3gp,3g2,mj2"})  # whose headers count the samples
LARGEST_SAMPLE = 1e9  # a little over what 32 bits hold; far larger ones become infinite when resampled
MONO = (b"\x01\x00\x01\x00", b"\x03\x00\x01\x00", b"\xfe\xff\x01\x00")  # in a WAV: of integers, floats, either


@contextmanager
def opened(path: Path, report: Report) -> Iterator["FileReader"]:
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
                yield FileReader(path, container, report)
    except av.error.FFmpegError as error:
        raise AudioFileError(path, "undecodable", str(error.strerror)) from error
    except OSError as error:
        raise AudioFileError(path, "unreadable", str(error.strerror)) from error


class FileReader:
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

    def samples(self, first: int, stop: int | None) -> Iterator[Float32Array]:
        """Yield the samples [first, stop), counted at the file's own rate."""
        frames = self._near(first)
        head = next(frames, None)
        if head is None:
            return
        begin = min(self._position(head) or 0, first)
        parts = self._continuous(chain([head], frames), begin)
        for part in cut(parts, first - begin, None if stop is None else stop - begin):
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
    def _continuous(self, frames: Iterable[av.AudioFrame], position: int) -> Iterator[Float32Array]:
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


def _mono(frame: av.AudioFrame) -> Float32Array:
    """Average the channels of a frame and scale it to +-1."""
    if frame.format.name.startswith("s64"):  # unknown to av
        (frame,) = av.AudioResampler("dbl").resample(frame)
    raw: npt.NDArray[Any] = frame.to_ndarray()
    channels = raw if frame.format.is_planar else raw.reshape(-1, frame.layout.nb_channels).T
    with np.errstate(invalid="ignore", over="ignore"):  # the reader refuses non-finite samples
        mixed: Float32Array = channels.mean(axis=0, dtype=np.float32)
    if raw.dtype.kind == "u":
        return mixed / np.float32(128) - np.float32(1)
    if raw.dtype.kind == "i":
        return mixed / -np.float32(np.iinfo(raw.dtype).min)
    return mixed


def cut(parts: Iterable[Float32Array], first: int, stop: int | None) -> Iterator[Float32Array]:
    """Keep the samples [first, stop) of consecutive parts."""
    position = 0
    for part in parts:
        wanted = part[max(0, first - position) : None if stop is None else max(0, stop - position)]
        position += part.size
        if wanted.size:
            yield wanted
        if stop is not None and position >= stop:
            return


def require_finite(
    samples: Float32Array, position: int, rate: int, path: Path, problem: AudioProblem = "invalid_sample"
) -> None:
    """Raise if a sample is infinite, NaN or impossibly large; ``position`` is that of the first sample."""
    valid = np.abs(samples) <= LARGEST_SAMPLE
    if not valid.all():
        where = (position + int(np.argmin(valid))) / rate
        raise AudioFileError(path, problem, f"{where:.3f}")
