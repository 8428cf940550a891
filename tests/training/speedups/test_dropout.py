"""Dropout by bytes: the right share, the right expectation, the same gradients, repeatable."""

import copy

import pytest
import torch

from tests.training.small_gpt import small_gpt
from utils.training.speedups.dropout import attended, dropped, keep_mask, use_byte_dropout


@pytest.mark.parametrize("limit", [26, 128])
def test_the_share_that_is_dropped_and_the_mean_are_right(limit: int) -> None:
    ones = torch.ones(1_000_003)
    left = dropped(ones, limit)
    assert float((left == 0).float().mean()) == pytest.approx(limit / 256, abs=0.003)
    assert float(left.mean()) == pytest.approx(1, abs=0.01)


def attention_and_gradients(limit: int) -> list[list[torch.Tensor]]:
    """Compute attention with our kernel and written out, with the same weights dropped."""
    torch.manual_seed(0)
    parts = [torch.randn(3, 2, 11, 8) for _ in range(3)]
    torch.manual_seed(5)
    mask = keep_mask(torch.Size((3, 2, 11, 11)), limit)
    results = []
    for ours in (True, False):
        query, key, value = (part.clone().requires_grad_() for part in parts)
        if ours:
            torch.manual_seed(5)
            out = attended(query, key, value, limit)
        else:
            future = torch.full((11, 11), float("-inf")).triu(1)
            weights = torch.softmax(query @ key.mT * 8**-0.5 + future, -1)
            out = (weights * mask * (256 / (256 - limit))) @ value
        torch.autograd.backward(out.sin().sum())
        results.append([out, *(part.grad for part in (query, key, value) if part.grad is not None)])
    return results


@pytest.mark.parametrize("limit", [0, 26, 200])
def test_attention_equals_the_written_out_form_with_the_same_weights_dropped(limit: int) -> None:
    ours, plain = attention_and_gradients(limit)
    torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-6)


def test_every_dropout_of_the_gpt_is_replaced_and_evaluation_is_untouched() -> None:
    gpt = small_gpt()
    hidden = torch.randn(2, 12, 64)
    plain = copy.deepcopy(gpt).eval().gpt(inputs_embeds=hidden).last_hidden_state
    keys = list(gpt.state_dict())
    assert use_byte_dropout(gpt).changed == 2 * 3 + 1
    assert list(gpt.state_dict()) == keys
    assert torch.equal(gpt.eval().gpt(inputs_embeds=hidden).last_hidden_state, plain)
    gpt.train()
    torch.manual_seed(0)
    first, second = (gpt.gpt(inputs_embeds=hidden, use_cache=False).last_hidden_state for _ in range(2))
    torch.manual_seed(0)
    assert torch.equal(gpt.gpt(inputs_embeds=hidden, use_cache=False).last_hidden_state, first)
    assert not torch.equal(first, second)
