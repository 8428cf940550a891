"""List, compare or delete the checkpoints of runs, or make one of them the finished model."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from utils import runs
from utils.cli.runs import add_project
from utils.core.errors import RunError
from utils.core.paths import Project, project

if TYPE_CHECKING:
    from utils.xtts.checkpoints import Checkpoint, Which

HEADER = ("run", "step", "epoch", "train", "eval", "MB", "best", "samples", "")
SETTINGS_SHOWN = 40  # letters of a value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take what to do and with which checkpoints."""
    add_project(parser)
    parser.add_argument("action", nargs="?", default="list", choices=["list", *ACTIONS], help="default: list")
    parser.add_argument("name", nargs="?", default="", help="the run; list shows those of all runs without it")
    parser.add_argument("steps", nargs="*", default=[], help="a step, best or newest; compare takes two")
    parser.add_argument("--with-run", default="", help="with compare: the run of the second step")
    parser.add_argument("--half", action="store_true", help="with promote: store the GPT in half the size")
    parser.add_argument("--reference", type=Path, help="with promote: a clip with the voice (default: as the samples)")


def run(arguments: argparse.Namespace) -> int:
    """Do one thing with checkpoints."""
    place = project(arguments.project, arguments.output)
    if arguments.action == "list":
        return show_list(place, arguments.name)
    if not arguments.name:
        raise RunError(
            f"Which run? Write: checkpoints {arguments.action} RUN STEP.", hint="The names come with: checkpoints list."
        )
    return ACTIONS[arguments.action](place, arguments)


def show_list(place: Project, name: str) -> int:
    """Print a table of the checkpoints, newest first."""
    from utils.xtts.checkpoints import list_checkpoints

    found_runs = [runs.find_run(place, name)] if name else runs.list_runs(place)
    rows = [_row(found.name, one) for found in found_runs for one in list_checkpoints(found.folder)]
    if not rows:
        print(f"There is no checkpoint in {place.runs / name if name else place.root}.")
        return 0
    widths = [max(len(row[place]) for row in (HEADER, *rows)) for place in range(len(HEADER))]
    for row in (HEADER, *rows):
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def compare(place: Project, arguments: argparse.Namespace) -> int:
    """Print what two checkpoints do not share."""
    from utils.training.checkpoint_diff import compare as compared

    if len(arguments.steps) != 2:
        raise RunError("Comparing takes two steps.", hint="Write: checkpoints compare RUN STEP STEP.")
    first = _find(place, arguments.name, arguments.steps[0])
    second = _find(place, arguments.with_run or arguments.name, arguments.steps[1])
    found = compared(first, second)
    print(f"{_title(first)} | {_title(second)}")
    for figure, (one, two) in found.losses.items():
        print(f"{figure}: {_number(one)} | {_number(two)}")
    for setting, (before, after) in found.settings.items():
        print(f"{setting}: {str(before)[:SETTINGS_SHOWN]} | {str(after)[:SETTINGS_SHOWN]}")
    for part, (length, share) in found.moved.items():
        print(f"{part}: weights moved by {length:.4g}, {share:.3%} of their length")
    if found.unlike:
        print(f"Not comparable: {len(found.unlike)} weights, such as {found.unlike[0]}.")
    return 0


def delete(place: Project, arguments: argparse.Namespace) -> int:
    """Delete checkpoints, damaged ones too."""
    from utils.xtts import checkpoints

    folder = runs.find_run(place, arguments.name).folder
    known = {one.step: one for one in checkpoints.list_checkpoints(folder)}
    wanted = [_which(step) for step in arguments.steps]
    if not wanted:
        raise RunError("Which one?", hint=f"Write: checkpoints delete {arguments.name} STEP.")
    for which in wanted:
        one = known.get(cast("int", which)) or checkpoints.find(folder, which)
        checkpoints.delete(one)
        print(f"{_title(one)} is deleted{'; it was the best one' * one.is_best}.")
    return 0


def promote(place: Project, arguments: argparse.Namespace) -> int:
    """Make a checkpoint the finished model of the project."""
    from utils.speech.loaded_model import training_reference
    from utils.xtts.finalize import promote as promoted

    if len(arguments.steps) > 1:
        raise RunError("Only one checkpoint can be the finished model.", hint="Name one step.")
    chosen = _find(place, arguments.name, arguments.steps[0] if arguments.steps else "best")
    if arguments.reference and not arguments.reference.is_file():
        raise RunError(f"There is no clip {arguments.reference}.")
    voice = arguments.reference or training_reference(chosen)
    folder = promoted(chosen, place.ready, voice, half=arguments.half)
    print(f"{_title(chosen)} is now {folder}; it speaks with the voice of {voice or 'its base model'}.")
    return 0


def _find(place: Project, name: str, step: str) -> "Checkpoint":
    from utils.xtts.checkpoints import find

    return find(runs.find_run(place, name).folder, _which(step))


def _which(step: str) -> "Which":
    step = step.removeprefix("step_")
    if step.isdecimal():
        return int(step)
    if step in {"best", "newest"}:
        return cast("Which", step)
    raise RunError(f"{step!r} is no step.", hint="Write a number, best or newest.")


def _row(name: str, one: "Checkpoint") -> tuple[str, ...]:
    about = one.info
    mark, size, samples = "*" * one.is_best, f"{one.size / 1e6:.1f}", str(len(one.samples) or "")
    if about is None:
        return (name, str(one.step), "", "", "", size, mark, samples, f"damaged: {one.error}")
    losses = _number(about.train_loss), _number(about.eval_loss)
    return (name, str(one.step), f"{about.epoch:g}", *losses, size, mark, samples, "")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _title(one: "Checkpoint") -> str:
    return f"{one.run.name} step {one.step}"


ACTIONS: dict[str, Callable[[Project, argparse.Namespace], int]] = {
    "compare": compare,
    "delete": delete,
    "promote": promote,
}
