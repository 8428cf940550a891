from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.dataset.recordings import babble, recording
from utils.core import wording
from utils.media.audio import Samples
from utils.speech.reference_choice import rank, score

RATE = 16_000


def talk(
    seconds: float = 9.0, *, noise_db: float = -70.0, pause: float = 0.2, gain: float = 1.0, melody: float = 3.0
) -> Samples:
    """Let a synthetic voice talk; each argument changes one property and leaves the others."""
    sound = recording(seconds, noise_db=noise_db, pauses=(pause, pause + 0.05), speech=[phrase(melody)]).samples
    return np.asarray(np.clip(sound * gain, -1, 1), np.float32)


def phrase(semitones: float) -> Samples:
    """Bend the pitch of one phrase up and down by reading it faster and slower."""
    flat = babble(1.5, seed=3)
    speed = 2 ** (semitones * np.sin(np.linspace(0, 4 * np.pi, flat.size)) / 12)
    places = np.cumsum(speed) / np.sum(speed) * (flat.size - 1)
    return np.asarray(np.interp(places, np.arange(flat.size), flat), np.float32)


def clip(folder: Path, name: str, **properties: Any) -> Path:
    soundfile.write(folder / name, talk(**properties), RATE)
    return folder / name


@pytest.mark.parametrize(
    ("worse", "reason"),
    [
        ({"noise_db": -38.0}, "some noise ("),
        ({"seconds": 3.0}, "3.0 s"),
        ({"gain": 6.0}, "% clipped"),
        ({"pause": 4.0}, "% silence"),
        ({"melody": 0.0}, ""),
    ],
)
def test_of_two_clips_the_one_with_the_better_property_comes_first(
    tmp_path: Path, worse: dict[str, float], reason: str
) -> None:
    better, other = rank([clip(tmp_path, "worse.wav", **worse), clip(tmp_path, "better.wav", melody=5.0)])
    assert (better.path.name, other.path.name) == ("better.wav", "worse.wav")
    assert better.total > other.total
    assert better.quality
    assert (better.quality.noise, better.quality.melody) == ("clean", "lively")
    assert other.quality
    assert reason in wording.describe(other.quality)


def test_only_the_first_30_seconds_are_judged(tmp_path: Path) -> None:
    sound = np.concatenate([talk(30.0), np.random.default_rng(0).uniform(-1, 1, 10 * RATE).astype(np.float32)])
    soundfile.write(tmp_path / "long.wav", sound, RATE)
    quality = score(tmp_path / "long.wav").quality
    assert quality
    assert quality.seconds == pytest.approx(40.0, abs=0.1)
    assert quality.noise == "clean"


def test_unusable_clips_come_last_with_their_reason(tmp_path: Path) -> None:
    good = clip(tmp_path, "good.wav")
    soundfile.write(tmp_path / "silent.wav", np.zeros(3 * RATE), RATE)
    soundfile.write(tmp_path / "short.wav", talk(3.0)[: RATE // 2], RATE)
    (tmp_path / "text.mp3").write_text("no sound")
    names = ["silent.wav", "short.wav", "text.mp3", "absent.wav"]
    first, *rest = rank([*(tmp_path / name for name in names), good])
    assert (first.path, first.error) == (good, None)
    errors = {each.path.name: each.error for each in rest}
    wanted = ["is silent.", "is only 0.50 s long.", "cannot be decoded", "does not exist."]
    assert all(part in str(errors[name]) for name, part in zip(names, wanted, strict=True))
    assert all(each.total == 0 for each in rest)
