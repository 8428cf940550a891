from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.dataset.recordings import babble, recording
from utils.media.audio import Samples
from utils.speech import reference_choice
from utils.speech.reference_choice import pitches, rank, score

RATE = 16_000


def talk(
    seconds: float = 9.0,
    *,
    noise_db: float = -70.0,
    pause: float = 0.2,
    gain: float = 1.0,
    melody: float = 3.0,
    phrase: float = 1.5,
) -> Samples:
    """Let a made-up voice talk; each argument changes one property and leaves the others."""
    said = sung(phrase, melody)
    sound = recording(seconds, noise_db=noise_db, pauses=(pause, pause + 0.05), speech=[said]).samples
    return np.asarray(np.clip(sound * gain, -1, 1), np.float32)


def sung(seconds: float, melody: float) -> Samples:
    """Bend one phrase up and down by as many semitones as wanted: what is read faster sounds higher."""
    flat = babble(seconds, seed=3)
    speed = 2 ** (melody * np.sin(np.linspace(0, 4 * np.pi, flat.size)) / 12)
    places = np.cumsum(speed) / np.sum(speed) * (flat.size - 1)
    return np.asarray(np.interp(places, np.arange(flat.size), flat), np.float32)


def clip(folder: Path, name: str, **properties: Any) -> Path:
    soundfile.write(folder / name, talk(**properties), RATE)
    return folder / name


@pytest.mark.parametrize(
    ("worse", "reason"),
    [
        ({"noise_db": -38.0}, "some noise ("),
        pytest.param({"noise_db": -28.0}, "noisy (", marks=pytest.mark.slow),
        ({"seconds": 3.0}, "only 3.0 s"),
        ({"gain": 6.0}, "clipped ("),
        ({"pause": 4.0}, "% silence"),
    ],
)
def test_of_two_clips_the_one_with_the_better_property_comes_first(
    tmp_path: Path, worse: dict[str, float], reason: str
) -> None:
    paths = [clip(tmp_path, "worse.wav", **worse), clip(tmp_path, "better.wav")]
    better, other = rank(paths)
    assert (better.path.name, other.path.name) == ("better.wav", "worse.wav")
    assert better.total > other.total
    assert reason in other.sentence
    assert reason not in better.sentence


def test_a_lively_melody_is_better_than_a_flat_one(tmp_path: Path) -> None:
    lively, flat = rank([clip(tmp_path, "flat.wav", melody=0.0), clip(tmp_path, "lively.wav", melody=5.0)])
    assert lively.path.name == "lively.wav"
    assert lively.total > flat.total
    assert lively.sentence.startswith("9.0 s, clean (")
    assert lively.sentence.endswith("dB), lively pitch")


def test_only_what_a_model_hears_is_judged(tmp_path: Path) -> None:
    sound = np.concatenate([talk(30.0), np.random.default_rng(0).uniform(-1, 1, 10 * RATE).astype(np.float32)])
    soundfile.write(tmp_path / "long.wav", sound, RATE)
    assert score(tmp_path / "long.wav").sentence.startswith("40.0 s (the first 30 are used), clean (")


def test_what_cannot_be_used_comes_last_with_its_reason(tmp_path: Path) -> None:
    good = clip(tmp_path, "good.wav")
    soundfile.write(tmp_path / "silent.wav", np.zeros(3 * RATE), RATE)
    soundfile.write(tmp_path / "short.wav", talk(3.0)[: RATE // 2], RATE)
    (tmp_path / "text.mp3").write_text("no sound")
    names = ["silent.wav", "short.wav", "text.mp3", "absent.wav"]
    first, *rest = rank([*(tmp_path / name for name in names), good])
    assert (first.path, first.fault) == (good, "")
    faults = {each.path.name: each.fault for each in rest}
    wanted = ["is silent.", "is only 0.50 s long.", "cannot be decoded", "does not exist."]
    assert all(part in faults[name] for name, part in zip(names, wanted, strict=True))
    assert all(each.total == 0 and each.sentence == each.fault for each in rest)


def test_noise_without_a_voice_is_worse_than_any_voice(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).standard_normal(9 * RATE) * 0.1
    soundfile.write(tmp_path / "noise.wav", noise, RATE)
    voice, other = rank([tmp_path / "noise.wav", clip(tmp_path, "voice.wav", noise_db=-28.0, seconds=3.0)])
    assert voice.path.name == "voice.wav"
    assert "no pitch found" in other.sentence


def test_without_the_detector_loudness_tells_speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_choice, "_has_detector", lambda: False)
    assert "clean" in score(clip(tmp_path, "voice.wav")).sentence


@pytest.mark.parametrize("hertz", [70, 210, 420])
def test_the_pitch_of_a_tone_with_overtones_is_found(hertz: int) -> None:
    time = np.arange(reference_choice.PITCH_RATE) / reference_choice.PITCH_RATE
    tone = sum(np.sin(2 * np.pi * hertz * number * time) / number for number in range(1, 4)) * 0.2
    pitch = pitches(np.asarray(tone, np.float32), reference_choice.PITCH_RATE)
    assert pitch.size > 50
    assert pitch == pytest.approx(hertz, rel=0.01)


def test_noise_and_silence_have_no_pitch() -> None:
    noise = np.random.default_rng(0).standard_normal(reference_choice.PITCH_RATE).astype(np.float32)
    for sound in (noise, np.zeros_like(noise), noise[:100]):
        assert pitches(sound, reference_choice.PITCH_RATE).size == 0
