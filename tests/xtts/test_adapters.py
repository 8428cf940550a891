"""Tests of LoRA and DoRA."""

from typing import Any

import pytest
import torch

from tests.training.small_gpt import small_gpt
from tests.training.speedups.lessons import changed, learn, loss, weights
from utils.core.errors import SpeedupError
from utils.training.speedups.freezing import freeze_first_layers
from utils.xtts.adapters import adapter_settings, adapter_state, add_lora, load_adapter, merged_state

pytestmark = pytest.mark.slow

LAYERS, DIM, RANK = 2, 64, 4


def adapted(*, seed: int = 0, targets: Any = "all", dora: bool = False, alpha: float = 8.0) -> Any:
    gpt = small_gpt(LAYERS, DIM, seed=seed)
    torch.manual_seed(seed)
    add_lora(gpt, RANK, alpha, targets=targets, dora=dora)
    return gpt


def trained(**settings: Any) -> Any:
    gpt = adapted(**settings)
    learn(gpt, torch.optim.AdamW([weight for weight in gpt.parameters() if weight.requires_grad], lr=1e-2))
    return gpt


@pytest.mark.parametrize("dora", [False, True])
def test_an_adapter_gives_the_same_output_in_another_model(dora: bool) -> None:
    gpt, fresh, plain = trained(dora=dora), adapted(dora=dora), small_gpt(LAYERS, DIM, seed=1)
    adapter, before = adapter_state(gpt), weights(gpt)
    assert set(adapter) == {name for name, weight in gpt.named_parameters() if weight.requires_grad}
    load_adapter(fresh, adapter, adapter_settings(gpt))
    merged = merged_state(gpt)
    assert list(merged) == list(plain.state_dict())
    plain.load_state_dict(merged)
    with torch.no_grad():
        assert torch.equal(loss(fresh, 9), loss(gpt, 9))
        assert float(loss(plain, 9) - loss(gpt, 9)) == pytest.approx(0, abs=1e-5)
        assert abs(float(loss(plain, 9) - loss(small_gpt(LAYERS, DIM), 9))) > 1e-2, "training changed nothing"
    assert not changed(gpt, before)


@pytest.mark.parametrize(("settings", "message"), [({"dora": True}, "does not fit"), ({"alpha": 9.0}, "scale: 2.0")])
def test_an_adapter_of_other_settings_changes_nothing(settings: dict[str, Any], message: str) -> None:
    gpt, other = trained(), adapted(**settings)
    before = weights(other)
    with pytest.raises(SpeedupError, match=message):
        load_adapter(other, adapter_state(gpt), adapter_settings(gpt))
    assert not changed(other, before)


def test_frozen_layers_have_frozen_adapters() -> None:
    gpt = adapted()
    freeze_first_layers(gpt, 1)
    trainable = {name[:8] for name, weight in gpt.named_parameters() if weight.requires_grad}
    assert trainable & {"gpt.h.0.", "gpt.h.1."} == {"gpt.h.1."}
