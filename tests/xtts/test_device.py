import pytest
import torch

from utils.xtts.device import choose_precision


@pytest.mark.parametrize(
    ("capability", "dtype", "word"),
    [
        ((6, 1), "no", "below 7.0"),
        ((7, 5), "fp16", "gradients are scaled"),  # T4
        ((8, 0), "bf16", "8.0 supports bf16"),
        ((12, 0), "bf16", "12.0"),
    ],
)
def test_a_gpu_uses_what_it_multiplies(capability: tuple[int, int], dtype: str, word: str) -> None:
    precision = choose_precision("cuda", capability=capability)
    assert (precision.dtype, precision.scaler) == (dtype, dtype == "fp16")
    assert word in precision.reason
    assert choose_precision("cuda", wanted=False, capability=capability).reason == "mixed precision is off"


@pytest.mark.parametrize(
    ("flags", "dtype", "word"),
    [({"avx512f"}, "no", "does not support bf16"), ({"amx_bf16", "avx512_bf16"}, "bf16", "amx_bf16")],
)
def test_a_cpu_uses_what_it_multiplies(flags: set[str], dtype: str, word: str) -> None:
    precision = choose_precision("cpu", processor=flags)
    assert precision.dtype == dtype
    assert word in precision.reason


def test_other_devices_are_refused_with_a_reason() -> None:
    precision = choose_precision("mps")
    assert (precision.dtype, precision.torch_dtype) == ("no", torch.float32)
    assert "mps" in precision.reason
