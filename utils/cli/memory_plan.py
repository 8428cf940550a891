"""Estimate the memory that a run needs, part by part, and find the largest batch that fits."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from utils.config import TrainConfig
from utils.config.flags import add_flags, read_flags
from utils.core import wording
from utils.core.storage import write_atomically

if TYPE_CHECKING:
    from utils.training.facts import MemoryPlan

CONFIG = TrainConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "The effective batch, the model and the clips stay the same. Exit code 1: nothing fits."
    parser.add_argument("--output", type=Path, metavar="FILE.yaml", help="write the settings that fit to this file")
    parser.add_argument("--memory-gb", type=float, metavar="X", help="plan for a GPU of this size (default: this one)")
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    """Print the estimate as configured and the batch that fits."""
    from utils.training import memory
    from utils.training.errors import NotEnoughMemoryError
    from utils.training.model_size import ClipSize

    config = read_flags(arguments, CONFIG)
    device = memory.Device.gpu(arguments.memory_gb) if arguments.memory_gb else memory.Device.detect(config)
    configured = memory.estimate(config, device)
    print(f"{'device':<24} {device.name}")
    print(f"{'longest clip':<24} {ClipSize.from_config(config).positions} positions")
    print(f"{'as configured':<24} {memory.batch_description(config)}: {wording.describe(configured)}", flush=True)
    try:
        fitted, result = memory.fit_batch(config, device)
    except NotEnoughMemoryError:
        print(table(configured))
        raise
    largest = f"{memory.batch_description(fitted)}: {wording.describe(result)}"
    print(f"{'largest that fits':<24} {largest}\n\n{table(result)}")
    if arguments.output:
        write_atomically(arguments.output, f"# python -m utils train --config {arguments.output}\n{fitted.to_yaml()}")
        print(f"\nWrote {arguments.output}.")
    return 0


def table(plan: "MemoryPlan") -> str:
    sizes = {**plan.parts, "peak": plan.needed}
    rows = (
        (name, f"{wording.size(size):>8}", wording.text(f"MemoryPart.{name}.meaning")) for name, size in sizes.items()
    )
    return "\n".join(f"{name:<24} {size}  {meaning}" for name, size, meaning in rows)
