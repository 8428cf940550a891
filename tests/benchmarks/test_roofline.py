"""The calculated bounds of an update: they follow from what both sides really compute."""

from unittest import mock

import pytest
from torch.utils.flop_counter import flop_registry

from benchmarks.roofline import GPUS, KERNELS, Operation, Work, coqui_step, coqui_work, our_step, our_work
from utils.training.model_size import ModelSize

pytestmark = pytest.mark.slow

SMALL = ModelSize(layers=2, dim=256, heads=4)


def test_the_bound_takes_the_slower_of_products_and_memory() -> None:
    t4 = GPUS[0]
    assert Work([Operation(65e12, 1, half=True)]).seconds(t4) == 1
    assert Work([Operation(1, 320 * 10**9, half=True)]).seconds(t4) == 1
    assert Work([Operation(8.1e12, 1, half=False), Operation(0, 320 * 10**9, half=False)]).seconds(t4) == 2


@pytest.mark.long
def test_both_sides_compute_the_same_products_and_ours_moves_less() -> None:
    with mock.patch.dict(flop_registry, KERNELS):
        coqui, plain = coqui_work(SMALL), our_work(SMALL, {"enable_mixed_precision": False})
        half, again = our_work(SMALL, {}), our_work(SMALL, {"enable_grad_checkpoint": True})
    assert plain.flops == pytest.approx(coqui.flops, rel=0.1)
    assert half.flops == plain.flops
    assert 1.2 < again.flops / plain.flops < 1.4  # a second forward pass: four thirds, less heads and embeddings
    assert half.size < plain.size < coqui.size


def test_a_step_of_decoding_computes_the_same_products_and_starts_far_fewer_kernels() -> None:
    with mock.patch.dict(flop_registry, KERNELS):
        coqui, plain, eight = coqui_step(SMALL), our_step(SMALL, "fp32", 1), our_step(SMALL, "fp16", 8)
    assert plain.work.flops == pytest.approx(coqui.work.flops, rel=0.1)
    assert eight.work.flops == 8 * plain.work.flops
    assert plain.starts == eight.starts == 3  # the graph and two copies
    assert coqui.starts > len(plain.work.operations)
