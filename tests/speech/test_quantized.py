"""The products of each precision are near those of fp32, and every row is multiplied by itself."""

from typing import Any

import pytest
import torch
from torch.nn import functional

from utils.speech.layers import PlainLinear, can_pack, linear

NEAR = {"fp32": 1e-5, "bf16": 0.03, "int8": 0.03}


def parts(outputs: int = 48, inputs: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return torch.randn(outputs, inputs, generator=random) / inputs**0.5, torch.randn(outputs, generator=random)


def rows(count: int, inputs: int = 64) -> torch.Tensor:
    return torch.randn(count, inputs, generator=torch.Generator().manual_seed(1))


def skip_without(precision: str) -> None:
    if precision == "bf16" and not can_pack("bf16"):
        pytest.skip("this processor does not multiply bf16")


@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("count", [1, 5, 70])
@pytest.mark.parametrize("precision", NEAR)
def test_the_product_is_near_the_exact_one(precision: Any, count: int, gelu: bool) -> None:
    skip_without(precision)
    weight, bias = parts()
    wanted = functional.linear(rows(count), weight, bias)
    if gelu:
        wanted = functional.gelu(wanted, approximate="tanh")
    with torch.inference_mode():
        found = linear(weight, bias, precision, gelu=gelu)(rows(count))
    assert found.dtype == torch.float32
    assert float((found - wanted).norm() / wanted.norm()) < NEAR[precision]


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_a_loud_neighbour_changes_nothing(precision: Any) -> None:
    skip_without(precision)
    with torch.inference_mode():
        product = linear(*parts(), precision)
        quiet, loud = rows(2), rows(2) * torch.tensor([[1.0], [1e4]])
        torch.testing.assert_close(product(quiet)[0], product(loud)[0], atol=1e-6, rtol=0)
        torch.testing.assert_close(product(quiet)[0], product(quiet[:1])[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("scale", [0.0, 1e-20, 1e20])
def test_rows_of_any_size_stay_finite_in_int8(scale: float) -> None:
    with torch.inference_mode():
        assert linear(*parts(), "int8")(rows(3) * scale).isfinite().all()


def errors(scale: float) -> list[torch.Tensor]:
    """Return how far rows behind the activation are off, without and with knowing where they come from."""
    weight, bias = parts(inputs=512)
    given = functional.gelu(rows(40, 512) * scale, approximate="tanh")
    with torch.inference_mode():
        found = [linear(weight, bias, "int8", after_gelu=behind)(given) for behind in (False, True)]
    return [one - functional.linear(given, weight, bias) for one in found]


@pytest.mark.parametrize("scale", [1.0, 3.0, 30.0])
def test_rows_behind_the_activation_are_finer_in_int8(scale: float) -> None:
    plain, finer = errors(scale)
    assert finer.norm() < 0.9 * plain.norm()


def test_each_output_has_its_own_scale_in_int8() -> None:
    weight, bias = parts()
    weight *= torch.logspace(-3, 3, len(weight))[:, None]
    with torch.inference_mode():
        found = linear(weight, bias, "int8")(rows(8)) - bias
    wanted = functional.linear(rows(8), weight)
    assert ((found - wanted).norm(dim=0) / wanted.norm(dim=0)).max() < 0.05


@pytest.mark.parametrize("precision", NEAR)
def test_a_product_does_not_look_at_the_source_again(precision: Any) -> None:
    skip_without(precision)
    weight, bias = parts()
    with torch.inference_mode():
        product = linear(weight, bias, precision)
        before = product(rows(1))
        weight.zero_()
        bias.zero_()
        assert torch.equal(product(rows(1)), before)


def test_where_weights_cannot_be_reordered_the_product_is_torchs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("utils.speech.layers.can_pack", lambda _: False)
    product = linear(*parts(), "fp32")
    assert isinstance(product, PlainLinear)
    torch.testing.assert_close(product(rows(2)), functional.linear(rows(2), *parts()))
