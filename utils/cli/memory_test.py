"""Run a real update with the longest clips and random data, and measure its time and peak memory.

Needs neither data nor a downloaded model: the model has the sizes of the configured one and random weights.
"""

import argparse
from typing import TYPE_CHECKING

from utils.config import TrainConfig
from utils.config.flags import add_flags, read_flags
from utils.core import wording

if TYPE_CHECKING:
    from utils.training.memory import Device
    from utils.training.model_size import ClipSize
    from utils.training.probe import Probe

CONFIG = TrainConfig
GIB = 2**30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Exit code 1: there is not enough memory. Several processes are measured as one."
    parser.add_argument("--find", action="store_true", help="find the largest batch that fits on this device")
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    """Print the active optimizations, the estimate, and what was measured."""
    from utils.training import memory
    from utils.training.errors import PlanDoesNotFitError
    from utils.training.model_size import ClipSize, ModelSize
    from utils.training.probe import probe
    from utils.xtts.device import own_device

    config = memory.changed(read_flags(arguments, CONFIG), {"num_processes": 1})
    device = memory.Device.detect(config)
    clip = ClipSize.from_config(config)
    estimate = memory.estimate(config, device)
    print(f"{'device':<24} {device.name}")
    print(f"{'batch':<24} {memory.batch_description(config)}, {clip.positions} positions each")
    print(f"{'estimate':<24} {wording.describe(estimate)}", flush=True)
    if device.kind == "cpu" and not estimate.fits:  # the system would kill other programs
        memory.fit_batch(memory.changed(config, {"grad_acumm": 1}), device)
        raise PlanDoesNotFitError(estimate.needed, estimate.available, ("a smaller batch_size, a larger grad_acumm",))
    with probe(config, ModelSize.from_config(config), own_device(config.device)) as probed:
        for change in probed.changes:
            print(wording.describe(change), flush=True)
        return (find_largest if arguments.find else measure)(probed, clip, device)


def find_largest(probed: "Probe", clip: "ClipSize", device: "Device") -> int:
    """Try larger and larger batches, and print the last one that fits."""
    from utils.training import memory

    config = probed.config
    maximum = config.batch_size * config.grad_acumm
    if device.kind == "cpu":  # a batch beyond the estimate could exhaust the whole computer
        maximum = memory.fit_batch(memory.changed(config, {"batch_tokens": 0}), device)[0].batch_size
    print(f"{'largest batch':<24} {probed.largest_batch(clip, maximum, device.memory)} clips")
    return 0


def measure(probed: "Probe", clip: "ClipSize", device: "Device") -> int:
    """Measure one batch and print its cost."""
    from utils.training.model_size import clips_per_batch

    found = probed.measure(clip, clips_per_batch(probed.config, clip))
    kind = "allocated by torch" if device.kind != "cpu" else "used by this process, including cached memory"
    print(f"{'seconds per batch':<24} {found.seconds:.2f}")
    print(f"{'measured peak':<24} {found.peak / GIB:.2f} GiB {kind}")
    fits = found.peak <= device.memory
    print(f"{'result':<24} {'fits' if fits else 'does not fit'} into {device.memory / GIB:.1f} GiB")
    return int(not fits)
