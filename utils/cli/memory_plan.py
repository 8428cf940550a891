"""Calculate what a run needs of a device's memory, part by part, and cut its batch so that it fits."""

import argparse
from pathlib import Path

from utils.config import TrainConfig
from utils.config.flags import add_flags, read_flags
from utils.core.storage import write_atomically

CONFIG = TrainConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the settings of a run, and the memory to plan for."""
    parser.epilog = "The effective batch, the model and the clips stay as they are. Exit code 1: nothing fits."
    parser.add_argument("--output", type=Path, metavar="FILE.yaml", help="write the settings that fit")
    parser.add_argument("--memory-gb", type=float, metavar="X", help="plan for a GPU of this size (default: this one)")
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan by part, the batch that fits, and the verdict."""
    from utils.training import memory

    config = read_flags(arguments, CONFIG)
    device = memory.gpu_of(arguments.memory_gb) if arguments.memory_gb else memory.detect(config)
    shape, longest = memory.shape_of(config), memory.longest_of(config)
    wanted = memory.predict(shape, config, longest, device)
    print(f"{'device':<24} {device.name}")
    print(f"{'longest clip':<24} {longest.positions} positions")
    print(f"{'as configured':<24} {memory.batch_words(config)}: {wanted.sentence}")
    try:
        tuned = memory.plan(config, shape, longest, device)
    except memory.NoRoomError:
        print(memory.table(wanted))
        raise
    outcome = memory.predict(shape, tuned, longest, device)
    print(f"{'planned':<24} {memory.batch_words(tuned)}: {outcome.sentence}\n\n{memory.table(outcome)}")
    if arguments.output:
        write_atomically(arguments.output, f"# python -m utils train --config {arguments.output}\n{tuned.to_yaml()}")
        print(f"\n{arguments.output} is written.")
    return 0
