"""Tests of TF32."""

from collections.abc import Iterator

import pytest
import torch

from utils.training.speedups.matmul import tf32_state, use_tf32


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    settings = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = settings


def test_both_settings_move_and_are_counted() -> None:
    use_tf32("cuda", enabled=False, capability=(8, 6))
    assert tf32_state() == {"matrix products": False, "convolutions": False}
    assert use_tf32("cuda", capability=(8, 6)).changed == 2
    assert torch.backends.cuda.matmul.allow_tf32
    assert use_tf32("cuda", capability=(8, 6)).changed == 0
    assert use_tf32("cuda", enabled=False, capability=(8, 6)).changed == 2


@pytest.mark.parametrize(
    ("device", "capability", "word"),
    [("cpu", None, "device: cpu"), ("mps", None, "device: mps"), ("cuda", (7, 5), "needs 8.0")],
)
def test_a_device_without_it_says_so(device: str, capability: tuple[int, int] | None, word: str) -> None:
    before = tf32_state()
    change = use_tf32(device, capability=capability)
    assert change.changed == 0
    assert change.detail.startswith("not supported")
    assert word in change.detail
    assert tf32_state() == before
