"""What is frozen stays, and everything else learns."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.small_gpt import small_gpt
from tests.training.speedups.lessons import changed, learn, loss, weights
from utils.training.speedups.freezing import TextRowsOnly, freeze_conditioning, freeze_first_layers
from utils.xtts.adapters import TEXT_ROWS

CONDITIONING = ("conditioning_encoder", "conditioning_perceiver")


def trained(gpt: Any) -> set[str]:
    return {name for name, weight in gpt.named_parameters() if weight.requires_grad}


def moved(gpt: Any) -> set[str]:
    """Name what one update of an optimizer that holds everything changes."""
    before = weights(gpt)
    learn(gpt, torch.optim.AdamW(gpt.parameters(), lr=1e-3, weight_decay=0.1), 1)
    return changed(gpt, before)


@pytest.mark.parametrize("count", [0, 1, 3, None])
def test_frozen_parts_stay(count: int | None) -> None:
    gpt = small_gpt(layers=3)
    parts = CONDITIONING if count is None else tuple(f"gpt.h.{number}." for number in range(count))
    frozen = {name for name in weights(gpt) if name.startswith(parts)}
    change = freeze_conditioning(gpt) if count is None else freeze_first_layers(gpt, count)
    assert change.changed == (len(frozen) if count is None else count)
    assert moved(gpt) == weights(gpt).keys() - frozen


@pytest.mark.parametrize("shared", [False, True])
def test_the_text_rows_train_alone_and_then_all_again(shared: bool) -> None:
    gpt = small_gpt()
    freeze_first_layers(gpt, 1)
    allowed, rows = trained(gpt), {name for name in weights(gpt) if name.startswith(TEXT_ROWS)}
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-3, weight_decay=0.1)
    learn(gpt, optimizer, 1)
    before = weights(gpt)
    warmup = TextRowsOnly(gpt, shared=shared)
    assert len(warmup.frozen) == len(allowed) - len(rows)
    assert trained(gpt) == (allowed if shared else rows)
    torch.autograd.backward(loss(gpt))
    warmup.drop_gradients()
    optimizer.step()
    assert changed(gpt, before) == rows
    warmup.undo()
    assert trained(gpt) == allowed
    before = weights(gpt)
    learn(gpt, optimizer, 1)
    assert changed(gpt, before) == allowed


def test_processes_that_share_the_gradients_go_through_the_warm_up(tmp_path: Path) -> None:
    gpt = small_gpt().eval()
    torch.distributed.init_process_group("gloo", f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    try:
        whole: Any = torch.nn.parallel.DistributedDataParallel(gpt)  # without find_unused_parameters
        warmup = TextRowsOnly(gpt, shared=True)
        for _ in range(3):  # DDP complains in the update after the one that lacked a gradient
            torch.autograd.backward(loss(whole))
            warmup.drop_gradients()
        rows = {name for name in weights(gpt) if name.startswith(TEXT_ROWS)}
        assert {name for name, weight in gpt.named_parameters() if weight.grad is not None} == rows
    finally:
        torch.distributed.destroy_process_group()
