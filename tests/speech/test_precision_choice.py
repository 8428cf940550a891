"""The precision of speech is measured once, remembered, and never one that the device cannot do well."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from tests.fake_gpus import FakeGpu
from utils.core.errors import SpeedupError
from utils.speech import precision
from utils.speech.precision import Measurement, choose, measurement, require

FAST = Measurement({"fp32": 0.3, "bf16": 0.2, "int8": 0.1}, {"fp32": 0.2, "bf16": 0.1}, "2026-11-21")
PLAIN = Measurement({"fp32": 0.3, "int8": 0.28}, {"fp32": 0.2}, "2026-11-21")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "precision.json"


@pytest.mark.parametrize(
    ("measured", "wanted", "gpt", "vocoder"),
    [
        (FAST, "auto", "int8", "bf16"),
        (PLAIN, "auto", "fp32", "fp32"),  # a precision that is hardly faster is not worth it
        (PLAIN, "int8", "int8", "fp32"),
        (FAST, "fp32", "fp32", "fp32"),
    ],
)
def test_a_clearly_faster_precision_is_chosen(
    measured: Measurement, wanted: str, gpt: str, vocoder: str, path: Path
) -> None:
    path.write_text(json.dumps({precision.machine(): {**vars(measured), "times": 1}}))  # as earlier versions wrote it
    choice = choose("cpu", wanted, path)
    assert (choice.device, choice.gpt, choice.vocoder) == ("cpu", gpt, vocoder)


def test_what_is_fast_on_the_processor_is_not_chosen_for_mps_or_a_small_model(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeGpu(monkeypatch, "mps")
    path.write_text(json.dumps({precision.machine(): vars(FAST)}))
    assert choose("mps", "auto", path).gpt_reason.why == "untested"
    choice = choose("cpu", "auto", path)
    small, large = (torch.nn.Linear(1024, width, device="meta") for width in (1024, 1 << 15))
    assert (choice.for_model(small).gpt, choice.for_model(small).vocoder) == ("fp32", "fp32")
    assert choice.for_model(large) is choice


@pytest.mark.parametrize(
    "damage", ["", "[1]", '{"%s": 3}', '{"%s": {"gpt": {"fp32": "x"}, "vocoder": {"fp32": 1}, "date": ""}}']
)
def test_without_a_usable_measurement_a_machine_is_measured_once(damage: str, path: Path) -> None:
    measure = Mock(return_value=FAST)
    path.write_text(damage.replace("%s", precision.machine()))
    assert [measurement(path, precision.machine(), measure) for _ in range(2)] == [FAST, FAST]
    assert measure.call_count == 1


@pytest.mark.parametrize(
    ("part", "name", "device", "capability", "hint"),
    [
        ("gpt", "fp16", "cpu", None, "bf16 or fp32"),
        ("gpt", "int8", "cuda", (8, 0), "fp16"),
        ("gpt", "int8", "mps", None, "fp16"),
        ("vocoder", "bf16", "cuda", (6, 1), "fp32"),
    ],
)
def test_a_precision_that_the_device_lacks_is_refused(
    part: Any, name: str, device: str, capability: Any, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
    with pytest.raises(SpeedupError) as caught:
        require(part, name, device)
    assert hint in caught.value.hint


@pytest.mark.parametrize(("capability", "name"), [((8, 0), "bf16"), ((7, 5), "fp16"), ((6, 1), "fp32")])
def test_a_gpu_is_judged_by_its_capability(capability: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
    choice = choose("auto")
    assert (choice.device, choice.gpt, choice.vocoder) == ("cuda", name, name)


def test_bf16_is_neither_measured_nor_allowed_on_a_processor_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "processor_flags", lambda: frozenset({"fma", "avx2"}))
    monkeypatch.setattr(precision, "WIDTH", 16)
    measured = precision.measure()
    assert set(measured.vocoder) == {"fp32"}
    assert set(measured.gpt) <= {"fp32", "int8"}
    with pytest.raises(SpeedupError, match="bf16"):
        require("gpt", "bf16", "cpu")
