"""The products of each precision are near those of fp32, every row by itself; a cache takes what is written to it."""

import mmap
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from utils.speech.layers import KeyValueCache, can_pack, linear

NEAR = {"fp32": 1e-5, "bf16": 0.03, "int8": 0.03}
PRECISIONS = [name for name in NEAR if name != "bf16" or can_pack("bf16")]


@pytest.fixture(autouse=True, scope="module")
def without_gradients() -> Any:
    with torch.inference_mode():
        yield


def parts(outputs: int = 48, inputs: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return torch.randn(outputs, inputs, generator=random) / inputs**0.5, torch.randn(outputs, generator=random)


def rows(count: int, inputs: int = 64) -> torch.Tensor:
    return torch.randn(count, inputs, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("count", [1, 70])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_product_is_near_the_exact_one(precision: Any, count: int, gelu: bool) -> None:
    weight, bias = parts()
    wanted = functional.linear(rows(count), weight, bias)
    if gelu:
        wanted = functional.gelu(wanted, approximate="tanh")
    layer = linear(weight, bias, precision, gelu=gelu)
    weight.zero_()
    bias.zero_()
    product = layer(rows(count))
    assert product.dtype == torch.float32
    assert float((product - wanted).norm() / wanted.norm()) < NEAR[precision]


@pytest.mark.parametrize("scale", [0.0, 1e20])
def test_rows_of_any_size_stay_finite_in_int8(scale: float) -> None:
    assert linear(*parts(), "int8")(rows(3) * scale).isfinite().all()


def cache_with_a_row(columns: int) -> tuple[KeyValueCache, list[torch.Tensor]]:
    cache = KeyValueCache((4, 16, 64), torch.float32, torch.device("cpu"))
    cache.reserve(1, columns)
    layers = cache.add([columns], columns)
    for layer in layers:
        layer.normal_()
    return cache, [layer.clone() for layer in layers]


def test_a_row_is_the_same_after_the_cache_has_grown() -> None:
    cache, wanted = cache_with_a_row(columns=20)
    cache.reserve(8, 100)
    for layer, row in zip(cache.layers, wanted, strict=True):
        assert torch.equal(layer[:, :1, :, :20], row)
        assert not layer[:, 1:].any()


def test_a_cache_without_memory_raises_the_error_of_torch() -> None:
    cache, _ = cache_with_a_row(columns=20)
    with pytest.raises(RuntimeError, match="memory"):  # a training goes on after it
        cache.reserve(1, 2**40)


@pytest.mark.skipif(sys.platform != "linux", reason="no list of the pages in memory elsewhere")
def test_free_columns_take_no_memory() -> None:
    cache, _ = cache_with_a_row(columns=20)
    cache.reserve(8, 1000)  # 262 MB
    assert sum(map(resident_bytes, cache.layers)) < 50e6
    assert not any(layer[:, 1:].any() for layer in cache.layers)


def resident_bytes(layer: torch.Tensor) -> int:
    """Return how much of a tensor is in memory; what else the process holds comes and goes."""
    page = mmap.PAGESIZE
    first, last = layer.data_ptr() // page, (layer.data_ptr() + layer.nbytes - 1) // page
    with Path("/proc/self/pagemap").open("rb") as pages:
        pages.seek(first * 8)
        entries = np.fromfile(pages, np.uint64, last - first + 1)
    return int(np.count_nonzero(entries >> 62)) * page  # the two highest bits: in memory, or swapped
