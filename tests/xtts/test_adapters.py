"""Tests of LoRA and DoRA."""

from typing import Any

import pytest
import torch

from tests.training.small_gpt import small_gpt
from tests.training.speedups.lessons import changed, learn, loss, weights
from utils.training.speedups import SpeedupError
from utils.training.speedups.freezing import freeze_first_layers
from utils.xtts.adapters import (
    TEXT_ROWS,
    adapted_layers,
    adapter_settings,
    adapter_state,
    add_lora,
    load_adapter,
    merged_state,
)

pytestmark = pytest.mark.slow

LAYERS, DIM, RANK = 2, 64, 4
SIZES = {"c_attn": (DIM, 3 * DIM), "attn.c_proj": (DIM, DIM), "c_fc": (DIM, 4 * DIM), "mlp.c_proj": (4 * DIM, DIM)}


def adapted(*, seed: int = 0, targets: Any = "all", dora: bool = False, alpha: float = 8.0) -> Any:
    gpt = small_gpt(LAYERS, DIM, seed=seed)
    torch.manual_seed(seed)
    add_lora(gpt, RANK, alpha, targets=targets, dora=dora)
    return gpt


def taught(**settings: Any) -> Any:
    gpt = adapted(**settings)
    learn(gpt, torch.optim.AdamW([weight for weight in gpt.parameters() if weight.requires_grad], lr=1e-2))
    return gpt


@pytest.mark.parametrize(("targets", "names"), [("attention", ["c_attn", "attn.c_proj"]), ("all", list(SIZES))])
@pytest.mark.parametrize("dora", [False, True])
def test_the_chosen_matrices_get_an_adapter(targets: Any, names: list[str], dora: bool) -> None:
    gpt = small_gpt(LAYERS, DIM)
    rows = sum(weight.numel() for name, weight in gpt.named_parameters() if name.startswith(TEXT_ROWS))
    change = add_lora(gpt, RANK, 8.0, targets=targets, dora=dora)
    small = sum(RANK * sum(SIZES[name]) + dora * SIZES[name][1] for name in names) * LAYERS
    trained = sum(weight.numel() for weight in gpt.parameters() if weight.requires_grad)
    assert change.changed == len(list(adapted_layers(gpt))) == len(names) * LAYERS
    assert trained == small + rows
    assert f"{trained:,} of" in change.detail


@pytest.mark.parametrize("dora", [False, True])
def test_merged_it_is_a_plain_model_that_gives_the_same_output(dora: bool) -> None:
    gpt, plain = taught(dora=dora), small_gpt(LAYERS, DIM, seed=1)
    before, names = weights(gpt), set(gpt.state_dict())
    state = merged_state(gpt)
    assert list(state) == list(plain.state_dict())
    plain.load_state_dict(state)
    with torch.no_grad():
        assert float(loss(plain, 9) - loss(gpt, 9)) == pytest.approx(0, abs=1e-5)
        assert abs(float(loss(plain, 9) - loss(small_gpt(LAYERS, DIM), 9))) > 1e-2, "it learnt something"
    assert not changed(gpt, before)
    assert set(gpt.state_dict()) == names


def test_a_second_name_of_a_weight_is_not_merged() -> None:
    gpt = small_gpt(LAYERS, DIM)
    plain = list(gpt.state_dict())
    gpt.gpt.wte = gpt.mel_embedding  # as gradient checkpointing asks for
    add_lora(gpt, RANK, 8.0)
    assert list(merged_state(gpt)) == plain


@pytest.mark.parametrize("dora", [False, True])
def test_the_adapter_alone_brings_a_fresh_model_to_the_same_output(dora: bool) -> None:
    gpt, fresh = taught(dora=dora), adapted(dora=dora)
    state = adapter_state(gpt)
    assert set(state) == {name for name, weight in gpt.named_parameters() if weight.requires_grad}
    assert load_adapter(fresh, state, adapter_settings(gpt)) == len(state)
    with torch.no_grad():
        assert torch.equal(loss(fresh, 9), loss(gpt, 9))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"targets": "attention"}, "does not fit"),
        ({"dora": True}, "does not fit"),
        ({"alpha": 9.0}, "scale: 2.0"),
    ],
)
def test_an_adapter_of_other_settings_is_refused_and_nothing_is_changed(settings: dict[str, Any], words: str) -> None:
    gpt, other = taught(), adapted(**settings)
    before = weights(other)
    with pytest.raises(SpeedupError, match=words):
        load_adapter(other, adapter_state(gpt), adapter_settings(gpt))
    assert not changed(other, before)


def test_adapters_are_not_added_twice() -> None:
    with pytest.raises(SpeedupError, match="already"):
        add_lora(adapted(), RANK, 8.0)


def test_frozen_layers_have_frozen_adapters() -> None:
    gpt = adapted()
    freeze_first_layers(gpt, 1)
    trained = {name for name, weight in gpt.named_parameters() if weight.requires_grad}
    assert any(name.startswith("gpt.h.1.") for name in trained)
    assert not any(name.startswith("gpt.h.0.") for name in trained)


@pytest.mark.parametrize("dora", [False, True])
def test_gradient_checkpointing_gives_the_same_gradients(dora: bool) -> None:
    plain, saving = taught(dora=dora), taught(dora=dora)
    saving.gpt.wte = saving.mel_embedding
    saving.gpt.activation_checkpointing_enable({"use_reentrant": False})
    for gpt in (plain, saving):
        gpt.zero_grad()
        with torch.random.fork_rng(devices=[]):
            torch.autograd.backward(loss(gpt))
    for (name, one), two in zip(plain.named_parameters(), saving.parameters(), strict=True):
        if one.requires_grad:
            assert torch.allclose(one.grad, two.grad, atol=1e-6), name
