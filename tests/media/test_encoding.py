import operator
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from utils.core.errors import StorageError
from utils.media import audio
from utils.media.audio import Samples
from utils.media.encoding import AUDIO_FORMATS, Chapter, Tags, encode_stream, to_pcm16, write_audio
from utils.media.facts import AudioFileError, AudioProblem

RATE = 24_000
LOSSLESS = (".wav", ".flac")
CHAPTERED = [suffix for suffix, known in AUDIO_FORMATS.items() if known.chapters]
STREAMED = [suffix for suffix, known in AUDIO_FORMATS.items() if known.streams]


def glide(seconds: float = 3.0) -> Samples:
    """A rising tone: every instant differs from every other, so a shift shows."""
    time = np.arange(round(seconds * RATE)) / RATE
    return (0.4 * np.sin(2 * np.pi * (200 * time + 60 * time**2))).astype(np.float32)


def is_close(path: Path, delay: int) -> bool:
    """Compare a file with the glide, away from the ends; a lossy one may differ a little."""
    loaded, sound = audio.load(path, RATE)[delay:], glide()
    difference = np.abs(loaded[2000:70_000] - sound[2000:70_000]).max()
    return bool(difference < (2e-5 if path.suffix in LOSSLESS else 0.05))


@pytest.mark.parametrize("suffix", AUDIO_FORMATS)
def test_every_format_holds_the_sound_and_makes_the_same_bytes_again(suffix: str, tmp_path: Path) -> None:
    path, again = tmp_path / f"ድምፅ{suffix}", tmp_path / f"again{suffix}"
    write_audio(path, glide(), RATE)
    assert is_close(path, delay=1024 if suffix == ".aac" else 0)  # raw AAC cannot say how much is padding
    assert audio.duration(path) == pytest.approx(3.0, abs=0.1)
    write_audio(again, np.array_split(glide(), 7), RATE)
    assert path.read_bytes() == again.read_bytes()


@pytest.mark.parametrize("suffix", STREAMED)
def test_a_file_can_be_played_while_it_is_made(suffix: str, tmp_path: Path) -> None:
    parts = iter(np.array_split(glide(), 30))  # a tenth of a second each
    stream = encode_stream(parts, suffix, tags=Tags("ርዕስ"))
    chunks = [next(stream)]
    given = 30 - operator.length_hint(parts)
    assert given <= 3
    chunks += stream
    assert len(chunks) >= 28
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"".join(chunks))
    assert is_close(path, delay={".aac": 1024, ".mp3": 1105}.get(suffix, 0))  # an MP3 stores its delay at the end


@pytest.mark.parametrize("suffix", [suffix for suffix in AUDIO_FORMATS if suffix != ".aac"])
def test_tags_say_that_the_speech_is_synthetic(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    write_audio(path, glide(0.5), RATE, tags=Tags("ርዕስ\n\ud800", "my model"))
    with av.open(str(path)) as container:
        tags = {**container.metadata, **container.streams.audio[0].metadata}
    assert tags["title"] == "ርዕስ ?"
    assert tags["comment"].startswith("Synthetic speech")
    assert "Model: my model." in tags["comment"]


@pytest.mark.parametrize("suffix", CHAPTERED)
def test_players_find_the_chapters(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    write_audio(path, glide(), RATE, chapters=[Chapter("ምዕራፍ 1", 0.0, 1.25), Chapter("ምዕራፍ 2", 1.25, 3.0)])
    with av.open(str(path)) as container:
        rows = container.chapters()
    assert [row["metadata"]["title"] for row in rows] == ["ምዕራፍ 1", "ምዕራፍ 2"]
    assert [row["start"] * float(row["time_base"] or 0) for row in rows] == [0.0, 1.25]


@pytest.mark.parametrize(
    ("name", "sound", "rate", "problem", "detail"),
    [
        ("a.xyz", glide(), RATE, "extension", ".wav, .flac, .mp3"),
        ("a.opus", glide(), 12_345, "not_encodable", "12345 Hz"),
        ("a.wav", np.zeros(0, np.float32), RATE, "no_audio", ""),
        ("a.wav", np.zeros((2, 9), np.float32), RATE, "several_channels", "(2, 9)"),
        ("a.mp3", np.array([0.0] * 12_000 + [np.nan], np.float32), RATE, "overflow", "0.500"),
    ],
)
def test_what_cannot_be_written_leaves_the_old_file(
    name: str, sound: Samples, rate: int, problem: AudioProblem, detail: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"old")
    with pytest.raises(AudioFileError) as caught:
        write_audio(tmp_path / name, sound, rate)
    assert caught.value.problem == problem
    assert caught.value.detail.startswith(detail)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"old")]


@pytest.mark.parametrize("suffix", [".wav", ".mp3", ".m4a"])
def test_the_old_file_survives_a_full_disk(suffix: str, small_disk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (small_disk / f"a{suffix}").write_bytes(b"old")
    (small_disk / "filler").write_bytes(bytes(470 * 1024))
    noise = np.random.default_rng(0).uniform(-1, 1, RATE * 15).astype(np.float32)
    with pytest.raises(StorageError, match="No space left"):
        write_audio(small_disk / f"a{suffix}", noise, RATE)
    assert {path.name for path in small_disk.iterdir()} == {"filler", f"a{suffix}"}
    assert (small_disk / f"a{suffix}").read_bytes() == b"old"
    assert capfd.readouterr().err == ""  # PyAV would print a traceback


@pytest.mark.parametrize("suffix", LOSSLESS)
def test_loud_samples_do_not_wrap(suffix: str, tmp_path: Path) -> None:
    loud = np.array([0, 0.5, 1, -1, 9, -9, 1e-6, 32767.5 / 32768], np.float32)
    stored = [0, 16384, 32767, -32768, 32767, -32768, 0, 32767]
    assert np.frombuffer(to_pcm16(loud), "<i2").tolist() == stored
    write_audio(tmp_path / f"a{suffix}", loud, RATE)
    assert soundfile.read(tmp_path / f"a{suffix}", dtype="int16")[0].tolist() == stored
