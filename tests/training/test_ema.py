"""The running average of the weights."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from tests.training.running import same
from tests.training.small_gpt import small_gpt
from tests.training.speedups.lessons import weights
from utils.training.ema import Ema
from utils.training.errors import SettingRefusedError


class One(nn.Module):
    """A model of one number, and one that is not trained."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.tensor([value]))
        self.frozen = nn.Parameter(torch.tensor([7.0]), requires_grad=False)


def average_of_zeros(ema: Ema, model: One, updates: int) -> float:
    with torch.no_grad():
        model.value.zero_()
    for _ in range(updates):
        ema.update()
    return float(ema.shadow["value"])


def test_the_average_has_its_closed_form() -> None:
    model = One(1.0)
    expected = math.prod(min(0.5, (1 + update) / (10 + update)) for update in range(12))
    assert average_of_zeros(Ema(model, 0.5), model, 12) == pytest.approx(expected, rel=1e-5)


@pytest.fixture
def gpt() -> Any:
    gpt = small_gpt()
    gpt.mel_head.requires_grad_(False)
    return gpt


@pytest.fixture
def ema(gpt: Any) -> Ema:
    """The average of a model that has moved."""
    ema = Ema(gpt, 0.99)
    torch.manual_seed(1)
    for _ in range(2):
        with torch.no_grad():
            for weight in ema.weights.values():
                weight.add_(torch.randn_like(weight), alpha=0.1)
        ema.update()
    return ema


def test_the_model_has_the_average_only_for_a_while(gpt: Any, ema: Ema) -> None:
    raw, averages = weights(gpt), {name: part.clone() for name, part in ema.shadow.items()}
    address = gpt.text_head.weight.data_ptr()
    with ema.swapped():
        assert same({name: gpt.get_parameter(name).detach() for name in averages}, averages)
        assert torch.equal(gpt.mel_head.weight, raw["mel_head.weight"])
        assert gpt.text_head.weight.data_ptr() == address
    with pytest.raises(KeyError), ema.swapped():
        raise KeyError
    assert same(weights(gpt), raw)
    assert same(ema.shadow, averages)
    ema.update()


def test_a_model_whose_average_would_not_change_is_refused() -> None:
    with pytest.raises(SettingRefusedError, match="enable_ema"):
        Ema(One().to(torch.bfloat16), 0.999)
    with pytest.raises(SettingRefusedError, match="no weight is trained"):
        Ema(One().requires_grad_(False), 0.999)
