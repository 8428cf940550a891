"""The codec of a run: what it loses is reported, and another one is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.training.running import events, resume, trained
from tests.training.trainable import write_dataset
from utils.config import TrainConfig
from utils.core.paths import SAMPLE_SPEECH, TINY_MODEL
from utils.media import audio
from utils.media.rates import RATE
from utils.training.errors import TrainingError
from utils.training.facts import CodecFitsBadly
from utils.training.preparation import CODEC_FILE
from utils.xtts.codec import AudioEncoder

pytestmark = pytest.mark.slow


def test_a_codec_loses_more_of_noise_than_of_speech() -> None:
    encoder, speech = AudioEncoder.load(TINY_MODEL), audio.load(SAMPLE_SPEECH, RATE, end=4.0)
    noisy = speech + 0.05 * np.random.default_rng(0).standard_normal(speech.size).astype(np.float32)
    assert 2 * encoder.error_db(speech) < encoder.error_db(noisy)


def test_a_run_keeps_its_codec(tmp_path: Path) -> None:
    noisy, random = write_dataset(tmp_path / "dataset", train=4, held_back=1), np.random.default_rng(0)
    for path in (noisy / "wavs").glob("*.wav"):
        noise = 0.1 * random.standard_normal(audio.load(path, RATE).size)
        audio.save(path, noise.astype(np.float32), RATE)
    run = trained(tmp_path, noisy, custom_model="", version="tiny", max_steps=1)
    (event,) = events(run, "codec")
    assert 0 < float(str(event["codes_used"])) < 1
    assert events(run, CodecFitsBadly.kind)
    config = TrainConfig.load(run.config).model_copy(update={"max_steps": 2})
    resume(run, config)
    assert len(events(run, "codec")) == 1
    (run.folder / CODEC_FILE).write_text(json.dumps({"codec": "another"}))
    with pytest.raises(TrainingError, match="codec"):
        resume(run, config)
