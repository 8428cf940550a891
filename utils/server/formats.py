"""The formats that callers may ask for, by the names they have in OpenAI's API."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from utils.media.audio import Samples
from utils.media.encoding import KINDS, streamed, to_pcm16, write_sound
from utils.media.rates import OUTPUT_RATE

PCM = "pcm"
MEDIA_TYPES = {name: KINDS[f".{name}"].mime for name in ("mp3", "opus", "aac", "flac", "wav")} | {PCM: "audio/pcm"}


def encoded(sound: Iterable[Samples], name: str, *, whole: bool) -> Iterator[bytes]:
    """Turn sound into the bytes of a file.

    Args:
        sound: Consecutive parts at 24 000 Hz.
        name: One of the formats.
        whole: Give all of it at the end, so that its head can say how long it is.
    """
    if name == PCM and whole:
        yield b"".join(map(to_pcm16, sound))
    elif name == PCM:
        yield from map(to_pcm16, sound)
    elif whole:
        with tempfile.TemporaryDirectory(prefix="speech-") as folder:
            path = Path(folder, f"speech.{name}")
            write_sound(path, sound, OUTPUT_RATE)
            yield path.read_bytes()
    else:
        yield from streamed(sound, f".{name}")
