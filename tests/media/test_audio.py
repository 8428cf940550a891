"""Reading and writing sound: real files of every kind, made here with the encoders inside ``av``."""

import logging
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
import av.container
import numpy as np
import pytest
import soundfile

from utils.core.errors import StorageError
from utils.media import audio
from utils.media.audio import Samples
from utils.media.facts import AudioFileError, AudioProblem

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 9.0
PARTS = [(None, 2.0), (4.7777, 6.1234), (8.5, 99.0)]

FORMATS = {  # name: (encoder, video encoder, largest difference of a part from the whole)
    "a.wav": ("pcm_s16le", None, 1e-6),
    "a.flac": ("flac", None, 1e-6),
    "a.mp3": ("libmp3lame", None, 1e-6),
    "a.ogg": ("libvorbis-by-soundfile", None, 1e-6),
    "a.opus": ("libopus", None, 1e-4),
    "a.m4a": ("aac", None, 1e-4),
    "a.aac": ("aac", None, 1e-4),
    "a.mp4": ("aac", "mpeg4", 1e-4),
    "a.mkv": ("flac", "mpeg4", 1e-6),
    "a.webm": ("libopus", "libvpx", 1e-4),
}


def speechlike(rate: int, seconds: float = SECONDS) -> Samples:
    """A gliding tone under a slow envelope: every instant differs from every other, so a shift shows."""
    time = np.arange(round(rate * seconds)) / rate
    glide = np.sin(2 * np.pi * (200 * time + 50 * time**2))
    return (0.4 * glide * (0.6 + 0.4 * np.sin(5 * time))).astype(np.float32)


def encode(
    path: Path,
    encoder: str,
    samples: Samples,
    rate: int,
    *,
    video: str | None = None,
    options: dict[str, str] | None = None,
    quality: int | None = None,
) -> Path:
    """Write one channel with one of FFmpeg's encoders."""
    with av.open(path, "w", options=options or {}) as container:
        # With aac_pns the encoder writes noise bands, and a decoder fills them with new random numbers every time.
        good = {"aac_pns": "0", "b": "256000"} if encoder == "aac" else {}
        track = container.add_stream(encoder, rate=rate, layout="mono", options=good)
        assert isinstance(track, av.AudioStream)
        if quality is not None:
            track.codec_context.qscale = True
            track.codec_context.global_quality = quality * 118  # FFmpeg's unit of quality
        if video:
            add_pictures(container, video)
        whole = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
        whole.sample_rate, whole.pts, whole.time_base = rate, 0, Fraction(1, rate)
        size = track.codec_context.frame_size or 1024
        shaper = av.AudioResampler(format=track.format.name, layout="mono", rate=rate, frame_size=size)
        frames = [*shaper.resample(whole), *shaper.resample(None), None]
        container.mux([packet for frame in frames for packet in track.encode(frame)])
    return path


def add_pictures(container: av.container.OutputContainer, encoder: str) -> None:
    track = container.add_stream(encoder, rate=5, width=64, height=64, pix_fmt="yuv420p")
    assert isinstance(track, av.VideoStream)
    for number in range(round(SECONDS * 5)):
        picture = av.VideoFrame.from_ndarray(np.full((64, 64, 3), number, np.uint8), format="rgb24")
        container.mux(track.encode(picture))
    container.mux(track.encode())


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("media")
    for name, (encoder, video, _) in FORMATS.items():
        rate = 48000 if encoder == "libopus" else 44100
        if name == "a.ogg":
            soundfile.write(folder / name, speechlike(rate), rate, compression_level=0.0)
        else:
            encode(folder / name, encoder, speechlike(rate), rate, video=video)
    return folder


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_sound_that_was_put_in(name: str, media: Path) -> None:
    loaded = audio.load(media / name, 24000)
    lead = 1024 / 44100 if name == "a.aac" else 0.0  # raw AAC cannot say how much of its beginning is padding
    assert loaded.dtype == np.float32
    info = audio.probe(media / name)
    assert info.seconds == len(audio.load(media / name, info.rate)) / info.rate
    assert len(loaded) / 24000 == pytest.approx(SECONDS + lead, abs=0.03)
    middle = audio.load(media / name, 24000, 4 + lead, 5 + lead)
    assert np.abs(middle - speechlike(24000)[4 * 24000 : 5 * 24000]).max() < 0.05


