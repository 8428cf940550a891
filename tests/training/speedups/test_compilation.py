"""Tests of the compiled layers; the default ones run none."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter

from tests.training.small_gpt import small_gpt
from utils.training.speedups import SpeedupError
from utils.training.speedups.compilation import check_compiler, compile_blocks, compiled

LENGTHS = (10, 20)


@pytest.fixture(autouse=True)
def _nothing_compiled_before() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def out(gpt: Any, length: int) -> tuple[Tensor, Tensor]:
    """Return the result and a gradient, with the same dropout each time."""
    torch.manual_seed(length)
    gpt.zero_grad()
    found = gpt.gpt(
        inputs_embeds=torch.randn(2, length, gpt.model_dim, requires_grad=True), use_cache=False
    ).last_hidden_state
    torch.autograd.backward((found * torch.randn(gpt.model_dim)).sum())
    return found.detach(), gpt.gpt.h[0].mlp.c_fc.weight.grad


@pytest.mark.slow
def test_all_layers_share_one_graph_for_each_length() -> None:
    gpt, counter = small_gpt(layers=3, dim=32).train(), CompileCounter()
    names = list(gpt.state_dict())
    expected = [out(gpt, length) for length in LENGTHS]
    change = compile_blocks(gpt, "cpu", backend=counter)
    assert (change.name, change.changed, compiled(gpt)) == ("use_compile", 3, 3)
    for _ in range(2):
        for length, pair in zip(LENGTHS, expected, strict=True):
            torch.testing.assert_close(out(gpt, length), pair)
    assert counter.frame_count == len(LENGTHS)
    assert counter.op_count > 0
    assert list(gpt.state_dict()) == names


def test_a_machine_without_a_compiler_says_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no g++")

    monkeypatch.setattr(torch, "compile", broken)
    gpt = small_gpt()
    with pytest.raises(SpeedupError, match="use_compile"):
        compile_blocks(gpt, "cpu")
    assert compiled(gpt) == 0


@pytest.mark.slow
def test_a_compiled_layer_computes_the_same() -> None:
    check_compiler(torch.device("cpu"))
    gpt = small_gpt(layers=1).train()
    for block in gpt.gpt.modules():
        if isinstance(block, torch.nn.Dropout):
            block.p = 0.0  # a compiled layer draws other numbers
    expected = out(gpt, 20)
    compile_blocks(gpt, "cpu")
    torch.testing.assert_close(out(gpt, 20), expected, rtol=1e-4, atol=1e-5)
