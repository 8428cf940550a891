import io
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from tests.speech.made_speech import tone
from utils.core.errors import AudioError, StorageError
from utils.media import audio
from utils.media.audio import Samples
from utils.media.encoding import (
    AUDIO_FORMATS,
    Chapter,
    Tags,
    encode_stream,
    format_of,
    to_pcm16,
    wav_header,
    write_audio,
)

RATE = 24_000
EXACT = [".wav", ".flac"]
CHAPTERED = [ending for ending, kind in AUDIO_FORMATS.items() if kind.chapters]
STREAMED = [ending for ending, kind in AUDIO_FORMATS.items() if kind.streams]
DELAY = {".aac": 1024}  # samples; raw AAC cannot say how much of its beginning is padding


def glide(seconds: float = 3.0) -> Samples:
    """A rising tone: every instant differs from every other, so a shift shows."""
    time = np.arange(round(seconds * RATE)) / RATE
    return (0.4 * np.sin(2 * np.pi * (200 * time + 60 * time**2))).astype(np.float32)


def heard_again(path: Path, *, delay: int = 0) -> float:
    """The largest difference from the glide, away from the ends."""
    heard, sound = audio.load(path, RATE)[delay:], glide()
    return float(np.abs(heard[2000:70_000] - sound[2000:70_000]).max())


@pytest.mark.parametrize("ending", AUDIO_FORMATS)
def test_every_kind_gives_the_sound_that_was_put_in(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"ድምፅ{ending}"
    write_audio(path, glide(), RATE)
    assert heard_again(path, delay=DELAY.get(ending, 0)) < (2e-5 if ending in EXACT else 0.05)
    assert audio.duration(path) == pytest.approx(3.0, abs=0.1)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", STREAMED)
def test_a_file_can_be_played_while_it_comes(ending: str, tmp_path: Path) -> None:
    given = []

    def parts() -> Iterator[Samples]:
        for part in np.array_split(glide(), 30):
            given.append(part.size)
            yield part

    chunks = encode_stream(parts(), ending, tags=Tags("ርዕስ"))
    first = next(chunks)
    assert len(given) <= 3
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"".join([first, *chunks]))
    delay = {".aac": 1024, ".mp3": 1105}.get(ending, 0)  # an MP3 has told its delay only once it is complete
    assert heard_again(path, delay=delay) < (2e-5 if ending in EXACT else 0.05)


@pytest.mark.parametrize("ending", STREAMED)
def test_sound_comes_out_soon_after_it_went_in(ending: str) -> None:
    parts = np.array_split(glide(), 30)  # a tenth of a second each
    waiting = [len(chunk) for chunk in encode_stream(parts, ending)]
    assert len(waiting) >= 28


def test_a_stream_can_be_given_up() -> None:
    chunks = encode_stream(iter([glide()] * 3), ".mp3")
    next(chunks)
    chunks.close()
    assert list(chunks) == []


@pytest.mark.parametrize("ending", [".m4a", ".m4b"])
def test_what_cannot_be_streamed_is_refused_with_what_can(ending: str) -> None:
    with pytest.raises(AudioError, match=r"before it is complete.*\.wav, \.flac, \.mp3"):
        next(encode_stream([glide()], ending))


