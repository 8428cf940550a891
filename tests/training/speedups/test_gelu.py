"""The fused GELU: the same numbers, fewer of them kept."""

import pytest
import torch
from torch import nn

from tests.training.small_gpt import small_gpt
from utils.core.errors import SpeedupError
from utils.training.speedups.gelu import fuse_gelu, unfuse_gelu


def kept_bytes(gpt: nn.Module, hidden: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Run the first layer's MLP and count what it keeps for the backward pass."""
    kept = 0

    def count(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal kept
        kept += tensor.nbytes if not isinstance(tensor, nn.Parameter) else 0
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        out: torch.Tensor = gpt.get_submodule("gpt.h.0.mlp")(hidden)
    return out, kept


def test_the_numbers_are_the_same_and_fewer_are_kept() -> None:
    gpt = small_gpt().eval()
    hidden = torch.randn(2, 9, 64, requires_grad=True)
    plain, much = kept_bytes(gpt, hidden)
    assert fuse_gelu(gpt).changed == 2
    fused, little = kept_bytes(gpt, hidden)
    torch.testing.assert_close(fused, plain, rtol=1e-5, atol=1e-6)
    assert little < 0.6 * much


def test_it_can_be_undone_and_done_twice() -> None:
    gpt = small_gpt()
    assert [fuse_gelu(gpt).changed, fuse_gelu(gpt).changed, unfuse_gelu(gpt).changed] == [2, 0, 2]


def test_another_activation_is_refused() -> None:
    gpt = small_gpt()
    gpt.gpt.h[1].mlp.act = nn.ReLU()
    with pytest.raises(SpeedupError, match="enable_fused_gelu"):
        fuse_gelu(gpt)