@pytest.mark.parametrize("rate", [44100, 24000])
@pytest.mark.parametrize("name", FORMATS)
def test_a_part_is_the_same_slice_of_the_whole(name: str, rate: int, media: Path) -> None:
    whole = audio.load(media / name, rate)
    for start, end in PARTS:
        part = audio.load(media / name, rate, start, end)
        expected = whole[round((start or 0) * rate) : None if end is None else round(end * rate)]
        assert part.shape == expected.shape
        assert np.abs(part - expected).max() < FORMATS[name][2]


@pytest.mark.parametrize(("rate", "seconds"), [(24000, 0.05), (24000, 1.0), (44100, 30.0)])
def test_streamed_blocks_join_without_a_click(rate: int, seconds: float, media: Path) -> None:
    blocks = list(audio.stream(media / "a.wav", rate, seconds))
    size = round(seconds * rate)
    assert [block.size for block in blocks[:-1]] == [size] * (len(blocks) - 1)
    assert 0 < blocks[-1].size <= size
    at_once = audio.resample(soundfile.read(media / "a.wav", dtype="float32")[0], 44100, rate)
    assert np.abs(np.concatenate(blocks) - at_once).max() < 1e-4


@pytest.mark.parametrize(("from_rate", "to_rate"), [(8000, 24000), (192000, 22050), (24000, 24000)])
def test_resampling_keeps_a_tone_in_place(from_rate: int, to_rate: int) -> None:
    def tone(rate: int) -> Samples:
        return np.sin(2 * np.pi * 440 * np.arange(rate) / rate).astype(np.float32)

    resampled = audio.resample(tone(from_rate), from_rate, to_rate)
    assert resampled.shape == (to_rate,)
    inner = slice(to_rate // 10, -to_rate // 10)
    assert np.abs(resampled - tone(to_rate))[inner].max() < 1e-3


@pytest.mark.parametrize(
    ("subtype", "precision"), [("PCM_U8", 0.01), ("PCM_24", 1e-4), ("PCM_32", 1e-4), ("DOUBLE", 1e-4), ("ULAW", 0.03)]
)
def test_every_sample_format_has_the_same_scale(subtype: str, precision: float, tmp_path: Path) -> None:
    tone = speechlike(16000, 1)
    soundfile.write(tmp_path / "a.wav", np.stack([1.5 * tone, 0.5 * tone], axis=1), 16000, subtype=subtype)
    assert np.abs(audio.load(tmp_path / "a.wav", 16000) - tone).max() < precision


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF])
def test_a_wav_whose_header_knows_no_length_is_read_to_its_end(size: int, media: Path, tmp_path: Path) -> None:
    raw = bytearray((media / "a.wav").read_bytes())  # programs that write to a pipe cannot go back to fill in the size
    field = raw.index(b"data") + 4
    raw[field : field + 4] = size.to_bytes(4, "little")
    (tmp_path / "a.wav").write_bytes(raw)
    assert np.array_equal(audio.load(tmp_path / "a.wav", 44100), audio.load(media / "a.wav", 44100))
    assert audio.duration(tmp_path / "a.wav") == SECONDS


@pytest.mark.parametrize("options", [{}, {"write_xing": "0", "id3v2_version": "0"}])
def test_a_variable_rate_mp3_has_its_true_length(options: dict[str, str], tmp_path: Path) -> None:
    quiet_then_busy = np.concatenate([np.zeros(44100 * 20, np.float32), speechlike(44100, 5)])
    path = encode(tmp_path / "a.mp3", "libmp3lame", quiet_then_busy, 44100, options=options, quality=4)
    whole = audio.load(path, 44100)
    assert audio.duration(path) == whole.size / 44100 == pytest.approx(25, abs=0.06)
    assert np.array_equal(audio.load(path, 44100, 22.0, 23.0), whole[22 * 44100 : 23 * 44100])


