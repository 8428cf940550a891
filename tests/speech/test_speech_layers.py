"""Every row is multiplied by itself, and int8 products are near the exact ones whatever the scales."""

from typing import Any

import pytest
import torch
from torch.nn import functional

from utils.speech.layers import PlainLinear, can_pack, linear

needs_bf16 = pytest.mark.skipif(not can_pack("bf16"), reason="this processor does not multiply bf16")


def parts(outputs: int = 48, inputs: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return torch.randn(outputs, inputs, generator=random) / inputs**0.5, torch.randn(outputs, generator=random)


def rows(count: int, inputs: int = 64) -> torch.Tensor:
    return torch.randn(count, inputs, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("precision", ["int8", pytest.param("bf16", marks=needs_bf16)])
def test_a_loud_neighbor_changes_nothing(precision: Any) -> None:
    product = linear(*parts(), precision)
    quiet, loud = rows(2), rows(2) * torch.tensor([[1.0], [1e4]])
    torch.testing.assert_close(product(quiet)[0], product(loud)[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(product(quiet)[0], product(quiet[:1])[0], atol=1e-6, rtol=0)


def test_rows_of_any_size_stay_finite_in_int8() -> None:
    scales = torch.tensor([[0.0], [1.0], [1e20]])
    assert linear(*parts(), "int8")(rows(3) * scales).isfinite().all()


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
