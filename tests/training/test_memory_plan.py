"""What a run needs is calculated; here the calculation meets the live modules."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.nn import functional as F  # noqa: N812

from tests.training.small_gpt import small_gpt
from utils.config import TrainConfig
from utils.core.errors import ConfigError
from utils.training import memory
from utils.training.clips import ClipLengths
from utils.training.memory import GIB, NoRoomError
from utils.training.memory_parts import Arithmetic, Longest, ModelShape
from utils.training.memory_peaks import Device, Step
from utils.training.memory_trained import Trained
from utils.training.packing import AUDIO_EXTRA, TEXT_EXTRA, Example, PackedBatch, PackedGpt, SpecialTokens, pack
from utils.training.speedups.byte_dropout import use_byte_dropout
from utils.training.speedups.checkpointing import checkpoint_blocks
from utils.training.speedups.dropout import set_dropout
from utils.training.speedups.freezing import freeze_conditioning, freeze_first_layers
from utils.training.speedups.gelu import fuse_gelu
from utils.xtts.adapters import add_lora
from utils.xtts.conditioning import fuse

pytestmark = pytest.mark.slow

CLIPS = 2
SMALL = Longest(32 + 21 + 64, frames=100, text=21, audio=64)
LONGEST = Longest.allowed(11.6, 200)
GPU = memory.gpu_of(16)


def batch_of(gpt: Any, longest: Longest = SMALL) -> PackedBatch:
    one = Example(
        np.full(longest.text - TEXT_EXTRA, 5),
        np.full(longest.audio - AUDIO_EXTRA, 7),
        np.zeros((longest.frames, 80), np.float16),
    )
    return pack([one] * CLIPS, SpecialTokens.of(gpt))


def imagined(batch: PackedBatch) -> PackedBatch:
    """Return a batch without numbers in it, for the mode that computes shapes alone."""
    mel, numbers = (torch.empty(part.shape, dtype=part.dtype) for part in (batch.mel, batch.numbers))
    return PackedBatch(mel, numbers, batch.rows, batch.length)


def kept_by(model: nn.Module, batch: PackedBatch) -> int:
    """Add up what autograd keeps, parameters aside, each piece of memory once."""
    weights = {weight.untyped_storage()._cdata for weight in model.parameters()}
    pieces: dict[int, Any] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in weights:
            pieces[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        sums = model(batch)
    del sums
    return sum(piece.nbytes() for piece in pieces.values())


def prepared(config: TrainConfig, *, dropout: bool, **sizes: Any) -> Any:
    """Build coqui's GPT as the settings say."""
    gpt = small_gpt(**sizes)
    gpt.gpt.set_attn_implementation("sdpa" if config.enable_sdpa else "eager")
    if config.enable_sdpa:
        fuse(gpt.conditioning_encoder)
        fuse(gpt.conditioning_perceiver)
    if config.enable_lora:
        add_lora(gpt, config.lora_rank, config.lora_alpha, 0.0, config.lora_targets, dora=config.use_dora)
    freeze_first_layers(gpt, config.freeze_first_n_gpt_layers)
    if config.freeze_conditioning:
        freeze_conditioning(gpt)
    if config.enable_grad_checkpoint:
        checkpoint_blocks(gpt, config.checkpoint_every)
    if config.enable_fused_gelu:
        fuse_gelu(gpt)
    set_dropout(gpt, 0.1 if dropout else 0.0)
    if config.enable_byte_dropout and config.enable_sdpa:
        use_byte_dropout(gpt)
    return gpt.train()


def calculated(gpt: Any, config: TrainConfig, how: Arithmetic) -> int:
    return sum(Step(ModelShape.of(gpt), config, SMALL, how).kept.values())


# Parameters


@pytest.mark.parametrize(("layers", "dim", "rows"), [(30, 1024, 6681), (2, 64, 100), (3, 128, 333)])
def test_every_parameter_is_counted(layers: int, dim: int, rows: int) -> None:
    with torch.device("meta"):
        gpt = small_gpt(layers=layers, dim=dim, heads=dim // 16, text_tokens=rows)
    shape = ModelShape.of(gpt)
    assert shape.parameters == sum(weight.numel() for weight in gpt.parameters())
    assert shape.conditioning == sum(
        weight.numel() for name, weight in gpt.named_parameters() if name.startswith("conditioning")
    )
    if layers == 30:
        assert shape.parameters == ModelShape().parameters == 441_018_563


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"freeze_first_n_gpt_layers": 2},
        {"freeze_conditioning": True},
        {"enable_lora": True},
        {"enable_lora": True, "lora_targets": "attention", "lora_rank": 4},
        {"enable_lora": True, "use_dora": True, "freeze_first_n_gpt_layers": 1},
    ],
)
def test_what_is_trained_is_what_gets_gradients(settings: dict[str, Any]) -> None:
    config = TrainConfig(**settings)
    gpt = prepared(config, dropout=False, layers=3)
    trained = Trained.by(ModelShape.of(gpt), config)
    assert trained.parameters == sum(weight.numel() for weight in gpt.parameters() if weight.requires_grad)
    assert ModelShape.of(gpt).parameters + trained.added == sum(weight.numel() for weight in gpt.parameters())


