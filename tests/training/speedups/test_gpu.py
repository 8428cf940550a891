"""TF32 and the limit of a GPU's memory; no GPU is needed."""

from collections.abc import Iterator
from types import SimpleNamespace
from unittest import mock

import pytest
import torch

from utils.training.speedups.gpu import cap_memory, tf32_state, use_tf32


@pytest.fixture
def _restore_tf32() -> Iterator[None]:
    settings = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = settings


@pytest.mark.usefixtures("_restore_tf32")
def test_both_settings_of_tf32_are_changed_and_counted() -> None:
    use_tf32("cuda", enabled=False, capability=(8, 6))
    assert tf32_state() == {"matrix products": False, "convolutions": False}
    assert [use_tf32("cuda", capability=(8, 6)).changed for _ in range(2)] == [2, 0]
    assert torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize(("device", "capability", "word"), [("cpu", None, "cpu"), ("cuda", (7, 5), "needs 8.0")])
def test_a_device_without_tf32_is_reported(device: str, capability: tuple[int, int] | None, word: str) -> None:
    before = tf32_state()
    change = use_tf32(device, capability=capability)
    assert (change.changed, tf32_state()) == (0, before)
    assert change.detail.startswith("not supported by this device")
    assert word in change.detail


@pytest.mark.parametrize(("fraction", "changed", "words"), [(0.5, 1, "12.0 of 24.0"), (1.0, 0, "no limit: 24.0 GiB")])
def test_torch_gets_the_limit(fraction: float, changed: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_fraction = mock.Mock()
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", set_fraction)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=24 * 2**30))
    change = cap_memory(fraction, "cuda:1")
    set_fraction.assert_called_once_with(fraction, torch.device("cuda:1"))
    assert (change.changed, words in change.detail) == (changed, True)
    assert cap_memory(0.5, "cpu").changed == 0
