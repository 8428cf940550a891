"""Speech to sound files of every common kind, whole or while it is still being spoken.

One table says which kinds there are; the FFmpeg libraries inside ``av`` write all of them. Every file says in its tags
that nobody spoke it.
"""

import struct
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

import av
import av.container
import numpy as np
import numpy.typing as npt

from utils.core.errors import AudioError
from utils.core.storage import atomic_writer
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE

if TYPE_CHECKING:
    from av.container.core import Chapter as PlayersChapter

BLOCK = 10 * OUTPUT_RATE  # samples handed over at a time, so that a book needs no second copy in memory
UNKNOWN_SIZE = 0xFFFFFFFF
FRAME = 1024  # samples, for encoders that take any number


class Chapter(NamedTuple):
    """A chapter of a spoken text, in seconds of its sound."""

    title: str
    start: float
    end: float


class AudioFormat(NamedTuple):
    """How sound is stored.

    Attributes:
        container: FFmpeg's name of the container.
        encoder: FFmpeg's name of the encoder.
        mime: What a web server calls it.
        bit_rate: Bits a second, where something is lost; 0 otherwise.
        chapters: Whether players find chapters in it.
        streams: Whether it can be played before it is complete.
        deep: How 24 bits are stored: encoder and format of samples; None where they are not.
    """

    container: str
    encoder: str
    mime: str
    bit_rate: int = 0
    chapters: bool = False
    streams: bool = True
    deep: tuple[str, str] | None = None


AUDIO_FORMATS = {
    ".wav": AudioFormat("wav", "pcm_s16le", "audio/wav", deep=("pcm_s24le", "s32")),
    ".flac": AudioFormat("flac", "flac", "audio/flac", deep=("flac", "s32")),
    ".mp3": AudioFormat("mp3", "libmp3lame", "audio/mpeg", 64_000, chapters=True),
    ".ogg": AudioFormat("ogg", "libopus", "audio/ogg", 48_000, chapters=True),
    ".opus": AudioFormat("ogg", "libopus", "audio/ogg", 48_000, chapters=True),
    ".aac": AudioFormat("adts", "aac", "audio/aac", 64_000),
    ".m4a": AudioFormat("ipod", "aac", "audio/mp4", 64_000, chapters=True, streams=False),
    ".m4b": AudioFormat("ipod", "aac", "audio/mp4", 64_000, chapters=True, streams=False),
}
WHOLE = {"fflags": "+bitexact"}  # the same sound makes the same bytes
OPTIONS = {"wav": {"rf64": "auto"}}  # beyond 4 GiB, which is a day of speech
AT_ONCE = {"flush_packets": "1"}
STREAM_OPTIONS = {"mp3": {"write_xing": "0"}, "ogg": {"page_duration": "100000"}}  # microseconds


@dataclass(frozen=True)
class Tags:
    """What a file says of itself.

    Attributes:
        title: What is spoken.
        model: What spoke it.
        voice: In which voice.
    """

    title: str = ""
    model: str = ""
    voice: str = ""

    def entries(self) -> dict[str, str]:
        """Return the entries by FFmpeg's names."""
        said = ["Synthetic speech: a machine made it, nobody said it."]
        said += [f"Model: {self.model}."] if self.model else []
        said += [f"Voice: {self.voice}."] if self.voice else []
        entries = {"title": self.title, "comment": " ".join(said)}
        return {name: plain for name, text in entries.items() if (plain := _plain(text))}


def write_audio(
    path: Path | str,
    sound: Samples | Iterable[Samples],
    rate: int,
    *,
    tags: Tags | None = None,
    chapters: Sequence[Chapter] = (),
    bits: int = 16,
) -> None:
    """Write sound, whole or in parts as they come; the file appears only when it is complete.

    Args:
        path: Its folder must exist; the endings are those of ``KINDS``.
        sound: Mono samples, or an iterable of them.
        rate: Samples a second.
        tags: What the file says of itself.
        chapters: For players, in the kinds that have them.
        bits: A sample, for WAV and FLAC: 16 or 24.
    """
    path = Path(path)
    kind = format_of(path)
    with atomic_writer(path) as file, _encoder(file, kind, rate, tags or Tags(), bits, whole=True) as encoder:
        if kind.chapters and chapters:
            encoder.container.set_chapters([_chapter(number, one) for number, one in enumerate(chapters, 1)])
        for block in _blocks(sound):
            encoder.add(block)
        if not encoder.position:
            raise AudioError(f"{path}: there is no sound to write.", hint="Speak something first.")


def encode_stream(sound: Iterable[Samples], ending: str, *, tags: Tags | None = None) -> Generator[bytes, None, None]:
    """Yield the bytes of a file while its sound is still coming.

    Args:
        sound: Consecutive parts; nothing is kept of them.
        ending: Which kind, as in ``KINDS``; not all can be played before they are complete.
        tags: What the file says of itself.
    """
    kind = format_of(f"speech{ending}")
    if not kind.streams:
        able = ", ".join(name for name, one in AUDIO_FORMATS.items() if one.streams)
        raise AudioError(f"{ending} cannot be played before it is complete.", hint=f"These can: {able}.")
    sink = _Sink()
    with _encoder(sink, kind, OUTPUT_RATE, tags or Tags(), 16, whole=False) as encoder:
        for block in sound:
            encoder.add(block)
            if ready := sink.taken():
                yield ready
    if ready := sink.taken():
        yield ready


