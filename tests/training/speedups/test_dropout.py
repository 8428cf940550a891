"""Dropout by bytes: the right share, the right expectation, the same attention, repeatable."""

import copy
from typing import Any

import pytest
import torch

from tests.training.small_gpt import small_gpt
from utils.training.speedups.attention import use_attention
from utils.training.speedups.dropout import attend, drop, use_byte_dropout


@pytest.mark.parametrize("limit", [26, 128])
def test_the_share_that_is_dropped_is_right(limit: int) -> None:
    left = drop(torch.ones(1_000_003), limit / 256)
    assert float((left == 0).float().mean()) == pytest.approx(limit / 256, abs=0.003)
    assert float(left.mean()) == pytest.approx(1, abs=0.01)


def attention_and_gradients(share: float, dtype: torch.dtype) -> list[list[torch.Tensor]]:
    """Compute attention with ours and written out, with the same weights dropped."""
    torch.manual_seed(0)
    parts = [torch.randn(3, 2, 11, 8) for _ in range(3)]
    torch.manual_seed(5)
    mask = drop(torch.ones(3, 2, 11, 11), share)
    results = []
    for ours in (True, False):
        query, key, value = (part.clone().requires_grad_() for part in parts)
        if ours:
            torch.manual_seed(5)
            attention: Any = torch.nn.Module()
            attention.is_causal = True
            out, _ = attend(attention, query.to(dtype), key.to(dtype), value.to(dtype), None, dropout=share)
            out = out.float()
        else:
            future = torch.full((11, 11), float("-inf")).triu(1)
            weights = torch.softmax(query @ key.mT * 8**-0.5 + future, -1)
            out = ((weights * mask) @ value).transpose(1, 2)
        torch.autograd.backward(out.sin().sum())
        results.append([out, *(part.grad for part in (query, key, value) if part.grad is not None)])
    return results


@pytest.mark.parametrize("share", [0, 0.1, 0.8])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
def test_attention_equals_the_written_out_form_with_the_same_weights_dropped(
    share: float, dtype: torch.dtype, error: float
) -> None:
    for ours, plain in zip(*attention_and_gradients(share, dtype), strict=True):
        assert (ours - plain).norm() < error * plain.norm()


def test_every_dropout_of_the_gpt_is_replaced() -> None:
    gpt = small_gpt()
    hidden = torch.randn(2, 12, 64)
    use_attention(gpt, "sdpa")
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
