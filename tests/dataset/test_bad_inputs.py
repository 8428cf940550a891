"""Every bad input that one meets, all in one folder between good recordings: the good ones are finished."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from tests.dataset.building import SETTINGS, WORDS, built
from tests.dataset.recordings import RATE, generated, recording
from utils.core.paths import Project
from utils.dataset import sources
from utils.dataset.build import BuildReport
from utils.dataset.statistics import account
from utils.media.audio import Samples, resample

pytestmark = pytest.mark.slow

SECONDS = 8.0


def speech(seed: int) -> Samples:
    return recording(SECONDS, seed=seed, pauses=(0.7, 1.2), speech=generated()).samples


def write_text(path: Path) -> None:
    path.write_text("ይህ ድምፅ አይደለም።\n" * 50, encoding="utf-8")


def write(samples: Samples, path: Path, rate: int = RATE, subtype: str = "PCM_16") -> None:
    soundfile.write(path, samples, rate, subtype=subtype)


def write_cut(share: float, path: Path) -> None:
    write(speech(1), path)
    content = path.read_bytes()
    path.write_bytes(content[: round(len(content) * share)])


def write_nan(path: Path) -> None:
    samples = speech(2)
    samples[samples.size // 2] = np.nan
    write(samples, path, subtype="FLOAT")


def video_without_sound(path: Path) -> None:
    with av.open(path, "w") as container:
        pictures = container.add_stream("mpeg4", rate=10)
        pictures.width = pictures.height = 64
        for _ in range(10):
            container.mux(pictures.encode(av.VideoFrame(64, 64, "yuv420p")))
        container.mux(pictures.encode())


def write_at_rate(rate: int, path: Path) -> None:
    write(resample(speech(rate), RATE, rate), path, rate)


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a 0-byte.wav": (Path.touch, "is empty (0 bytes)"),
    "b text.wav": (write_text, "cannot be decoded"),
    "c header alone.wav": (partial(write, np.zeros(0, np.float32)), "contains no audio"),
    "d cut header.wav": (partial(write_cut, 1e-4), "truncated or damaged"),
    "e nan.wav": (write_nan, "an invalid sample at 4.000 s"),
    "f folder.wav": (Path.mkdir, "is a folder without"),
    "g film.mp4": (video_without_sound, "contains no audio"),
}
ODD: dict[str, tuple[Callable[[Path], object], float]] = {  # all the sound that there is gets used
    "h cut.wav": (partial(write_cut, 0.5), SECONDS / 2),
    "i 8 channels.wav": (partial(write, np.repeat(speech(4)[:, None], 8, axis=1)), SECONDS),
    "j 8 kHz.wav": (partial(write_at_rate, 8_000), SECONDS),
    "k 192 kHz.wav": (partial(write_at_rate, 192_000), SECONDS),
}
GOOD = ("0 first.wav", "z last.wav")


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> BuildReport:
    """Return what came of a folder that holds all of them."""
    folder = tmp_path_factory.mktemp("batch")
    for name, (make, _) in (BAD | ODD).items():
        make(folder / name)
    for number, name in enumerate(GOOD):
        soundfile.write(folder / name, speech(10 + number), RATE, subtype="PCM_16")
    for path in folder.glob("*.wav"):
        path.with_suffix(".txt").write_text(WORDS[0] * 3, encoding="utf-8")
    found = sources.find_recordings([folder], language="am")
    return built(found, Project(tmp_path_factory.mktemp("out")), SETTINGS)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_in_the_ledger_with_its_reason(batch: BuildReport, name: str) -> None:
    (reason,) = [source.reason for source in account(batch.contents).failed if Path(source.path).name == name]
    assert BAD[name][1] in reason
    assert name in account(batch.contents).render()


@pytest.mark.parametrize("name", [*GOOD, *ODD])
def test_the_rest_of_the_batch_is_finished(batch: BuildReport, name: str) -> None:
    (entry,) = [entry for entry in account(batch.contents).entries if Path(entry.source).name == name]
    assert entry.seconds == pytest.approx(ODD[name][1] if name in ODD else SECONDS, abs=0.01)
    assert entry.kept > entry.seconds / 2
    assert entry.kept + sum(entry.excluded.values()) + entry.between == pytest.approx(entry.seconds, abs=0.01)


def test_nothing_else_is_in_the_ledger(batch: BuildReport) -> None:
    ledger = account(batch.contents)
    assert {Path(entry.source).name for entry in ledger.entries} == {*ODD, *GOOD}
    assert {Path(source.path).name for source in ledger.failed} == {*BAD}
    assert (batch.added, len(batch.bad)) == (len(GOOD) + len(ODD), len(BAD))