@pytest.mark.parametrize("ending", [ending for ending in AUDIO_FORMATS if ending != ".aac"])
def test_tags_say_that_the_speech_is_synthetic(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    write_audio(path, glide(0.5), RATE, tags=Tags("ርዕስ\n\ud800", "my model"))
    with av.open(str(path)) as container:
        tags = {**container.metadata, **container.streams.audio[0].metadata}
    assert tags["title"] == "ርዕስ ?"
    assert tags["comment"].startswith("Synthetic speech")
    assert "Model: my model." in tags["comment"]


@pytest.mark.parametrize("ending", CHAPTERED)
def test_players_find_the_chapters(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    chapters = [Chapter("ምዕራፍ 1", 0.0, 1.25), Chapter("ምዕራፍ 2", 1.25, 3.0)]
    write_audio(path, glide(), RATE, chapters=chapters)
    with av.open(str(path)) as container:
        found = [
            (one["metadata"]["title"], one["start"] * float(one["time_base"] or 0)) for one in container.chapters()
        ]
    assert found == [("ምዕራፍ 1", 0.0), ("ምዕራፍ 2", 1.25)]


@pytest.mark.parametrize(("ending", "bits", "subtype"), [(e, b, f"PCM_{b}") for e in EXACT for b in (16, 24)])
def test_samples_have_as_many_bits_as_asked_for(ending: str, bits: int, subtype: str, tmp_path: Path) -> None:
    write_audio(tmp_path / f"a{ending}", glide(), RATE, bits=bits)
    assert soundfile.info(tmp_path / f"a{ending}").subtype == subtype
    heard = audio.load(tmp_path / f"a{ending}", RATE)
    assert np.abs(heard - glide()).max() <= 1.01 / 2 ** (bits - 1)


@pytest.mark.parametrize("ending", AUDIO_FORMATS)
def test_the_same_sound_makes_the_same_bytes(ending: str, tmp_path: Path) -> None:
    for name in "ab":
        write_audio(tmp_path / f"{name}{ending}", np.array_split(glide(), 3 if name == "a" else 7), RATE)
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


@pytest.mark.parametrize(
    ("name", "sound", "rate", "bits", "message"),
    [
        ("a.xyz", glide(), RATE, 16, r"\.xyz.*\.wav, \.flac, \.mp3"),
        ("a", glide(), RATE, 16, "extension"),
        ("a.mp3", glide(), RATE, 24, "24 bits"),
        ("a.wav", glide(), RATE, 8, "8 bits"),
        ("a.opus", glide(), 12_345, 16, "at 12345 Hz"),
        ("a.wav", np.zeros(0, np.float32), RATE, 16, "no audio"),
        ("a.wav", np.zeros((2, 9), np.float32), RATE, 16, "one channel"),
        ("a.mp3", np.array([0.0] * 12_000 + [np.nan], np.float32), RATE, 16, r"0\.500 s"),
    ],
)
def test_what_cannot_be_written_is_refused_and_the_old_file_stays(
    name: str, sound: Samples, rate: int, bits: int, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"old")
    with pytest.raises(AudioError, match=message):
        write_audio(tmp_path / name, sound, rate, bits=bits)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [(name, b"old")]


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written"):
        write_audio(tmp_path / "no" / "a.mp3", glide(), RATE)


@pytest.mark.parametrize("ending", AUDIO_FORMATS)
def test_a_full_disk_is_told_and_the_old_file_stays(ending: str, small_disk: Path) -> None:
    (small_disk / f"a{ending}").write_bytes(b"old")
    (small_disk / "filler").write_bytes(bytes(470 * 1024))
    noise = np.random.default_rng(0).uniform(-1, 1, RATE * 15).astype(np.float32)
    with pytest.raises(StorageError, match="No space left"):
        write_audio(small_disk / f"a{ending}", noise, RATE)
    assert {one.name for one in small_disk.iterdir()} == {"filler", f"a{ending}"}
    assert (small_disk / f"a{ending}").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("sample", "stored"),
    [(0, 0), (0.5, 16384), (1, 32767), (-1, -32768), (9, 32767), (-9, -32768), (1e-6, 0), (32767.5 / 32768, 32767)],
)
def test_loud_samples_are_held_and_do_not_wrap(sample: float, stored: int) -> None:
    assert np.frombuffer(to_pcm16(np.array([sample], np.float32)), "<i2").tolist() == [stored]


@pytest.mark.parametrize("ending", EXACT)
def test_files_hold_loud_samples_too(ending: str, tmp_path: Path) -> None:
    loud = np.array([3.0, -3.0, 0.25] * 500, np.float32)
    write_audio(tmp_path / f"a{ending}", loud, RATE)
    assert soundfile.read(tmp_path / f"a{ending}", dtype="int16")[0].tobytes() == to_pcm16(loud)


def test_a_sample_that_is_no_number_is_refused() -> None:
    with pytest.raises(AudioError, match=r"0\.000 s"):
        to_pcm16(np.array([np.inf], np.float32))


def test_a_wav_of_unknown_length_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav_header() + to_pcm16(tone(0.5)))
    assert len(wav_header()) == 44
    assert np.abs(audio.load(path, RATE) - tone(0.5)).max() < 2e-5
    with av.open(io.BytesIO(path.read_bytes())) as container:
        assert container.streams.audio[0].rate == RATE


@pytest.mark.parametrize(("name", "mime"), [("a.MP3", "audio/mpeg"), ("b.c.wav", "audio/wav"), ("x.opus", "audio/ogg")])
def test_a_name_tells_its_kind(name: str, mime: str) -> None:
    assert format_of(name).mime == mime
