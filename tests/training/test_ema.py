"""Tests of the running average of the weights."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.training.small_gpt import small_gpt
from utils.core.errors import ConfigError
from utils.training.ema import Ema


class One(nn.Module):
    """A model of one number, and one that is not trained."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.tensor([value]))
        self.frozen = nn.Parameter(torch.tensor([7.0]), requires_grad=False)


def follow(ema: Ema, model: One, values: list[float]) -> float:
    """Let the weight take some values, one after another; return the average."""
    for value in values:
        with torch.no_grad():
            model.value.fill_(value)
        ema.update()
    return float(ema.shadow["value"])


@pytest.mark.parametrize("device", ["auto", "cpu"])
@pytest.mark.parametrize("updates", [1, 3, 50])
def test_a_fixed_share_has_its_closed_form(device: Any, updates: int) -> None:
    model = One(1.0)
    average = follow(Ema(model, 0.9, device, ramp=False), model, [0.0] * updates)
    assert average == pytest.approx(0.9**updates, rel=1e-5)


def test_the_share_rises_to_the_decay() -> None:
    model = One(1.0)
    ema = Ema(model, 0.5)
    shares = []
    for _ in range(12):
        shares.append(ema.current_decay())
        ema.update()
    assert shares == pytest.approx([min(0.5, (1 + n) / (10 + n)) for n in range(12)])


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: part.clone() for name, part in model.state_dict().items()}


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(part, two[name]) for name, part in one.items())


def wandered(**settings: Any) -> tuple[Any, Ema]:
    """Return a model that has moved, and its average."""
    gpt = small_gpt()
    gpt.mel_head.requires_grad_(False)
    ema = Ema(gpt, 0.99, **settings)
    torch.manual_seed(1)
    for _ in range(2):
        with torch.no_grad():
            for weight in ema.weights.values():
                weight.add_(torch.randn_like(weight), alpha=0.1)
        ema.update()
    return gpt, ema


def test_the_model_has_the_average_for_a_while_and_then_its_own_weights() -> None:
    gpt, ema = wandered()
    raw, averages, places = state(gpt), {n: p.clone() for n, p in ema.shadow.items()}, gpt.text_head.weight.data_ptr()
    with ema.swapped():
        assert same({name: gpt.get_parameter(name).detach() for name in averages}, averages)
        assert torch.equal(gpt.mel_head.weight, raw["mel_head.weight"])
        assert gpt.text_head.weight.data_ptr() == places
    assert same(state(gpt), raw)
    assert same(ema.shadow, averages)


def test_an_error_meanwhile_leaves_the_model_its_own_weights() -> None:
    gpt, ema = wandered()
    raw = state(gpt)
    with pytest.raises(KeyError), ema.swapped():
        raise KeyError
    assert same(state(gpt), raw)
    ema.update()


@pytest.mark.parametrize("name", ["update", "state_dict"])
def test_while_they_are_swapped_nothing_is_averaged_or_saved(name: str) -> None:
    _, ema = wandered()
    with ema.swapped(), pytest.raises(RuntimeError, match="leave swapped"):
        getattr(ema, name)()


def test_it_survives_a_resume() -> None:
    gpt, ema = wandered()
    resumed = Ema(copy.deepcopy(gpt), 0.99)
    resumed.load_state_dict({name: part.clone() for name, part in ema.state_dict().items()})
    for each in (ema, resumed):
        each.update()
    assert resumed.updates == 3
    assert same(resumed.shadow, ema.shadow)


@pytest.mark.parametrize("name", ["updates", "value"])
def test_a_state_that_does_not_fit_is_refused(name: str) -> None:
    ema = Ema(One(), 0.9)
    saved = ema.state_dict()
    del saved[name]
    with pytest.raises(ConfigError, match=name):
        ema.load_state_dict(saved)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(ConfigError, match="enable_ema"):
        Ema(One().to(dtype), 0.999)


def test_a_model_that_learns_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="no weight is trained"):
        Ema(One().requires_grad_(False), 0.999)


@pytest.mark.gpu
def test_the_average_of_a_gpus_weights_may_live_on_the_cpu() -> None:
    model = One(1.0).cuda()
    ema = Ema(model, 0.9, "cpu", ramp=False)
    assert follow(ema, model, [0.0]) == pytest.approx(0.9)
    assert ema.shadow["value"].device.type == "cpu"
    with ema.swapped():
        assert float(model.value) == pytest.approx(0.9)
    assert float(model.value) == 0