@pytest.mark.parametrize(
    "name", ["a.wav", "a.flac", "a.mp3", "a.ogg", "a.opus", "a.aac", "a.mkv", "a.webm", "fast.mp4"]
)
def test_a_cut_off_file_gives_the_sound_it_has(name: str, media: Path, tmp_path: Path) -> None:
    whole_path = media / name
    if name == "fast.mp4":  # its index is at the front, so a cut leaves it readable
        encode(whole_path, "aac", speechlike(44100), 44100, options={"movflags": "faststart"})
    cut = tmp_path / name
    cut.write_bytes(whole_path.read_bytes()[: int(whole_path.stat().st_size * 0.95)])
    info = audio.probe(cut)
    part, whole = audio.load(cut, info.rate), audio.load(whole_path, info.rate)
    assert 0 < part.size < whole.size
    assert info.seconds == part.size / info.rate
    safe = part.size - info.rate // 10  # the last piece may be half there
    assert np.abs(part[:safe] - whole[:safe]).max(initial=0) < 1e-4


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.mp3", "fast.mp4"])
def test_a_file_whose_end_is_missing_is_named(
    name: str, media: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = media / name
    if name == "fast.mp4":
        encode(whole, "aac", speechlike(44100), 44100, options={"movflags": "faststart"})
    audio.probe(whole)
    assert "cut off" not in caplog.text
    cut = tmp_path / name
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 6 // 10])
    audio.probe(cut)
    assert re.search(rf"{name} is cut off: \d.* s of 9 s can be read", caplog.text)


def test_a_whole_big_endian_wav_is_not_taken_for_cut_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    samples = speechlike(44100)[:-64]  # its size read as little-endian is 1.8 GB, one that could be
    soundfile.write(tmp_path / "a.wav", samples, 44100, endian="BIG")
    assert audio.duration(tmp_path / "a.wav") == samples.size / 44100
    assert caplog.text == ""


def test_damage_in_the_middle_costs_only_itself(media: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    raw = bytearray((media / "a.flac").read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 500] = bytes(500)
    (tmp_path / "a.flac").write_bytes(raw)
    with caplog.at_level(logging.WARNING):
        damaged = audio.load(tmp_path / "a.flac", 44100)
    whole = audio.load(media / "a.flac", 44100)
    assert damaged.shape == whole.shape
    assert np.array_equal(damaged[-44100:], whole[-44100:])
    assert (damaged != whole).mean() < 0.05
    assert "filled with silence" in caplog.text


@pytest.mark.parametrize("name", ["a.flac", "a.webm"])
@pytest.mark.parametrize("seed", range(6))
def test_the_length_of_a_damaged_file_is_that_of_what_can_be_read(
    name: str, seed: int, media: Path, tmp_path: Path
) -> None:
    raw, random = bytearray((media / name).read_bytes()), np.random.default_rng(seed)
    for place in random.integers(1000, len(raw), 100):
        raw[place] ^= 0xFF
    (tmp_path / name).write_bytes(raw)
    info = audio.probe(tmp_path / name)
    assert info.seconds == pytest.approx(audio.load(tmp_path / name, info.rate).size / info.rate, abs=0.1)


def test_a_wav_of_64_bit_integers_is_read(tmp_path: Path) -> None:
    tone = speechlike(8000, 1)
    data = (tone.astype(np.float64) * 2**63).astype("<i8").tobytes()
    form = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 64000, 8, 64)
    chunks = b"WAVEfmt " + form + b"data" + struct.pack("<I", len(data)) + data
    (tmp_path / "a.wav").write_bytes(b"RIFF" + struct.pack("<I", len(chunks)) + chunks)
    assert np.abs(audio.load(tmp_path / "a.wav", 8000) - tone).max() < 1e-6


HLS = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{}\n#EXT-X-ENDLIST\n"


def write(samples: list[float], path: Path) -> None:
    soundfile.write(path, samples, 8000, format="WAV", subtype="FLOAT")


def write_film_without_sound(path: Path) -> None:
    with av.open(path, "w", format="mp4") as container:
        add_pictures(container, "mpeg4")


def write_playlist(text: str, path: Path) -> None:
    write([0.0] * 9000, path.with_name("secret.wav"))
    path.write_text(text.format(path.with_name("secret.wav")))


def write_film_without_index(path: Path) -> None:
    encode(path.with_suffix(".mp4"), "aac", speechlike(44100, 2), 44100)
    path.write_bytes(path.with_suffix(".mp4").read_bytes()[:5000])


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.write_text("ይህ ድምፅ አይደለም።\n" * 50, encoding="utf-8"), "undecodable"),
        (Path.touch, "empty"),
        (lambda path: path.write_bytes(np.random.default_rng(0).bytes(20000)), "undecodable"),
        (partial(write, []), "no_audio"),
        (partial(write, [0.0] * 4000 + [float("nan")]), "invalid_sample"),
        (partial(write, [0.0] * 4000 + [float("inf")]), "invalid_sample"),
        (partial(write, [0.0] * 4000 + [3e38]), "invalid_sample"),  # infinite once it is resampled
        (write_film_without_sound, "no_audio"), (write_film_without_index, "undecodable"),
        (partial(write_playlist, HLS), "undecodable"),
        (partial(write_playlist, "ffconcat version 1.0\nfile secret.wav\n"), "undecodable"),
        (Path.mkdir, "folder"), (lambda path: path, "missing"),
    ],
)  # fmt: skip
def test_an_unreadable_file_is_reported_with_a_hint(
    make: Callable[[Path], object], problem: AudioProblem, tmp_path: Path
) -> None:
    path = tmp_path / "a.wav"
    make(path)
    for read in (lambda: audio.load(path, 24000), lambda: list(audio.stream(path, 24000))):
        with pytest.raises(AudioFileError) as caught:
            read()
        assert (caught.value.path, caught.value.problem) == (path, problem)
        assert caught.value.hint


