from types import SimpleNamespace

import psutil
import pytest
import torch

from utils.xtts import device
from utils.xtts.device import choose_precision, free_and_total
from utils.xtts.facts import PrecisionReason


@pytest.mark.parametrize(("capability", "dtype"), [((6, 1), "no"), ((7, 5), "fp16"), ((8, 0), "bf16")])
def test_a_gpu_uses_the_type_that_it_multiplies(
    capability: tuple[int, int], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
    assert choose_precision("cuda").dtype == dtype
    assert choose_precision("cuda", wanted=False).reason.why == "off"


@pytest.mark.parametrize(("flags", "dtype"), [({"avx512f"}, "no"), ({"amx_bf16", "avx512_bf16"}, "bf16")])
def test_a_cpu_uses_bf16_only_where_it_multiplies_it(
    flags: set[str], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "processor_flags", lambda: flags)
    assert choose_precision("cpu").dtype == dtype


def test_other_devices_stay_in_full_precision() -> None:
    precision = choose_precision("mps")
    assert (precision.dtype, precision.torch_dtype) == ("no", torch.float32)
    assert precision.reason == PrecisionReason("untested", "mps")


def test_an_apple_gpu_uses_two_thirds_of_the_ram(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=11, total=12))
    assert free_and_total(torch.device("mps")) == (8, 8)
    assert free_and_total(torch.device("cpu")) == (11, 12)
