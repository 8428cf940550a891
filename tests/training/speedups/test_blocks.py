"""How the layers run: fused GELU, gradient checkpointing and torch.compile compute the same and keep less."""

from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, nn

from tests.training.small_gpt import small_gpt
from tests.training.speedups.lessons import kept_bytes
from utils.core.errors import SpeedupError
from utils.training.speedups.attention import use_attention
from utils.training.speedups.blocks import checkpoint_blocks, compile_blocks, compiled, fuse_gelu


def loss(gpt: Any) -> Tensor:
    """Go through the conditioning encoder and the GPT-2, with the same dropout each time."""
    torch.manual_seed(3)
    encoded = gpt.conditioning_encoder(torch.randn(2, 80, 60)).mT
    out: Tensor = gpt.gpt(inputs_embeds=encoded).last_hidden_state
    return (out * torch.randn(64)).mean()


def gradients(gpt: Any) -> dict[str, Tensor]:
    gpt.zero_grad()
    torch.autograd.backward(loss(gpt))
    return {name: weight.grad.clone() for name, weight in gpt.named_parameters() if weight.grad is not None}


def test_the_fused_gelu_computes_the_same_in_less_memory() -> None:
    gpt = small_gpt().eval()
    hidden = torch.randn(2, 9, 64, requires_grad=True)
    mlp = gpt.get_submodule("gpt.h.0.mlp")
    plain, plain_bytes = mlp(hidden), kept_bytes(mlp, lambda: mlp(hidden))
    assert [fuse_gelu(gpt).changed, fuse_gelu(gpt).changed] == [2, 0]
    torch.testing.assert_close(mlp(hidden), plain, rtol=1e-5, atol=1e-6)
    assert kept_bytes(mlp, lambda: mlp(hidden)) < 0.6 * plain_bytes
    gpt.gpt.h[1].mlp.act = nn.ReLU()
    with pytest.raises(SpeedupError, match="enable_fused_gelu"):
        fuse_gelu(gpt)


@pytest.mark.parametrize(("every", "fused"), [(1, False), (2, True)])
def test_checkpointed_gradients_are_the_same_dropout_included(every: int, fused: bool) -> None:
    gpt = small_gpt(layers=3).train()
    if fused:
        use_attention(gpt, "sdpa")
    expected = gradients(gpt)
    checkpoint_blocks(gpt, every)
    torch.testing.assert_close(gradients(gpt), expected, rtol=1e-5, atol=1e-8)


def test_checkpointing_keeps_less_than_a_fifth_in_training() -> None:
    gpt = small_gpt(layers=6).train()
    use_attention(gpt, "sdpa")

    def kept() -> int:
        return kept_bytes(gpt, lambda: loss(gpt))

    before = kept()
    gpt.eval()
    before_eval = kept()
    checkpoint_blocks(gpt)
    assert kept() == before_eval
    gpt.train()
    assert kept() < before / 5
    checkpoint_blocks(gpt, 2)
    assert before / 5 < kept() < before


def test_a_missing_compiler_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", mock.Mock(side_effect=RuntimeError("no g++")))
    gpt = small_gpt()
    with pytest.raises(SpeedupError, match="use_compile"):
        compile_blocks(gpt, "cpu")
    assert compiled(gpt) == 0