# Activations


PLAIN: dict[str, Any] = {"enable_mixed_precision": False, "batch_size": CLIPS}


@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.parametrize(
    ("settings", "layers", "dim"),
    [
        ({}, 2, 64),
        pytest.param({}, 3, 256, marks=pytest.mark.slow),
        ({"enable_sdpa": False}, 2, 64),
        pytest.param({"enable_sdpa": False}, 3, 256, marks=pytest.mark.slow),
        ({"enable_fused_gelu": False}, 2, 64),
        ({"enable_byte_dropout": False}, 2, 64),
        ({"freeze_conditioning": True, "freeze_first_n_gpt_layers": 1}, 2, 64),
        pytest.param({"freeze_conditioning": True, "enable_sdpa": False}, 3, 128, marks=pytest.mark.slow),
        ({"enable_grad_checkpoint": True}, 2, 64),
        ({"enable_grad_checkpoint": True, "checkpoint_every": 2}, 3, 64),
        ({"enable_lora": True}, 2, 64),
        pytest.param({"enable_lora": True, "lora_targets": "attention"}, 2, 128, marks=pytest.mark.slow),
        pytest.param({"enable_lora": True, "use_dora": True}, 2, 128, marks=pytest.mark.slow),
    ],
)
def test_what_backward_needs_is_within_a_tenth_of_what_is_kept(
    settings: dict[str, Any], layers: int, dim: int, dropout: bool
) -> None:
    config = TrainConfig(**PLAIN, **settings)
    gpt = prepared(config, dropout=dropout, layers=layers, dim=dim)
    by_byte = config.enable_byte_dropout and config.enable_sdpa
    how = Arithmetic("cpu", False, config.enable_sdpa, dropout, config.enable_fused_gelu, by_byte)
    assert calculated(gpt, config, how) == pytest.approx(kept_by(PackedGpt(gpt), batch_of(gpt)), rel=0.1)


def like_a_gpu(query: Tensor, key: Tensor, value: Tensor, *_: Any, dropout_p: float = 0.0, **settings: Any) -> Tensor:
    """Attend as a GPU does; without one, torch cannot ask which kernel that is."""
    ops = torch.ops.aten
    found: Tensor
    causal, scale = bool(settings.get("is_causal")), settings.get("scale")
    if torch.is_autocast_enabled("cuda"):
        query, key, value = (part.to(torch.bfloat16) for part in (query, key, value))
        found = ops._scaled_dot_product_flash_attention(query, key, value, dropout_p, causal, False, scale=scale)[0]
    else:
        attend = ops._scaled_dot_product_efficient_attention
        found = attend(query, key, value, None, True, dropout_p, causal, scale=scale)[0]
    return found


@contextmanager
def imagined_gpu(monkeypatch: pytest.MonkeyPatch, *, half: bool) -> Iterator[None]:
    """Compute shapes and types only, as a GPU would have them."""
    monkeypatch.setattr(F, "scaled_dot_product_attention", like_a_gpu)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"):
        torch.set_autocast_dtype("cuda", torch.bfloat16)
        torch.set_autocast_enabled("cuda", half)  # torch.autocast refuses where there is no GPU
        torch.autocast_increment_nesting()
        try:
            yield
        finally:
            torch.autocast_decrement_nesting()
            torch.set_autocast_enabled("cuda", False)
            torch.clear_autocast_cache()


