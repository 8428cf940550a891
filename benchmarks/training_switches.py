"""One row for each switch: how fast, how much memory, and what the loss is after some updates."""

import dataclasses
from collections.abc import Callable
from statistics import median

from benchmarks.training_data import Material
from benchmarks.training_findings import SwitchRow
from benchmarks.training_plan import Plan
from benchmarks.training_sides import Refused, Side

UPDATES = 100
TURNS = 4  # rounds of the row and of the baseline, in turn

SWITCHES: dict[str, dict[str, object]] = {
    "baseline": {},
    "GELU written out": {"enable_fused_gelu": False},
    "torch's dropout": {"enable_byte_dropout": False},
    "SDPA off": {"enable_sdpa": False},
    "gradient checkpointing, every layer": {"enable_grad_checkpoint": True},
    "gradient checkpointing, every 2nd": {"enable_grad_checkpoint": True, "checkpoint_every": 2},
    "mixed precision": {"enable_mixed_precision": True},
    "TF32 off": {"enable_tf32": False},
    "fused optimiser off": {"enable_fused_optimizer": False},
    "8-bit optimiser": {"optimizer": "adamw_8bit"},
    "Adafactor": {"optimizer": "adafactor"},
    "optimiser on the CPU": {"offload_optimizer": True},
    "torch.compile": {"use_compile": True},
    "EMA": {"enable_ema": True},
    "EMA on the CPU": {"enable_ema": True, "ema_device": "cpu"},
    "dropout off": {"dropout": 0.0},
    "label smoothing 0.1": {"label_smoothing": 0.1},
    "half of the layers frozen": {"freeze_first_n_gpt_layers": -1},
    "conditioning frozen": {"freeze_conditioning": True},
    "LoRA": {"enable_lora": True},
    "DoRA": {"enable_lora": True, "use_dora": True},
    "LoRA, checkpointing, mixed precision": {
        "enable_lora": True,
        "enable_grad_checkpoint": True,
        "enable_mixed_precision": True,
    },
}

SLOW_HERE = {"torch.compile": "left out: it compiles for minutes on a CPU; --only measures it"}


def chosen(wanted: list[str] | None, device: str) -> list[str]:
    """Return the rows to measure: those asked for, or all that are quick enough on this device."""
    return wanted or [name for name in SWITCHES if device == "cuda" or name not in SLOW_HERE]


def left_out(names: list[str]) -> list[SwitchRow]:
    """Return a row without figures for each switch that is slow here and was not asked for."""
    return [SwitchRow(name, SWITCHES[name], note=reason) for name, reason in SLOW_HERE.items() if name not in names]


def settings_of(name: str, plan: Plan) -> dict[str, object]:
    """Return the fields of a row, with what depends on the size of the model."""
    return {field: plan.layers // 2 if value == -1 else value for field, value in SWITCHES[name].items()}


def measure(
    plan: Plan, material: Material, names: list[str], updates: int, tell: Callable[[str], None]
) -> list[SwitchRow]:
    """Measure rows one after another, each beside a baseline."""
    rows = []
    with Side("ours", plan, material) as baseline:
        baseline.round(plan.epoch)
        for name in names:
            rows.append(_row(name, baseline, plan, material, updates))
            tell(str(rows[-1]))
    return rows


def _row(name: str, baseline: Side, plan: Plan, material: Material, updates: int) -> SwitchRow:
    row = SwitchRow(name, settings_of(name, plan))
    changed = dataclasses.replace(plan, settings=plan.settings | row.settings)
    try:
        with Side("ours", changed, material) as side:
            _fill(row, side, baseline, plan, updates)
    except Refused as refusal:
        row.note = f"refused: {refusal}"
    return row


def _fill(row: SwitchRow, side: Side, baseline: Side, plan: Plan, updates: int) -> None:
    """Let the row and the baseline work in turn, and the row alone for what is left of its updates."""
    done = min(plan.epoch, updates)
    side.round(done)
    ratios = []
    for _ in range(TURNS):
        count = min(plan.epoch, updates - done)
        if count < 1:
            break
        mine = side.round(count)
        ratios.append(mine.speed / baseline.round(count).speed)
        done += count
    if done < updates:
        side.round(updates - done)
    memory = side.memory()
    row.speed = median(ratios) if ratios else None
    row.peak = memory.device if plan.device == "cuda" else memory.training
    row.loss = side.loss()
    row.note = "; ".join(change for change in side.changes if change not in baseline.changes) or "nothing else"
