"""Recommend settings for a dataset and a device, and say where each value comes from."""

import argparse
import dataclasses
import json
from pathlib import Path

from utils.cli.runs import add_project
from utils.config import TrainConfig
from utils.core import monitor
from utils.core.paths import project
from utils.core.storage import write_atomically
from utils.core.wording import describe
from utils.dataset.store import open_store
from utils.studio.facts import InputError, Problem
from utils.training.advice import Advice, TrainingData, advise, training_data


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
        values = {**dataclasses.asdict(advice), "recommendations": [item._asdict() for item in advice.recommendations]}
        print(json.dumps(values, ensure_ascii=False, indent=1))
    else:
        print(render(data, advice))
    return 0


def render(data: TrainingData, advice: Advice) -> str:
    device = f"{data.gpu_gib:.0f} GiB GPU" if data.gpu_gib else "no GPU"
    lines = [
        f"{data.minutes:.0f} minutes, {data.clips} clips, {data.speakers} speakers; {device}",
        f"{describe(advice.promise)} [{advice.promise_source}]",
        *map(describe, advice.gaps),
        f"\nNearest preset: configs/{advice.preset}.yaml\n",
    ]
    rows = [(item.setting, str(item.value), item.reason, f"[{item.source}]") for item in advice.recommendations]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, *table])
