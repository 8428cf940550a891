"""The findings of the training benchmark as JSON and as a page that a person reads."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict

from benchmarks.record import software, surroundings, table
from benchmarks.training_findings import EPOCHS, Comparison, Measured, SwitchTable, ratios_of
from benchmarks.training_plan import Plan

COMPARISON = """\
# Training, side by side with plain coqui-tts

{hardware}, {date}, {software}.
Command: `{command}`

GPT of {layers} layers x {dim}, {clips} clips of 2 to 9 s, batch {batch}, accumulation {accumulation} (effective batch
{effective}) on both sides, {threads} threads for each, set before every round because coqui's dataset sets one when it
is imported. {rounds} rounds of {round_clips} clips for each side, {order}, after a warm-up; each side is a separate
process. Both start from the same weights. Plain coqui-tts computes in fp32, as its recipe does; ours with {settings}.

coqui draws clips with replacement and pads every reference to 6 s; ours reads each clip once per epoch, and its
references are as long as the shortest clip of the batch allows, up to 6 s. "References of 6 s" pads ours too. So the
sides see the same number of clips, but not the same seconds of audio; the table gives both. All losses are computed by
coqui's evaluation.

{table}
The feature pass took {feature_seconds:.1f} s ({feature_work:.1f} processor seconds) for all {clips} clips, once; it is
counted over {epochs} epochs.

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


def comparison_page(found: Comparison, *, sequential: bool) -> str:
    """Write the comparison up."""
    coqui, ours = found.coqui, found.ours
    notes = [f"- plain coqui-tts: {note}" for note in coqui.notes] + [f"- ours: {note}" for note in ours.notes]
    return COMPARISON.format(
        **_conditions(found.plan, found.hardware, found.date, found.command),
        rounds=len(ours.rounds),
        round_clips=ours.rounds[0].clips,
        order="one side after another" if sequential else "in turn",
        table=comparison_table(found),
        feature_seconds=found.feature_seconds,
        feature_work=found.feature_work,
        epochs=EPOCHS,
        notes="\n".join(notes),
    )


def comparison_table(found: Comparison) -> str:
    """Lay the sides out beside each other."""
    sides = [found.coqui, found.ours, found.padded]
    rows = [
        row("clips a second, median of the rounds", [one.speed for one in sides], ".3f", times),
        _spans(sides),
        row("processor seconds a clip", [one.work for one in sides], ".3f", share),
        row("seconds of audio a second", [one.sound for one in sides], ".2f", times),
        row(
            "clips a second with the feature pass", [sides[0].speed, *map(found.with_features, sides[1:])], ".3f", times
        ),
        row("peak RAM, MiB", [one.memory.peak for one in sides], ".0f", share),
        row("peak RAM after the model was built, MiB", [one.memory.training for one in sides], ".0f", share),
        row("RAM of torch itself, MiB", [one.memory.start for one in sides], ".0f", share),
        row("loss over all clips at the start", [one.loss_before for one in sides], ".4f", difference),
        row(f"the same after {sides[1].updates} updates", [one.loss_after for one in sides], ".4f", difference),
    ]
    if found.plan.device == "cuda":
        rows.append(row("peak memory of the GPU, MiB", [one.memory.device for one in sides], ".0f", share))
    return table(["", "plain coqui-tts", "ours", "ratio", "ours, references of 6 s", "ratio"], rows)


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


def row(label: str, values: Sequence[float], form: str, ratio: Callable[[float, float], str]) -> list[str]:
    """Write the value of coqui, then each of ours with its ratio."""
    first, *others = values
    pairs = ((format(value, form), ratio(first, value)) for value in others)
    return [label, format(first, form), *itertools.chain.from_iterable(pairs)]


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


def _spans(sides: Sequence[Measured]) -> list[str]:
    """Write the slowest and the fastest round of each side, and the ratios of pairs of rounds."""
    written = [
        f"{min(speeds):.3f} to {max(speeds):.3f}" for speeds in ([one.speed for one in side.rounds] for side in sides)
    ]
    ratios = [ratios_of(sides[0], side) for side in sides[1:]]
    pairs = zip(written[1:], (f"{min(each):.2f} to {max(each):.2f} x" for each in ratios), strict=True)
    return ["slowest and fastest round", written[0], *itertools.chain.from_iterable(pairs)]


def _figure(value: float | None, form: str, unit: str = "") -> str:
    return "" if value is None else format(value, form) + unit
