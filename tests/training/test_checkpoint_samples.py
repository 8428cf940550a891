"""Samples are what inference says with the checkpoint, and training goes on as if nothing had been spoken."""

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import soundfile
import torch

from tests.training.running import events, figures, same, trained, weights
from utils import gpt_train
from utils.config import SpeechConfig
from utils.core.errors import RunError
from utils.media.encoding import to_pcm16
from utils.studio.loading import chosen_checkpoint, chosen_voice
from utils.training.facts import SamplesFailed
from utils.xtts import checkpoints
from utils.xtts.checkpoints import checkpoint_folder
from utils.xtts.export import promote
from utils.xtts.model import gpt_state

pytestmark = pytest.mark.slow
TEXT = "ሰላም ለዓለም።"
QUICK = {"max_steps": 2, "eval_step": 1, "seed": 3}


@pytest.mark.parametrize(
    "switches", [pytest.param({}, marks=pytest.mark.long), {"enable_ema": True, "enable_lora": True}], ids=" ".join
)
def test_samples_are_what_inference_says_with_the_checkpoint(
    dataset: Path, tmp_path: Path, switches: dict[str, bool]
) -> None:
    options = QUICK | switches
    spoken = trained(tmp_path / "a" / "project", dataset, sample_texts=TEXT, **options)
    silent = trained(tmp_path / "b" / "project", dataset, **options)
    assert figures(spoken, "loss") == figures(silent, "loss")
    assert same(weights(spoken), weights(silent))

    samples = events(spoken, "sample")
    assert [(event["step"], event["text"]) for event in samples] == [(1, TEXT), (2, TEXT)]
    folder = checkpoint_folder(spoken.folder, 2)
    model = chosen_voice(SpeechConfig(model=str(folder), device="cpu", precision="fp32"), tmp_path)
    speech = model.speak(TEXT, SpeechConfig(seed=3, tries=1))  # the default voice of the checkpoint
    sample, rate = soundfile.read(str(samples[1]["file"]), dtype="int16")
    assert rate == 24_000
    assert np.array_equal(sample, np.frombuffer(to_pcm16(speech.samples), "<i2"))


def test_only_a_sentence_that_cannot_be_spoken_is_skipped(dataset: Path, tmp_path: Path) -> None:
    run = trained(tmp_path / "project", dataset, sample_texts="สวัสดี|ሰላም", max_steps=1, save_step=1)
    assert [event["text"] for event in events(run, SamplesFailed.kind)] == ["สวัสดี"]
    assert [event["text"] for event in events(run, "sample")] == ["ሰላም"]


def test_a_processor_speaks_samples_in_fp32(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Mock(wraps=chosen_checkpoint)
    monkeypatch.setattr(gpt_train, "chosen_checkpoint", opened)
    trained(tmp_path / "project", dataset, sample_texts=TEXT, max_steps=1, save_step=1)
    assert [call.args[1:3] for call in opened.call_args_list] == [("cpu", "fp32")]


def test_the_best_checkpoint_wins(tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = iter([0.3, 0.9, 0.4])
    monkeypatch.setattr(gpt_train, "make_scorer", lambda *_: lambda *_: {"composite": next(planted)})
    values = {"max_steps": 3, "eval_step": 1, "score_sentences": 1, "save_n_checkpoints": 1}
    run = trained(tmp_path / "project", dataset, **values)
    losses = figures(run, "loss", "evaluation")
    assert min(losses) == losses[-1]
    assert checkpoints.best_step(run.folder) == 2
    assert [one.step for one in checkpoints.list_checkpoints(run.folder)] == [3, 2]
    assert checkpoints.find(run.folder, "best").scores == {"composite": 0.9}


@pytest.mark.long
def test_a_run_scores_what_it_speaks_with_the_embedded_recogniser(tmp_path: Path, dataset: Path) -> None:
    run = trained(tmp_path / "project", dataset, max_steps=1, eval_step=1, score_sentences=2)
    (scores,) = events(run, "scores")
    assert {"endings", "duration", "intelligibility", "composite"} <= scores.keys()


def test_the_weights_without_the_average_can_be_promoted_too(tmp_path: Path, dataset: Path) -> None:
    run = trained(tmp_path, dataset, enable_ema=True, max_steps=3, save_step=3)
    found = checkpoints.find(run.folder, "newest")
    folders = [promote(found, tmp_path / str(raw), tmp_path, without_ema=raw) for raw in (False, True)]
    averaged, raw = (gpt_state(folder)["mel_head.weight"] for folder in folders)
    trained_last = weights(run)["mel_head.weight"]
    assert torch.equal(raw, trained_last.half().float())
    assert not torch.allclose(averaged, trained_last, atol=1e-4)
    (found.folder / checkpoints.WITHOUT_EMA).unlink()
    with pytest.raises(RunError, match="without_ema"):
        promote(found, tmp_path / "again", tmp_path, without_ema=True)
