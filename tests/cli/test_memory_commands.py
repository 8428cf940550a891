"""The two commands about memory, as a person calls them."""

from pathlib import Path

import pytest

from utils.__main__ import main
from utils.config import TrainConfig
from utils.core.paths import CONFIGS
from utils.training import memory
from utils.training.memory import Device

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]


def test_a_plan_needs_neither_weights_nor_a_gpu(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "tuned.yaml"
    words = ["memory-plan", "--config", str(CONFIGS / "amharic.yaml"), "--memory-gb", "16", "--output", str(target)]
    assert main([*words, "--no-enable-grad-checkpoint", "--no-enable-fused-gelu"]) == 0
    shown = capsys.readouterr().out
    for word in ("weights", "gradients", "optimizer", "activations", "peak", "estimated", "= 16 per step"):
        assert word in shown
    assert target.read_text(encoding="utf-8").startswith(f"# python -m utils train --config {target}\n")
    tuned = TrainConfig.load(target)
    assert tuned.batch_size * tuned.grad_acumm == 16
    assert tuned.batch_size < 8
    assert tuned == memory.changed(
        TrainConfig.load(CONFIGS / "amharic.yaml"),
        {
            "batch_size": tuned.batch_size,
            "grad_acumm": tuned.grad_acumm,
            "enable_grad_checkpoint": False,
            "enable_fused_gelu": False,
        },
    )


def test_where_nothing_fits_nothing_is_written(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "tuned.yaml"
    assert main(["memory-plan", "--version", "tiny-random", "--memory-gb", "0.5", "--output", str(target)]) == 1
    shown = capsys.readouterr()
    assert "peak" in shown.out
    assert "enable_grad_checkpoint" in shown.err
    assert not target.exists()


def test_a_plan_for_this_computer_names_its_device(capsys: Capture) -> None:
    assert main(["memory-plan", "--version", "tiny-random", "--batch-size", "2", "--grad-acumm", "1"]) == 0
    assert "device" in capsys.readouterr().out


TINY = ["--version", "tiny-random", "--max-audio-length", "1", "--max-text-length", "10", "--batch-size", "2"]


def test_a_test_measures_a_real_update(capsys: Capture) -> None:
    assert main(["memory-test", *TINY, "--no-enable-mixed-precision"]) == 0
    shown = capsys.readouterr().out
    for word in ("enable_sdpa", "estimate", "seconds per batch", "measured peak", "fits into"):
        assert word in shown


def test_a_test_can_find_the_largest_batch(capsys: Capture) -> None:
    assert main(["memory-test", *TINY, "--find", "--grad-acumm", "2"]) == 0
    assert "largest batch            4 clips" in capsys.readouterr().out


def test_a_test_that_would_take_the_whole_computer_down_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    small = Device("cpu", 2**24, "a small computer", half=False)
    monkeypatch.setattr(Device, "detect", lambda *_: small)
    assert main(["memory-test", *TINY]) == 1
    shown = capsys.readouterr()
    assert "NotEnoughMemoryError" in shown.err
    assert "measured peak" not in shown.out