@pytest.mark.parametrize(("start", "end"), [(20.0, None), (3.0, 3.0), (-1.0, None)])
def test_an_impossible_part_is_refused(start: float | None, end: float | None, media: Path) -> None:
    with pytest.raises(AudioFileError) as caught:
        audio.load(media / "a.flac", 24000, start, end)
    assert caught.value.problem == "out_of_range"


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "A.WAV"])
def test_what_is_saved_comes_back(name: str, tmp_path: Path) -> None:
    tone = speechlike(24000, 1)
    tone[:2] = 2.0, -2.0  # held at the limit, without wrapping around
    audio.save(tmp_path / name, tone, 24000)
    once = audio.load(tmp_path / name, 24000)
    assert np.abs(once - tone)[2:].max() < 1 / 32768
    assert once[:2].tolist() == [32767 / 32768, -1.0]
    assert soundfile.info(tmp_path / name).subtype == "PCM_16"
    audio.save(tmp_path / name, once, 24000)
    assert np.array_equal(audio.load(tmp_path / name, 24000), once)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "samples", "rate", "error"),
    [
        ("a.mp3", np.zeros(10), 8000, AudioFileError), ("a.wav", np.array([0.0, np.nan]), 8000, AudioFileError),
        ("a.flac", np.zeros(10), 0, AudioFileError), ("no/folder/a.wav", np.zeros(10), 8000, StorageError),
    ],
)  # fmt: skip
def test_what_cannot_be_saved_leaves_nothing(
    name: str, samples: Samples, rate: int, error: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(error):
        audio.save(tmp_path / name, samples.astype(np.float32), rate)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
def test_the_old_file_survives_a_full_disk(name: str, small_disk: Path) -> None:
    (small_disk / name).write_bytes(b"old")
    noise = np.random.default_rng(0).uniform(-1, 1, 500_000).astype(np.float32)
    with pytest.raises(StorageError, match=name):
        audio.save(small_disk / name, noise, 24000)
    assert [(path.name, path.read_bytes()) for path in small_disk.iterdir()] == [(name, b"old")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc; ru_maxrss would include this parent's")
def test_two_hours_pass_through_300_mb(tmp_path: Path) -> None:
    path = tmp_path / "two_hours.flac"
    ten_minutes = speechlike(8000, 600)
    with soundfile.SoundFile(path, "w", 8000, 1) as file:
        for _ in range(12):
            file.write(ten_minutes)
    code = (
        "import sys\nfrom tests.peak import peak_mb\nfrom utils.media import audio\n"
        "seconds = sum(block.size for block in audio.stream(sys.argv[1], 24000)) / 24000\n"
        "print(seconds, audio.duration(sys.argv[1]), peak_mb())\n"
    )
    words = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    streamed, measured, peak = map(float, done.stdout.split())
    assert streamed == measured == 7200.0  # 690 MB at once
    assert peak < 300
