"""Take a real update with the longest clips, of random numbers, and measure its time and its peak of memory.

Neither data nor a downloaded model is needed; the model has the sizes of the one that would be trained.
"""

import argparse
from typing import TYPE_CHECKING

from utils.config import TrainConfig
from utils.config.flags import add_flags, read_flags

if TYPE_CHECKING:
    from utils.training.memory_peaks import Device
    from utils.training.rehearsal import Rehearsal

CONFIG = TrainConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the settings of a run."""
    parser.epilog = "Exit code 1: there is not enough memory. Several processes are measured as one."
    parser.add_argument("--find", action="store_true", help="try which batch is the largest that this device holds")
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    """Print the switches that act, seconds, peak, what was calculated, and the verdict."""
    from utils.training import memory
    from utils.training.memory_peaks import clips_at_once
    from utils.training.rehearsal import Rehearsal, random_gpt
    from utils.training.speedups.dropout import set_dropout
    from utils.training_optimizations import TrainingOptimizer

    config = memory.changed(read_flags(arguments, CONFIG), {"num_processes": 1, "sharding": "none"})
    device, shape, longest = memory.detect(config), memory.shape_of(config), memory.longest_of(config)
    planned = memory.predict(shape, config, longest, device)
    print(f"{'device':<24} {device.name}")
    print(f"{'batch':<24} {memory.batch_words(config)}, {longest.positions} positions each")
    print(f"{'calculated':<24} {memory.in_gib(planned.peak)} of {memory.in_gib(planned.available)}", flush=True)
    if device.kind == "cpu" and not planned.fits:
        memory.plan(memory.changed(config, {"grad_acumm": 1}), shape, longest, device)  # says what would help
        raise memory.NoRoomError(planned.sentence, hint="Choose a smaller batch_size and a larger grad_acumm.")
    switches = TrainingOptimizer.from_config(config)
    gpt = random_gpt(shape)
    for change in (set_dropout(gpt, config.dropout), *switches.apply(gpt).values()):
        print(f"{change.name:<24} {change.changed} changed; {change.detail}", flush=True)
    rehearsal = Rehearsal(gpt, config, longest, switches.device, switches.get_mixed_precision_config().torch_dtype)
    return (
        find(rehearsal, config, device)
        if arguments.find
        else measure(rehearsal, clips_at_once(config, longest), device)
    )


def measure(rehearsal: "Rehearsal", clips: int, device: "Device") -> int:
    """Measure one batch and print what it took."""
    import torch

    from utils.training import memory

    try:
        trial = rehearsal.measure(clips)
    except torch.OutOfMemoryError as error:
        raise memory.NoRoomError(
            f"{clips} of the longest clips do not fit into {memory.in_gib(device.memory)}.",
            hint="See what would help with: python -m utils memory-plan.",
        ) from error
    print(f"{'seconds a batch':<24} {trial.seconds:.2f}")
    kind = "allocated by torch" if device.kind == "cuda" else "of this process, with freed memory that it still holds"
    print(f"{'measured peak':<24} {memory.in_gib(trial.peak)} {kind}")
    fits = trial.peak <= device.memory
    print(f"{'verdict':<24} {'fits into' if fits else 'does not fit into'} {memory.in_gib(device.memory)}")
    return int(not fits)


def find(rehearsal: "Rehearsal", config: TrainConfig, device: "Device") -> int:
    """Try batches and print the largest that passed, less a margin."""
    from utils.training import memory
    from utils.training.batch_size import find_optimal_batch_size

    def fits(clips: int) -> bool:
        trial = rehearsal.measure(clips)
        print(f"{f'{clips} clips':<24} {trial.seconds:.2f} s, {memory.in_gib(trial.peak)}", flush=True)
        return trial.peak <= device.memory

    found = find_optimal_batch_size(config.batch_size, config.batch_size * config.grad_acumm, fits)
    print(f"{'largest batch':<24} {found} clips")
    return 0
