"""`python -m utils memory-plan` and `memory-test`, as a person types them."""

import subprocess
import sys
from pathlib import Path

import pytest

from utils.__main__ import main
from utils.config import TrainConfig
from utils.core.paths import ROOT
from utils.studio.paths import CONFIGS
from utils.training import memory
from utils.training.memory import Device

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]
TINY = ["--version", "tiny", "--max-audio-length", "1", "--max-text-length", "10", "--batch-size", "2"]


def test_a_plan_needs_neither_weights_nor_a_gpu(tmp_path: Path, capsys: Capture) -> None:
    path, original = tmp_path / "tuned.yaml", CONFIGS / "standard.yaml"
    words = ["memory-plan", "--config", str(original), "--memory-gb", "16", "--output", str(path)]
    assert main([*words, "--no-enable-grad-checkpoint", "--no-enable-fused-gelu"]) == 0
    text = capsys.readouterr().out
    for word in ("weights", "gradients", "optimizer", "activations", "peak", "estimated", "= 16 per step"):
        assert word in text
    assert "MemoryPart" not in text  # the id of a phrase without a text
    assert path.read_text(encoding="utf-8").startswith(f"# python -m utils train --config {path}\n")
    tuned = TrainConfig.load(path)
    assert tuned.batch_size < 8
    changes = {"batch_size": tuned.batch_size, "grad_acumm": 16 // tuned.batch_size}
    changes |= {"enable_grad_checkpoint": False, "enable_fused_gelu": False}
    assert tuned == memory.changed(TrainConfig.load(original), changes)


def test_transformers_says_nothing_about_token_ids() -> None:
    words = [sys.executable, "-m", "utils", "memory-test", *TINY]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=280, check=True)
    assert "token_id" not in run.stdout + run.stderr


def test_the_largest_batch_is_found_with_real_updates(capsys: Capture) -> None:
    assert main(["memory-test", *TINY, "--no-enable-mixed-precision"]) == 0
    text = capsys.readouterr().out
    for word in ("enable_sdpa", "estimate", "seconds per batch", "measured peak", "fits into"):
        assert word in text
    assert main(["memory-test", *TINY, "--find", "--grad-acumm", "2"]) == 0
    assert "largest batch            4 clips" in capsys.readouterr().out


@pytest.mark.long
def test_a_test_that_would_exhaust_the_computer_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(Device, "detect", lambda *_: Device("cpu", 2**24, "a small computer", half=False))
    assert main(["memory-test", *TINY]) == 1
    output = capsys.readouterr()
    assert "PlanDoesNotFitError" in output.err
    assert "measured peak" not in output.out
