"""Tests of gradient checkpointing."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.training.small_gpt import small_gpt
from utils.training.speedups import SpeedupError
from utils.training.speedups.attention import use_sdpa
from utils.training.speedups.checkpointing import checkpoint_blocks, checkpointed, undo_checkpointing


def loss(gpt: Any) -> Tensor:
    """Go through the conditioning encoder and the GPT-2, with the same dropout each time."""
    torch.manual_seed(3)
    heard = gpt.conditioning_encoder(torch.randn(2, 80, 60)).mT
    out: Tensor = gpt.gpt(inputs_embeds=heard).last_hidden_state
    return (out * torch.randn(64)).mean()


def gradients(gpt: Any) -> dict[str, Tensor]:
    gpt.zero_grad()
    torch.autograd.backward(loss(gpt))
    return {name: weight.grad.clone() for name, weight in gpt.named_parameters() if weight.grad is not None}


def kept_bytes(gpt: Any) -> int:
    """Return how much the forward pass keeps for the backward pass, the weights not counted."""
    weights = {weight.untyped_storage().data_ptr() for weight in gpt.parameters()}
    kept: dict[int, int] = {}
    held = []  # a storage that went away would give its address to another

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
            held.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss(gpt)
    return sum(kept.values())


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("every", [1, 2])
def test_the_gradients_are_those_without_it_dropout_included(every: int, fused: bool) -> None:
    gpt = small_gpt(layers=3).train()
    if fused:
        use_sdpa(gpt)
    expected = gradients(gpt)
    checkpoint_blocks(gpt, every)
    found = gradients(gpt)
    assert expected.keys() == found.keys()
    for name, slope in expected.items():
        torch.testing.assert_close(found[name], slope, rtol=1e-5, atol=1e-8)


def test_it_keeps_less_than_a_fifth_and_only_in_training() -> None:
    gpt = small_gpt(layers=6).train()
    use_sdpa(gpt)
    before, before_eval = kept_bytes(gpt), kept_bytes(gpt.eval())
    checkpoint_blocks(gpt)
    assert kept_bytes(gpt) == before_eval
    assert kept_bytes(gpt.train()) < before / 5
    checkpoint_blocks(gpt, 2)
    assert before / 5 < kept_bytes(gpt) < before
    undo_checkpointing(gpt)
    assert kept_bytes(gpt) == before


@pytest.mark.parametrize(("every", "expected"), [(1, (5, 6)), (2, (3, 3)), (4, (2, 2)), (30, (1, 1))])
def test_every_nth_layer_is_chosen_and_all_come_back(every: int, expected: tuple[int, int]) -> None:
    gpt = small_gpt(layers=5)
    names = list(gpt.state_dict())
    checkpoint_blocks(gpt, 1)
    change = checkpoint_blocks(gpt, every)
    assert checkpointed(gpt) == checkpointed(copy.deepcopy(gpt)) == expected
    assert (change.name, change.changed) == ("enable_grad_checkpoint", sum(expected))
    assert list(gpt.state_dict()) == names
    assert undo_checkpointing(gpt).changed == sum(expected)
    assert checkpointed(gpt) == (0, 0)
    assert not any(module.__dict__.get("gradient_checkpointing") for module in gpt.modules())


def test_the_model_speaks_as_before() -> None:
    gpt = small_gpt().eval()
    text = torch.randint(1, 90, (1, 6))
    settings: dict[str, Any] = {"do_sample": False, "max_new_tokens": 5}

    def spoken() -> Tensor:
        gpt.init_gpt_for_inference()
        with torch.inference_mode():
            return gpt.generate(torch.zeros(1, 32, 64), text, **settings)  # type: ignore[no-any-return]

    before = spoken()
    checkpoint_blocks(gpt)
    assert torch.equal(spoken(), before)


def test_a_sequence_that_is_not_known_is_an_error() -> None:
    class Sharded(nn.Sequential):
        pass

    gpt = small_gpt()
    gpt.conditioning_encoder.attn.__class__ = Sharded
    with pytest.raises(SpeedupError, match=r"is a Sharded, not a plain sequence"):
        checkpoint_blocks(gpt)


def test_a_step_below_one_is_an_error() -> None:
    with pytest.raises(SpeedupError, match="checkpoint_every: 0"):
        checkpoint_blocks(small_gpt(), 0)
