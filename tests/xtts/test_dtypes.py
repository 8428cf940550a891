"""Tests of the choice of a number format."""

import pytest
import torch

from utils.xtts.device import choose_precision


@pytest.mark.parametrize(
    ("capability", "dtype", "scaler", "word"),
    [
        ((6, 1), "no", False, "below 7.0"),
        ((7, 0), "fp16", True, "gradients are scaled"),
        ((7, 5), "fp16", True, "7.5 supports fp16"),  # T4
        ((8, 0), "bf16", False, "8.0 supports bf16"),
        ((8, 6), "bf16", False, "8.6"),
        ((9, 0), "bf16", False, "9.0"),
        ((12, 0), "bf16", False, "12.0"),
    ],
)
def test_a_gpu_uses_what_it_multiplies(capability: tuple[int, int], dtype: str, scaler: bool, word: str) -> None:
    found = choose_precision("cuda", capability=capability)
    assert (found.dtype, found.scaler) == (dtype, scaler)
    assert word in found.reason


@pytest.mark.parametrize(
    ("flags", "dtype", "word"),
    [
        ({"avx2", "avx512f"}, "no", "does not support bf16"),
        (set(), "no", "does not support bf16"),
        ({"avx512f", "avx512_bf16"}, "bf16", "avx512_bf16"),
        ({"amx_bf16", "avx512_bf16"}, "bf16", "amx_bf16"),
    ],
)
def test_a_cpu_uses_what_it_multiplies(flags: set[str], dtype: str, word: str) -> None:
    found = choose_precision("cpu", processor=flags)
    assert (found.dtype, found.scaler) == (dtype, False)
    assert word in found.reason


@pytest.mark.parametrize("device", ["mps", "xpu"])
def test_other_devices_are_refused_with_a_reason(device: str) -> None:
    found = choose_precision(device)
    assert (found.dtype, found.torch_dtype) == ("no", torch.float32)
    assert device in found.reason


def test_who_does_not_want_it_does_not_get_it() -> None:
    found = choose_precision("cuda", wanted=False, capability=(9, 0))
    assert (found.dtype, found.reason) == ("no", "mixed precision is off")
