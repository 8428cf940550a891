"""The findings of the training benchmark as JSON and as a page that a person reads."""

from collections.abc import Callable
from dataclasses import asdict

from benchmarks.record import software, surroundings, table
from benchmarks.training_findings import EPOCHS, Comparison, Measured, SwitchTable
from benchmarks.training_plan import Plan

COMPARISON = """\
# Training, side by side with plain coqui-tts

{hardware}, {date}, {software}.
Command: `{command}`

GPT of {layers} layers x {dim}, {clips} clips of 2 to 9 s, batch {batch}, accumulation {accumulation} (effective batch
{effective}) on both sides, {threads} threads for each, set before every round because coqui's dataset sets one when it
is imported. {rounds} rounds of {round_clips} clips for each side, in turn, behind one that warms up; each side is a
process of its own and rests while the other works. Both start from the same weights. Plain coqui-tts computes in fp32,
as its recipe does; ours with {settings}.

{table}
The feature pass took {feature_seconds:.1f} s for all {clips} clips, once; it is counted over {epochs} epochs.

{notes}
"""
SWITCHES = """\
# One row for each switch of the training

{hardware}, {date}, {software}.
Command: `{command}`

GPT of {layers} layers x {dim}, {clips} clips of 2 to 9 s, batch {batch}, {threads} threads, fp32 unless the row says
otherwise. Speed is a multiple of the speed of a baseline that works in turn with the row: the row called baseline shows
how much of it is noise. The peak is that of {memory}. The loss is that over all clips after {updates} updates, without
dropout and smoothing, and its difference from that of the first row; the weights are random, so that what freezes
most of them learns little here.

{table}"""


def comparison_page(found: Comparison) -> str:
    """Write the comparison up."""
    coqui, ours = found.coqui, found.ours
    notes = [f"- plain coqui-tts: {note}" for note in coqui.notes] + [f"- ours: {note}" for note in ours.notes]
    return COMPARISON.format(
        **_conditions(found.plan, found.hardware, found.date, found.command),
        rounds=len(ours.rounds),
        round_clips=ours.rounds[0].clips,
        table=comparison_table(found),
        feature_seconds=found.feature_seconds,
        epochs=EPOCHS,
        notes="\n".join(notes),
    )


def comparison_table(found: Comparison) -> str:
    """Lay both sides out beside each other."""
    coqui, ours, ratios = found.coqui, found.ours, found.ratios
    rows = [
        _row("clips a second, median of the rounds", coqui.speed, ours.speed, ".3f", times),
        ["slowest and fastest round", _span(coqui), _span(ours), f"{min(ratios):.2f} to {max(ratios):.2f} x"],
        _row("seconds of sound a second", coqui.sound, ours.sound, ".2f", times),
        _row("clips a second with the feature pass", coqui.speed, found.speed_with_features, ".3f", times),
        _row("processor seconds a clip", coqui.work, ours.work, ".3f", share),
        _row("peak RAM, MiB", coqui.memory.peak, ours.memory.peak, ".0f", share),
        _row(
            "peak RAM behind the building of the model, MiB", coqui.memory.training, ours.memory.training, ".0f", share
        ),
        _row("RAM of torch itself, MiB", coqui.memory.start, ours.memory.start, ".0f", share),
        _row("loss over all clips at the start", coqui.loss_before, ours.loss_before, ".4f", difference),
        _row(f"the same after {ours.updates} updates", coqui.loss_after, ours.loss_after, ".4f", difference),
    ]
    if found.plan.device == "cuda":
        rows.append(_row("peak memory of the GPU, MiB", coqui.memory.device, ours.memory.device, ".0f", share))
    return table(["", "plain coqui-tts", "ours", "ratio"], rows)


def switch_page(found: SwitchTable) -> str:
    """Write the table of switches up."""
    return SWITCHES.format(
        **_conditions(found.plan, found.hardware, found.date, found.command),
        memory="the GPU, as torch counts it"
        if found.plan.device == "cuda"
        else "the process since the model was built",
        updates=found.updates,
        table=switch_table(found),
    )


def switch_table(found: SwitchTable) -> str:
    """Lay the switches out, one a row."""
    first = found.rows[0].loss
    rows = [
        [
            row.name,
            _figure(row.speed, ".2f", " x"),
            _figure(row.peak, ".0f"),
            _figure(row.loss, ".4f"),
            difference(first, row.loss) if first and row.loss else "",
            row.note,
        ]
        for row in found.rows
    ]
    return table(["switch", "speed", "peak MiB", "loss", "difference", "what happened"], rows)


def comparison_data(found: Comparison) -> dict[str, object]:
    """Return everything that was measured, and what follows from it."""
    follows = ("ratio", "ratios", "ratio_with_features", "memory_share")
    return surroundings(found.plan.device) | asdict(found) | {name: getattr(found, name) for name in follows}


def switch_data(found: SwitchTable) -> dict[str, object]:
    """Return everything that was measured."""
    return surroundings(found.plan.device) | asdict(found)


def times(base: float, value: float) -> str:
    """Write how many times as large a value is."""
    return f"{value / base:.2f} x"


def share(base: float, value: float) -> str:
    """Write which share of the base a value is."""
    return f"{value / base:.0%}"


def difference(base: float, value: float) -> str:
    """Write by how much a value differs."""
    return f"{value / base - 1:+.2%}"


def _conditions(plan: Plan, machine: str, date: str, command: str) -> dict[str, object]:
    settings = ", ".join(f"{name} {value}" for name, value in plan.settings.items()) or "fp32 too"
    known = asdict(plan) | {"effective": plan.batch * plan.accumulation, "software": software(), "settings": settings}
    return known | {"hardware": machine, "date": date, "command": command}


def _row(label: str, coqui: float, ours: float, form: str, ratio: Callable[[float, float], str]) -> list[str]:
    return [label, format(coqui, form), format(ours, form), ratio(coqui, ours)]


def _span(side: Measured) -> str:
    return f"{side.range[0]:.3f} to {side.range[1]:.3f}"


def _figure(value: float | None, form: str, unit: str = "") -> str:
    return "" if value is None else format(value, form) + unit
