"""Tests of the recipe of speed-ups: each switch changes the live model."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch
from torch import nn

from tests.training.small_gpt import small_gpt
from utils.config import TrainConfig
from utils.core.errors import SpeedupError
from utils.training.facts import DeviceLacks, MemoryLimit
from utils.training.packing import PackedGpt
from utils.training.speedups import blocks, gpu
from utils.training.speedups.gpu import cap_memory, make_deterministic, tf32_state, use_tf32
from utils.training_optimizations import TrainingOptimizer, UnslothStyleOptimizations, coqui_gpt
from utils.xtts import device
from utils.xtts.facts import PrecisionReason

PLAIN = {"enable_sdpa": False, "enable_mixed_precision": False, "dropout": 0.0}


class Holder(nn.Module):
    """A model that holds another by a name, as coqui's Xtts, its GPTTrainer and torch's DDP do."""

    def __init__(self, name: str, held: nn.Module) -> None:
        super().__init__()
        self.add_module(name, held)


@pytest.fixture(autouse=True)
def _no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "check_compiler", lambda _: None)


def optimizer(**settings: object) -> TrainingOptimizer:
    return TrainingOptimizer.from_config(TrainConfig.parse(PLAIN | settings, source="test"), "cpu")


def without_dropout(**settings: Any) -> Any:
    gpt = small_gpt(**settings)
    for module in gpt.gpt.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return gpt


@pytest.mark.parametrize(
    ("settings", "name", "changed", "reading", "value"),
    [
        ({"enable_sdpa": True}, "enable_sdpa", 8, "attention of conditioning_encoder", "6 x sdpa (flash)"),
        ({"enable_sdpa": False}, "enable_sdpa", 3, "attention of gpt", "3 x eager (none)"),
        ({"enable_grad_checkpoint": True}, "enable_grad_checkpoint", 9, "checkpointed layers of gpt", 3),
        ({"freeze_first_n_gpt_layers": 2}, "freeze_first_n_gpt_layers", 2, "frozen layers of gpt", 2),
        ({"freeze_conditioning": True}, "freeze_conditioning", 54, "frozen weights of conditioning", 54),
        ({"use_compile": True}, "use_compile", 3, "compiled layers of gpt", 3),
        ({"enable_lora": True}, "enable_lora", 12, "adapted layers", 12),
        ({"enable_lora": True, "lora_targets": "attention"}, "enable_lora", 6, "adapted layers", 6),
    ],
)
def test_a_switch_changes_the_live_model(
    settings: dict[str, Any], name: str, changed: int, reading: str, value: str | int
) -> None:
    gpt = without_dropout(layers=3)
    switches = optimizer(**settings)
    before = switches.what_is_on(gpt)
    changes = switches.apply(PackedGpt(gpt))
    after = switches.what_is_on(gpt)
    assert changes[name].changed == changed
    assert after[reading] == value
    assert before[reading] != value


@pytest.mark.parametrize(
    "wrap",
    [
        lambda gpt: gpt,
        PackedGpt,
        lambda gpt: Holder("gpt", gpt),  # Xtts
        lambda gpt: Holder("xtts", Holder("gpt", gpt)),  # GPTTrainer
        lambda gpt: Holder("module", PackedGpt(gpt)),  # DDP
    ],
)
def test_the_gpt_is_found_wherever_it_is(wrap: Callable[[nn.Module], nn.Module]) -> None:
    gpt = small_gpt()
    assert coqui_gpt(wrap(gpt)) is gpt


def test_a_model_without_it_is_refused() -> None:
    gpt = small_gpt()
    for model in (gpt.gpt, Holder("other", gpt), nn.Linear(1, 1)):
        with pytest.raises(SpeedupError, match="coqui's GPT"):
            coqui_gpt(model)


def test_the_number_format_comes_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "processor_flags", lambda: frozenset({"avx512_bf16"}))
    switches = optimizer(enable_mixed_precision=True)
    assert switches.get_mixed_precision_config().dtype == "bf16"
    change = switches.apply(small_gpt())["enable_mixed_precision"]
    assert (change.changed, change.detail) == (1, PrecisionReason("cpu_bf16", "avx512_bf16"))
    assert optimizer().apply(small_gpt())["enable_mixed_precision"].changed == 0


@pytest.mark.parametrize(
    ("device", "cores", "workers", "pinned"), [("cpu", 16, 0, False), ("cuda", 2, 0, True), ("cuda", 8, 2, True)]
)
def test_loading_fits_the_machine(device: str, cores: int, workers: int, pinned: bool) -> None:
    settings = UnslothStyleOptimizations(device, cores).dataloader_settings()
    assert settings["num_workers"] == workers
    assert settings["pin_memory"] == pinned
    data: Any = range(4)
    torch.utils.data.DataLoader(data, **settings)  # type: ignore[arg-type]  # torch accepts them together


@pytest.fixture
def _restore_tf32() -> Iterator[None]:
    settings = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = settings


@pytest.mark.usefixtures("_restore_tf32")
def test_both_settings_of_tf32_are_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (8, 6))
    use_tf32("cuda", enabled=False)
    assert tf32_state() == {"matrix products": False, "convolutions": False}
    assert [use_tf32("cuda").changed for _ in range(2)] == [2, 0]
    assert torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize(("device", "word"), [("cpu", "cpu"), ("cuda", "7.5 of 8.0")])
def test_a_device_without_tf32_is_reported(device: str, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (7, 5))
    before = tf32_state()
    change = use_tf32(device)
    assert (change.changed, tf32_state()) == (0, before)
    assert isinstance(change.detail, DeviceLacks)
    assert word in change.detail.device


@pytest.mark.parametrize(("device", "changed"), [("cuda", 1), ("cpu", 0), ("mps", 0)])
def test_only_a_gpu_needs_deterministic_kernels(device: str, changed: int) -> None:
    try:
        assert make_deterministic(device).changed == changed
        assert torch.are_deterministic_algorithms_enabled() == (device == "cuda")
        assert not torch.is_deterministic_algorithms_warn_only_enabled()  # or attention would not follow
    finally:
        torch.use_deterministic_algorithms(mode=False)


@pytest.mark.parametrize(("fraction", "changed", "limit"), [(0.5, 1, 12), (1.0, 0, 24)])
def test_torch_gets_the_limit(fraction: float, changed: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    set_fraction = mock.Mock()
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", set_fraction)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=24 * 2**30))
    change = cap_memory(fraction, "cuda:1")
    set_fraction.assert_called_once_with(fraction, torch.device("cuda:1"))
    assert (change.changed, change.detail) == (changed, MemoryLimit(limit * 2**30, 24 * 2**30))
    cap = mock.Mock(wraps=cap_memory)
    monkeypatch.setattr(gpu, "cap_memory", cap)
    assert optimizer(max_memory_fraction=fraction).apply(small_gpt())["max_memory_fraction"].changed == 0  # on a CPU
    assert cap.call_args.args[0] == fraction
