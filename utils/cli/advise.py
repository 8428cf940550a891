"""Recommend settings for a dataset and a device, and say where each value comes from."""

import argparse
import json
from pathlib import Path

from utils.cli.runs import add_project
from utils.config import TrainConfig
from utils.core import monitor
from utils.core.storage import write_atomically
from utils.core.wording import describe, text
from utils.dataset.store import open_store
from utils.studio.facts import InputError, Problem
from utils.studio.paths import project
from utils.training.advice import Advice, TrainingData, advise, training_data
from utils.training.facts import Promise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument("--gpu-gib", type=float, help="GPU memory in GiB (default: this computer's GPU); 0 = no GPU")
    parser.add_argument("--version", default=TrainConfig().version, help="base model, such as tiny")
    parser.add_argument("--out", type=Path, metavar="FILE.yaml", help="write the settings to a file for train --config")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    dataset = project(arguments.project, arguments.output).dataset
    gib = monitor.read_once(dataset).gpu_memory_total_gib if arguments.gpu_gib is None else arguments.gpu_gib
    data = training_data(open_store(dataset).folder, gib or None, arguments.version)
    if not data.clips:
        raise InputError(Problem.NO_TRAINING_CLIPS, str(dataset))
    advice = advise(data)
    if arguments.out:
        write_atomically(arguments.out, advice.config.to_yaml())
    if arguments.json:
        rows = [dict(zip(("setting", "value", "reason", "source"), row, strict=True)) for row in explained(advice)]
        values = {"preset": advice.preset, "recommendations": rows, "promise": describe(advice.promise)}
        values |= {"promise_source": source_of(advice.promise), "gaps": [*map(describe, advice.gaps)]}
        print(json.dumps(values, ensure_ascii=False, indent=1))
    else:
        print(render(data, advice))
    return 0


def explained(advice: Advice) -> list[tuple[str, object, str, str]]:
    """Return each setting with its value, the reason for it and the source of that."""
    return [(item.setting, item.value, item.text("reason"), item.text("source")) for item in advice.recommendations]


def source_of(promise: Promise) -> str:
    return text(f"Promise.{promise}.source")


def render(data: TrainingData, advice: Advice) -> str:
    device = f"{data.gpu_gib:.0f} GiB GPU" if data.gpu_gib else "no GPU"
    lines = [
        f"{data.minutes:.0f} minutes, {data.clips} clips, {data.speakers} speakers; {device}",
        f"{describe(advice.promise)} [{source_of(advice.promise)}]",
        *map(describe, advice.gaps),
        f"\nNearest preset: configs/{advice.preset}.yaml\n",
    ]
    rows = [(name, str(value), reason, f"[{source}]") for name, value, reason, source in explained(advice)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, *table])
