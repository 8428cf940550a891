"""The products of each precision are near those of fp32, and every row is multiplied by itself."""

from typing import Any

import pytest
import torch
from torch.nn import functional

from utils.speech.layers import PlainLinear, can_pack, linear

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
def test_the_product_is_near_the_exact_one_and_the_weights_are_copied(precision: Any, count: int, gelu: bool) -> None:
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


@pytest.mark.parametrize("precision", [name for name in PRECISIONS if name != "fp32"])
def test_a_loud_neighbor_changes_nothing(precision: Any) -> None:
    product = linear(*parts(), precision)
    quiet, loud = rows(2), rows(2) * torch.tensor([[1.0], [1e4]])
    torch.testing.assert_close(product(quiet)[0], product(loud)[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(product(quiet)[0], product(quiet[:1])[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("scale", [0.0, 1e20])
def test_rows_of_any_size_stay_finite_in_int8(scale: float) -> None:
    assert linear(*parts(), "int8")(rows(3) * scale).isfinite().all()


def test_rows_behind_the_activation_are_finer_in_int8() -> None:
    weight, bias = parts(inputs=512)
    given = functional.gelu(rows(40, 512), approximate="tanh")
    wanted = functional.linear(given, weight, bias)
    plain, finer = (linear(weight, bias, "int8", after_gelu=known)(given) - wanted for known in (False, True))
    assert finer.norm() < 0.9 * plain.norm()


def test_each_output_has_its_own_scale_in_int8() -> None:
    weight, bias = parts()
    weight *= torch.logspace(-3, 3, len(weight))[:, None]
    product = linear(weight, bias, "int8")(rows(8)) - bias
    wanted = functional.linear(rows(8), weight)
    assert ((product - wanted).norm(dim=0) / wanted.norm(dim=0)).max() < 0.05


def test_where_weights_cannot_be_reordered_the_product_is_torchs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("utils.speech.layers.can_pack", lambda _: False)
    product = linear(*parts(), "fp32")
    assert isinstance(product, PlainLinear)
    torch.testing.assert_close(product(rows(2)), functional.linear(rows(2), *parts()))