def format_of(path: Path | str) -> AudioFormat:
    """Return how a file of this name is stored."""
    ending = Path(path).suffix.lower()
    if ending not in AUDIO_FORMATS:
        known = ", ".join(AUDIO_FORMATS)
        raise AudioError(f"{path}: sound is not written as {ending or 'a file without ending'}.", hint=f"Use {known}.")
    return AUDIO_FORMATS[ending]


def to_pcm16(samples: Samples) -> bytes:
    """Return 16-bit little-endian samples; what is too loud is held at the limit and never wraps around."""
    _refuse_non_finite(samples, 0, OUTPUT_RATE)
    whole: npt.NDArray[np.int16] = np.clip(np.rint(samples * np.float32(32768)), -32768, 32767).astype("<i2")
    return whole.tobytes()


def wav_header() -> bytes:
    """Return the beginning of a 16-bit mono WAV of unknown length, for a pipe."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, OUTPUT_RATE, OUTPUT_RATE * 2, 2, 16)
    return struct.pack("<4sI4s", b"RIFF", UNKNOWN_SIZE, b"WAVE") + form + struct.pack("<4sI", b"data", UNKNOWN_SIZE)


class _Sink:
    """A file that only grows, and gives away what it holds."""

    def __init__(self) -> None:
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        self._held += data
        return len(data)

    def taken(self) -> bytes:
        held, self._held = bytes(self._held), bytearray()
        return held


class _Encoder:
    """One open container with one track."""

    def __init__(self, container: av.container.OutputContainer, track: av.AudioStream, rate: int) -> None:
        self.container = container
        self.track = track
        self.rate = rate
        self.position = 0
        size = track.codec_context.frame_size or FRAME
        self.shaper = av.AudioResampler(format=track.format.name, layout="mono", rate=rate, frame_size=size)

    def add(self, samples: Samples) -> None:
        """Encode the next part."""
        if not samples.size:
            return
        _refuse_non_finite(samples, self.position, self.rate)
        held = np.ascontiguousarray(np.clip(samples, -1, 1), np.float32)
        frame = av.AudioFrame.from_ndarray(held[None], format="fltp", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = self.rate, self.position, Fraction(1, self.rate)
        self.position += samples.size
        self._encode(self.shaper.resample(frame))

    def finish(self) -> None:
        """Encode what was held back."""
        if self.position:
            self._encode(self.shaper.resample(None))
        self._encode([None])

    def _encode(self, frames: Iterable[av.AudioFrame | None]) -> None:
        for frame in frames:
            self.container.mux(self.track.encode(frame))


@contextmanager
def _encoder(
    file: IO[bytes] | _Sink, kind: AudioFormat, rate: int, tags: Tags, bits: int, *, whole: bool
) -> Iterator[_Encoder]:
    """Open a container; what FFmpeg refuses comes out as an AudioError."""
    name, shape = _stored(kind, bits)
    options = {**WHOLE, **(OPTIONS if whole else STREAM_OPTIONS).get(kind.container, {}), **({} if whole else AT_ONCE)}
    try:
        size = 32_768 if whole else 1024  # bytes that FFmpeg keeps before it writes
        with av.open(file, "w", format=kind.container, options=options, buffer_size=size) as container:
            container.metadata.update(tags.entries())
            track = cast("av.AudioStream", container.add_stream(name, rate=rate, layout="mono"))
            track.codec_context.flags |= av.codec.context.Flags.bitexact
            if shape:
                track.codec_context.format = shape
            if kind.bit_rate:
                track.codec_context.bit_rate = kind.bit_rate
            encoder = _Encoder(container, track, rate)
            yield encoder
            encoder.finish()
    except av.error.FFmpegError as error:
        if isinstance(error, OSError):
            raise
        raise AudioError(f"{kind.encoder} cannot write sound at {rate} Hz ({error.strerror}).") from error


def _stored(kind: AudioFormat, bits: int) -> tuple[str, str]:
    """Return the encoder of a kind, and the format of its samples where it has to be told."""
    if bits == 16:
        return kind.encoder, ""
    if bits == 24 and kind.deep:
        return kind.deep
    raise AudioError(f"{kind.encoder} does not write samples of {bits} bits.", hint="WAV and FLAC have 16 or 24.")


def _blocks(sound: Samples | Iterable[Samples]) -> Iterator[Samples]:
    if not isinstance(sound, np.ndarray):
        yield from sound
        return
    if sound.ndim != 1:
        raise AudioError(f"Expected one channel, got an array of shape {sound.shape}.")
    yield from (sound[begin : begin + BLOCK] for begin in range(0, sound.size, BLOCK))


def _refuse_non_finite(samples: Samples, position: int, rate: int) -> None:
    if not np.isfinite(samples).all():
        where = (position + int(np.argmin(np.isfinite(samples)))) / rate
        raise AudioError(
            f"The sound holds a sample that is not a finite number at {where:.3f} s.",
            hint="Speak it with the precision fp32.",
        )


def _chapter(number: int, chapter: Chapter) -> "PlayersChapter":
    start, end = round(chapter.start * 1000), round(chapter.end * 1000)
    title = {"title": _plain(chapter.title)}
    return {"id": number, "start": start, "end": end, "time_base": Fraction(1, 1000), "metadata": title}


def _plain(text: str) -> str:
    """Return a text on one line that UTF-8 can hold."""
    return " ".join(text.encode("utf-8", "replace").decode().replace("\0", " ").split())
