"""Recommend settings for a dataset and a device, and say where each value comes from."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from utils.cli.runs import add_project, chosen_project, table
from utils.config import TrainConfig
from utils.core import monitor
from utils.core.facts import Fact
from utils.core.storage import write_atomically
from utils.core.wording import describe, text
from utils.dataset.metadata import read_clips
from utils.dataset.store import open_store
from utils.studio.facts import InputError
from utils.training.advice import Advice, Promise, TrainingData, advise, training_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from utils.studio.learning_curve import CurvePoint

COLUMNS = ("setting", "value", "reason", "source")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument("--gpu-gib", type=float, help="GPU memory in GiB (default: this computer's GPU); 0 = no GPU")
    parser.add_argument("--version", default=TrainConfig().version, help="base model, such as tiny")
    parser.add_argument("--out", type=Path, metavar="FILE.yaml", help="write the settings to a file for train --config")
    parser.add_argument(
        "--curve",
        type=_minutes,
        metavar="MINUTES",
        help="train on four sizes of the data, and say what more would bring",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _minutes(written: str) -> float:
    value = float(written)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def run(arguments: argparse.Namespace) -> int:
    dataset = chosen_project(arguments).dataset
    gib = monitor.read_once(dataset).gpu_memory_total_gib if arguments.gpu_gib is None else arguments.gpu_gib
    data = training_data(open_store(dataset).folder, gib or None, arguments.version)
    if not data.clips:
        raise InputError("no_training_clips", str(dataset))
    advice = advise(data)
    if arguments.out:
        write_atomically(arguments.out, advice.config.to_yaml())
    if arguments.curve is not None:
        return draw_curve(dataset, advice.config, 60 * arguments.curve)
    print(as_json(advice) if arguments.json else render(data, advice))
    return 0


def draw_curve(dataset: Path, config: TrainConfig, seconds: float) -> int:
    """Train on parts of the data, draw what they reach, and say what twice the data would bring."""
    from utils.studio.learning_curve import CurvePoint, measure_curve, plot

    def follow(fact: Fact) -> None:
        print(describe(fact), flush=True)

    points = measure_curve(read_clips(config, dataset), config, dataset.parent, seconds, follow)
    path = dataset.parent / "curve.png"
    write_atomically(path.with_suffix(".json"), json.dumps([point._asdict() for point in points], indent=1))
    plot(points).savefig(path, dpi=120)
    print("  ".join(f"{name:>11}" for name in CurvePoint._fields))
    for point in points:
        print("  ".join(f"{'–' if value is None else round(value, 3):>11}" for value in point))
    print("\n".join(conclusions(points)), path, sep="\n")
    return 0


def conclusions(points: "Sequence[CurvePoint]") -> list[str]:
    """Say what twice the data would bring, and how well the smaller sizes predict the largest one."""
    from utils.studio.learning_curve import MEASURES, trend

    lines = []
    most = max(point.minutes for point in points)
    if (passes := min(point.passes for point in points)) < 1:
        lines.append(
            f"The longest trainings saw only {100 * passes:.0f} % of all clips, "
            "so more could not help them: give --curve more minutes."
        )
    for name in MEASURES:
        now = [getattr(point, name) for point in points if point.minutes == most]
        if (line := trend(points, name, 2 * most)) is None:
            continue
        sure = "" if line.is_sure else "; the direction is not sure"
        lines.append(
            f"{name}: {np.mean(now):.3f} now; twice the data: {line.predicted:.3f} ± {line.predicted_uncertainty:.3f} "
            f"({line.per_doubling:+.3f} ± {line.uncertainty:.3f} per doubling{sure})"
        )
        if earlier := trend([point for point in points if point.minutes < most], name, most):
            lines.append(
                f"  from the smaller sizes: {earlier.predicted:.3f} ± {earlier.predicted_uncertainty:.3f} "
                "was predicted for all data"
            )
    return lines


def explained(advice: Advice) -> list[tuple[str, object, str, str]]:
    """Return each setting with its value, the reason for it and the source of that."""
    return [(item.setting, item.value, item.text("reason"), item.text("source")) for item in advice.recommendations]


def source_of(promise: Promise) -> str:
    return text(f"Advice.{promise}.source")


def as_json(advice: Advice) -> str:
    values = {
        "preset": advice.preset,
        "recommendations": [dict(zip(COLUMNS, row, strict=True)) for row in explained(advice)],
        "promise": text(f"Advice.{advice.promise}"),
        "promise_source": source_of(advice.promise),
        "gaps": [text(f"Advice.{gap}") for gap in advice.gaps],
    }
    return json.dumps(values, ensure_ascii=False, indent=1)


def render(data: TrainingData, advice: Advice) -> str:
    device = f"{data.gpu_gib:.0f} GiB GPU" if data.gpu_gib else "no GPU"
    lines = [
        f"{data.minutes:.0f} minutes, {data.clips} clips, {data.speakers} speakers; {device}",
        f"{text(f'Advice.{advice.promise}')} [{source_of(advice.promise)}]",
        *(text(f"Advice.{gap}") for gap in advice.gaps),
        f"\nNearest preset: configs/{advice.preset}.yaml\n",
    ]
    rows = [(name, str(value), reason, f"[{source}]") for name, value, reason, source in explained(advice)]
    return "\n".join([*lines, *table(rows)])
