"""The voice that comes with the program, measured again, with thresholds a little below what its page says."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from tests.xtts.exporting import plain_model
from tools.tiny_voice import checks
from tools.tiny_voice.progress import Progress
from utils.cli import demo
from utils.core.paths import TINY_MODEL
from utils.studio.training_checks import EMBEDDED
from utils.xtts.model import read_state_dict

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not here"),
]
QUIET = Progress("measures", lambda _: None)
MAX_BYTES = 40_000_000


def test_it_is_small_and_says_what_it_is() -> None:
    assert sum(path.stat().st_size for path in TINY_MODEL.iterdir()) <= MAX_BYTES
    about = json.loads((TINY_MODEL / "about.json").read_text(encoding="utf-8"))
    assert "not XTTS v2" in about["about"]
    assert about["licence"] == "Apache-2.0"
    assert "espeak-ng" in (TINY_MODEL / "LICENCE.txt").read_text(encoding="utf-8")
    weights = read_state_dict(TINY_MODEL / "model.pth")
    assert sum(weight.numel() for name, weight in weights.items() if name.startswith("gpt.")) == EMBEDDED


def test_sentences_that_it_never_learnt_are_spoken() -> None:
    measured = checks.measure(TINY_MODEL, checks.Checks(retrieved=50, spoken=50, voices=2), QUIET)
    assert min(measured["retrieved"], measured["as_long"]) >= 0.86
    assert (measured["endless"], measured["empty"]) == (0, 0)


@pytest.mark.long
def test_a_fine_tuning_brings_the_voice_nearer(tmp_path: Path) -> None:
    project = demo.new_project(tmp_path)
    assert demo.prepare_and_train(project, demo.settings(demo.PRESET, project))
    tuned = checks.compare_fine_tuned(TINY_MODEL, project.ready, demo.reference_clip(project), 40, QUIET)
    assert tuned["retrieved"] >= 0.8
    assert tuned["voice_after"] < min(0.45, 0.9 * tuned["voice_before"])


def test_plain_coqui_speaks_with_every_stored_voice() -> None:
    model = plain_model(TINY_MODEL)
    for speaker, voice in model.speaker_manager.speakers.items():
        assert len(model.inference("selam", "en", **voice, max_new_tokens=8)["wav"])
        torch.manual_seed(0)
        sound = model.synthesize("selam", speaker=speaker, language="en", max_new_tokens=40)["wav"]
        assert np.isfinite(sound).all()
        assert len(sound) > 4_000


@pytest.mark.long
def test_the_command_of_coqui_speaks_with_a_stored_voice(tmp_path: Path) -> None:
    program, config, sound = Path(sys.executable).parent / "tts", TINY_MODEL / "config.json", tmp_path / "selam.wav"
    voice = ("--speaker_idx", "Genet", "--language_idx", "en")
    model = ("--model_path", str(TINY_MODEL), "--config_path", str(config))
    subprocess.run([program, "--text", "selam", *voice, *model, "--out_path", str(sound)], check=True)
    assert soundfile.info(sound).duration > 0.2
