"""Fast attention: the same numbers from other kernels."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.training.small_gpt import small_gpt
from utils.training.speedups.attention import use_attention

Forward = Callable[[Any], Tensor]


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def encoder(gpt: Any) -> Tensor:
    return gpt.conditioning_encoder(random(2, 80, 37))  # type: ignore[no-any-return]


def conditioning_output(gpt: Any) -> Tensor:
    return gpt.get_style_emb(random(2, 80, 50))  # type: ignore[no-any-return]


def perceiver_with_mask(gpt: Any) -> Tensor:
    seen = torch.arange(32 + 20) < torch.tensor([[40], [52]])
    return gpt.conditioning_perceiver(random(2, 20, 64), mask=seen)  # type: ignore[no-any-return]


def gpt2(gpt: Any) -> Tensor:
    return gpt.gpt(inputs_embeds=random(2, 40, 64), use_cache=False).last_hidden_state  # type: ignore[no-any-return]


def result(gpt: Any, forward: Forward) -> tuple[Tensor, dict[str, Tensor]]:
    """Return what comes out, and the gradients that a random direction of it gives."""
    gpt.zero_grad()
    out = forward(gpt)
    torch.autograd.backward(out, random(*out.shape))
    return out.detach(), {name: weight.grad for name, weight in gpt.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("forward", [encoder, conditioning_output, perceiver_with_mask, gpt2])
def test_fused_attention_computes_the_same(forward: Forward) -> None:
    gpt = small_gpt().eval()
    use_attention(gpt, "eager")
    expected, slopes = result(gpt, forward)
    names = list(gpt.state_dict())
    use_attention(gpt, "sdpa")
    assert list(gpt.state_dict()) == names
    fused, fused_slopes = result(gpt, forward)
    torch.testing.assert_close(fused, expected, rtol=0, atol=3e-6)
    assert slopes.keys() == fused_slopes.keys()
    for name, slope in slopes.items():
        torch.testing.assert_close(fused_slopes[name], slope, rtol=1e-5, atol=float(slope.abs().max()) * 1e-5)