@pytest.mark.slow
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("settings", [{}, {"enable_sdpa": False}, {"freeze_conditioning": True}])
def test_a_gpu_would_keep_what_is_calculated(
    settings: dict[str, Any], half: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainConfig(batch_size=CLIPS, enable_byte_dropout=False, **settings)
    with imagined_gpu(monkeypatch, half=half):
        gpt = prepared(config, dropout=True, layers=2, dim=256)
        kept = kept_by(PackedGpt(gpt), imagined(batch_of(gpt)))
    how = Arithmetic("cuda", half, config.enable_sdpa, True, config.enable_fused_gelu)
    copies = Step(ModelShape.of(gpt), config, SMALL, how).copies(forward=True)
    assert calculated(gpt, config, how) + copies == pytest.approx(kept, rel=0.05)


LONG_REFERENCE = replace(LONGEST, frames=1500)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "longest"),
    [
        ({}, LONGEST),
        ({"enable_sdpa": False}, LONGEST),
        ({"enable_mixed_precision": True}, LONGEST),
        ({"enable_grad_checkpoint": True}, LONGEST),
        ({"enable_grad_checkpoint": True, "checkpoint_every": 2}, LONGEST),
        ({"enable_grad_checkpoint": True, "enable_mixed_precision": True}, LONGEST),
        ({"enable_grad_checkpoint": True}, LONG_REFERENCE),
        ({"enable_grad_checkpoint": True, "enable_sdpa": False}, LONG_REFERENCE),
    ],
)
def test_the_peak_of_a_step_is_met_and_hardly_exceeded(settings: dict[str, Any], longest: Longest) -> None:
    config = TrainConfig.parse(PLAIN | {"dropout": 0, "grad_acumm": 1, "enable_byte_dropout": False} | settings)
    half = config.enable_mixed_precision
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = PackedGpt(prepared(config, dropout=False, layers=8, dim=256, text_tokens=300))
        batch = imagined(batch_of(model.gpt, longest))
        tracker = MemTracker()
        tracker.track_external(model)
        with tracker:
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                sums = model(batch)
            (sums.text + sums.audio).backward()
    real = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]
    step = Step(
        ModelShape.of(model.gpt),
        config,
        longest,
        Arithmetic("cpu", half, config.enable_sdpa, False, config.enable_fused_gelu),
    )
    peak = 4 * step.shape.parameters + max(sum(moment.values()) for moment in step.moments())
    assert 0.95 < peak / real < 1.15


# Plans


@pytest.mark.parametrize(
    ("how", "gib"),
    [  # counted on the real model, for one longest clip: shared/PITFALLS.md
        (Arithmetic(fused=False, dropout=True), 2.98),
        (Arithmetic(fused=True), 1.69),
        (Arithmetic(half=True), 0.90),
    ],
)
def test_a_clip_takes_what_was_counted_on_the_real_model(how: Arithmetic, gib: float) -> None:
    config = TrainConfig(batch_size=1)
    assert Step(ModelShape(), config, LONGEST, how).kept["activations"] / GIB == pytest.approx(gib, rel=0.1)


def test_checkpointing_leaves_a_fraction() -> None:
    step = Step(ModelShape(), TrainConfig(batch_size=1, enable_grad_checkpoint=True), LONGEST, Arithmetic(half=True))
    assert 0.05 < step.kept["activations"] / GIB < 0.07
    assert 0.07 < (step.kept["activations"] + step.layer(0)) / GIB < 0.13


def part(name: str, device: Device = GPU, **settings: Any) -> float:
    return memory.predict(ModelShape(), TrainConfig(**settings), LONGEST, device).parts[name] / GIB


@pytest.mark.parametrize(
    ("name", "settings", "gib"),
    [
        ("weights", {}, 1.643),
        ("gradients", {}, 1.643),
        ("optimiser", {}, 3.286),
        ("optimiser", {"optimizer": "adamw_8bit"}, 0.82),
        ("optimiser", {"optimizer": "adafactor"}, 0.1),
        ("optimiser", {"offload_optimizer": True}, 0.0),
        ("ema", {"enable_ema": True}, 1.643),
        ("ema", {"enable_ema": True, "ema_device": "cpu"}, 0.0),
        ("gradients", {"step_in_backward": True, "grad_acumm": 1, "enable_grad_checkpoint": True}, 0.0),
        ("optimiser", {"enable_lora": True}, 0.16),
        ("exchange", {"num_processes": 2}, 0.0),
        ("optimiser", {"num_processes": 2, "sharding": "fsdp"}, 1.643),
        ("conditioning", {"freeze_conditioning": True}, 0.0),
        ("copies", {"enable_mixed_precision": False}, 0.0),
    ],
)
def test_each_switch_moves_its_part(name: str, settings: dict[str, Any], gib: float) -> None:
    assert part(name, **settings) == pytest.approx(gib, rel=0.1, abs=0.03)


