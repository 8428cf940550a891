"""What each switch says that it does on a device."""

import pytest

from utils.core import wording
from utils.studio.training_checks import Result
from utils.ui.tabs.training.render import device_hint, device_line
from utils.ui.tabs.training.settings import SWITCHES


def device(kind: str, half: str = "no", *, rest: bool = False) -> Result:
    found = {"enable_mixed_precision": half, "enable_tf32": rest, "use_compile": rest, "optimizer": rest}
    return {"kind": kind, "name": "a GPU", "memory": 8 << 30, "found": found}


@pytest.mark.parametrize(
    ("field", "found", "said"),
    [
        ("enable_mixed_precision", device("cpu"), "no fast half precision"),
        ("enable_mixed_precision", device("cpu", "bf16"), "if a layer of the model is measured"),
        ("enable_mixed_precision", device("cuda", "fp16"), "FP16 with gradient scaling"),
        ("enable_mixed_precision", device("mps"), "has not been tested on it"),
        ("enable_sdpa", device("cuda"), "fused GPU kernels"),
        ("enable_sdpa", device("xpu"), "PyTorch chooses the kernel"),
        ("enable_tf32", device("cuda", rest=True), "used for matrix products"),
        ("enable_tf32", device("xpu"), "no effect"),
        ("deterministic", device("cpu"), "always the same"),
        ("deterministic", device("mps"), "Only NVIDIA and AMD GPUs"),
        ("optimizer", device("mps", rest=True), "needs an NVIDIA GPU"),
        ("optimizer", device("cuda"), "pip install bitsandbytes"),
        ("optimizer", device("cuda", rest=True), "all three"),
        ("offload_optimizer", device("mps"), "already in RAM"),
        ("offload_optimizer", device("xpu"), "move to RAM"),
        ("enable_byte_dropout", device("mps"), "for CPUs"),
        ("use_compile", device("xpu"), "No C++ compiler"),
        ("enable_grad_checkpoint", device("mps"), "computed twice"),
    ],
)  # fmt: skip
def test_a_switch_says_what_it_does_there(field: str, found: Result, said: str) -> None:
    assert said in wording.text(device_hint(field, found))


def test_a_switch_that_works_everywhere_says_nothing() -> None:
    assert {device_hint(field, device("mps")) for field in SWITCHES if field.startswith("enable_fused")} == {""}


@pytest.mark.parametrize(("kind", "is_told"), [("cuda", False), ("mps", True), ("xpu", True), ("cpu", False)])
def test_a_gpu_on_which_nothing_has_run_is_told_before_the_start(kind: str, is_told: bool) -> None:
    assert ("never run on such a GPU" in device_line(device(kind))) == is_told