def test_what_is_offloaded_stays_in_the_same_memory_on_a_processor() -> None:
    here = Device("cpu", 32 * GIB, "the processor", half=False)
    settings = {"offload_optimizer": True, "enable_ema": True, "ema_device": "cpu"}
    assert part("optimiser", here, **settings) == pytest.approx(3.286, rel=0.01)
    assert part("ema", here, **settings) == pytest.approx(1.643, rel=0.01)


def test_the_parts_add_up_to_the_peak_and_the_plan_says_that_it_is_calculated() -> None:
    outcome = memory.predict(ModelShape(), TrainConfig(enable_fused_gelu=False), LONGEST, GPU)
    assert outcome.peak == sum(outcome.parts.values())
    assert outcome.parts.keys() == memory.PARTS.keys()
    assert not outcome.fits
    assert "does not fit into 14.9 GiB (calculated, not measured on this device)" in outcome.sentence


@pytest.mark.parametrize(
    ("settings", "gigabytes", "expected"),
    [
        ({"enable_fused_gelu": False}, 16, (4, 4)),
        ({}, 16, (8, 2)),
        ({}, 141, (16, 1)),
        ({"batch_size": 3, "grad_acumm": 5}, 16, (5, 3)),
        ({"enable_grad_checkpoint": True}, 16, (16, 1)),
        ({"batch_size": 1, "grad_acumm": 1}, 16, (1, 1)),
    ],
)
def test_a_plan_cuts_the_same_effective_batch(
    settings: dict[str, Any], gigabytes: float, expected: tuple[int, int]
) -> None:
    config = TrainConfig(**settings)
    tuned = memory.plan(config, ModelShape(), LONGEST, memory.gpu_of(gigabytes))
    assert (tuned.batch_size, tuned.grad_acumm) == expected
    assert memory.changed(tuned, {"batch_size": config.batch_size, "grad_acumm": config.grad_acumm}) == config


def test_a_budget_of_positions_is_cut_instead_of_clips() -> None:
    config = TrainConfig(batch_tokens=4000, grad_acumm=2, enable_fused_gelu=False)
    tuned = memory.plan(config, ModelShape(), LONGEST, GPU)
    assert tuned.batch_tokens * tuned.grad_acumm == 8000
    assert LONGEST.positions <= tuned.batch_tokens < 4000


def test_updates_inside_the_backward_pass_are_not_cut() -> None:
    config = TrainConfig(step_in_backward=True, grad_acumm=1, batch_size=64)
    with pytest.raises(NoRoomError):
        memory.plan(config, ModelShape(), LONGEST, GPU)


def test_where_nothing_fits_the_switches_that_would_help_are_named() -> None:
    with pytest.raises(NoRoomError, match=r"enable_grad_checkpoint \(\d+\.\d GiB\), then .*enable_lora") as caught:
        memory.plan(TrainConfig(), ModelShape(), LONGEST, memory.gpu_of(4))
    assert "would make room" in caught.value.hint


def test_where_no_switch_is_left_another_device_is_needed() -> None:
    with pytest.raises(NoRoomError, match="Even that is not enough"):
        memory.plan(TrainConfig(), ModelShape(), LONGEST, memory.gpu_of(1))


def test_the_longest_clip_is_that_of_the_settings_or_of_the_data() -> None:
    assert Longest(487, 516, 201, 254) == LONGEST
    columns = ([22_050, 44_100], [22, 44], [87, 173], [30, 10])
    lengths = ClipLengths(*(np.array(column) for column in columns))
    assert Longest.of(lengths) == Longest(32 + 1 + 10 + 4 + 44, 173, 31, 48)


def test_a_model_folder_tells_its_sizes(tmp_path: Path) -> None:
    assert memory.shape_of(TrainConfig()) == ModelShape()
    assert all(memory.shape_of(TrainConfig(version=name)).layers < 30 for name in ("tiny", "tiny-random"))
    sizes = {"gpt_layers": 3, "gpt_n_model_channels": 64, "gpt_n_heads": 4, "gpt_number_text_tokens": 99}
    (tmp_path / "config.json").write_text(json.dumps({"model_args": sizes}))
    assert memory.shape_of(TrainConfig(custom_model=str(tmp_path / "model.pth"))) == ModelShape(3, 64, 4, 99)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="does not tell the sizes"):
        memory.shape_of(TrainConfig(custom_model=str(tmp_path)))
