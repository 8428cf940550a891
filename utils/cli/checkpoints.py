"""List, compare or delete checkpoints, or make one the finished model."""

import argparse
import math
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from utils.cli.runs import add_project, table
from utils.core.errors import PathMissingError
from utils.studio import runs
from utils.studio.facts import RunNameMissingError, UsageError
from utils.studio.paths import Project, project
from utils.xtts import checkpoints
from utils.xtts.checkpoints import MODEL, SavedCheckpoint, Which

HEADER = ("run", "step", "epoch", "train", "eval", "MB", "best", "samples", "")
LOSSES = ("epoch", "train_loss", "eval_loss", "eval_text", "eval_audio")
SETTINGS_SHOWN = 40  # characters of a value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument("action", nargs="?", default="list", choices=["list", *ACTIONS], help="default: list")
    parser.add_argument("name", nargs="?", default="", help="name of the run; list shows all runs without it")
    parser.add_argument("steps", nargs="*", default=[], help="step number, best or newest; compare takes two")
    parser.add_argument("--with-run", default="", help="with compare: run of the second checkpoint")
    parser.add_argument("--half", action="store_true", help="with promote: store the GPT in half precision")
    parser.add_argument(
        "--without-ema", action="store_true", help="with promote: use the weights that are not averaged (enable_ema)"
    )
    parser.add_argument("--reference", type=Path, help="with promote: reference clip (default: the one of the samples)")


def run(arguments: argparse.Namespace) -> int:
    opened = project(arguments.project, arguments.output)
    if arguments.action == "list":
        return show_list(opened, arguments.name)
    if not arguments.name:
        raise RunNameMissingError(arguments.action)
    return ACTIONS[arguments.action](opened, arguments)


def show_list(opened: Project, name: str) -> int:
    """Print a table of the checkpoints, newest first."""
    shown = [runs.find_run(opened, name)] if name else runs.list_runs(opened)
    rows = [_row(run.name, checkpoint) for run in shown for checkpoint in checkpoints.list_checkpoints(run.folder)]
    if not rows:
        print(f"There are no checkpoints in {opened.runs / name if name else opened.root}.")
        return 0
    print("\n".join(table([HEADER, *rows])))
    return 0


def compare(opened: Project, arguments: argparse.Namespace) -> int:
    """Print the differences of two checkpoints."""
    if len(arguments.steps) != 2:
        raise UsageError("two_steps")
    first = _find(opened, arguments.name, arguments.steps[0])
    second = _find(opened, arguments.with_run or arguments.name, arguments.steps[1])
    found = difference(first, second)
    print(f"{_title(first)} | {_title(second)}")
    for name, (left, right) in found.losses.items():
        print(f"{name}: {_number(left)} | {_number(right)}")
    for name, (before, after) in found.settings.items():
        print(f"{name}: {str(before)[:SETTINGS_SHOWN]} | {str(after)[:SETTINGS_SHOWN]}")
    for part, (length, share) in found.moved.items():
        print(f"{part}: weights changed by {length:.4g} (norm), {share:.3%}")
    if found.mismatched:
        print(f"Not comparable: {len(found.mismatched)} weights, such as {found.mismatched[0]}.")
    return 0


def delete(opened: Project, arguments: argparse.Namespace) -> int:
    """Delete checkpoints, damaged ones too."""
    folder = runs.find_run(opened, arguments.name).folder
    known = {checkpoint.step: checkpoint for checkpoint in checkpoints.list_checkpoints(folder)}
    wanted = [_which(step) for step in arguments.steps]
    if not wanted:
        raise UsageError("no_step", arguments.name)
    for which in wanted:
        checkpoint = known.get(cast("int", which)) or checkpoints.find(folder, which)
        checkpoints.delete(checkpoint)
        print(f"{_title(checkpoint)} deleted{'; it was the best one' * checkpoint.is_best}.")
    return 0


def promote(opened: Project, arguments: argparse.Namespace) -> int:
    """Make a checkpoint the finished model of the project."""
    from utils.studio.loading import make_ready, training_reference

    if len(arguments.steps) > 1:
        raise UsageError("one_step")
    chosen = _find(opened, arguments.name, arguments.steps[0] if arguments.steps else "best")
    if arguments.reference and not arguments.reference.is_file():
        raise PathMissingError(arguments.reference)
    voice = arguments.reference or training_reference(chosen)
    folder = make_ready(chosen, voice, half=arguments.half, without_ema=arguments.without_ema)
    print(f"{_title(chosen)} is now {folder}; its voice is from {voice or 'the base model'}.")
    return 0


def _find(opened: Project, name: str, step: str) -> SavedCheckpoint:
    return checkpoints.find(runs.find_run(opened, name).folder, _which(step))


def _which(step: str) -> Which:
    step = step.removeprefix("step_")
    if step.isdecimal():
        return int(step)
    if step in {"best", "newest"}:
        return cast("Which", step)
    raise UsageError("not_a_step", step)


def _row(name: str, checkpoint: SavedCheckpoint) -> tuple[str, ...]:
    info = checkpoint.info
    mark = "*" * checkpoint.is_best
    size = f"{checkpoint.size / 1e6:.1f}"
    samples = str(len(checkpoint.samples) or "")
    progress = (f"{info.epoch:g}", _number(info.train_loss), _number(info.eval_loss)) if info else ("", "", "")
    problem = checkpoint.error.message if checkpoint.error else ""
    return (name, str(checkpoint.step), *progress, size, mark, samples, problem)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _title(checkpoint: SavedCheckpoint) -> str:
    return f"{checkpoint.run.name} step {checkpoint.step}"


@dataclass(frozen=True)
class Comparison:
    """Differences between two checkpoints."""

    settings: dict[str, tuple[object, object]]  # those that differ, with both values; None if one has no such setting
    losses: dict[str, tuple[float | None, float | None]]  # and the scores of the spoken sentences
    moved: dict[str, tuple[float, float]]  # norm of the difference by part, absolute and relative to the weights' norm
    mismatched: tuple[str, ...]  # weights that only one of them has, or with a different shape


def difference(first: SavedCheckpoint, second: SavedCheckpoint) -> Comparison:
    """Return how two checkpoints differ, one weight at a time."""
    before = first.require_info()
    after = second.require_info()
    names = sorted(before.settings.keys() | after.settings.keys())
    settings = {name: (before.settings.get(name), after.settings.get(name)) for name in names}
    return Comparison(
        {name: pair for name, pair in settings.items() if pair[0] != pair[1]},
        {name: (getattr(before, name), getattr(after, name)) for name in LOSSES}
        | {name: (first.scores.get(name), second.scores.get(name)) for name in sorted({*first.scores, *second.scores})},
        *_moved(first, second),
    )


def _moved(first: SavedCheckpoint, second: SavedCheckpoint) -> tuple[dict[str, tuple[float, float]], tuple[str, ...]]:
    squares: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    from safetensors import safe_open

    with ExitStack() as stack:
        one = stack.enter_context(safe_open(first.folder / MODEL, framework="pt"))
        two = stack.enter_context(safe_open(second.folder / MODEL, framework="pt"))
        shared = sorted(set(one.keys()) & set(two.keys()))
        mismatched = set(one.keys()) ^ set(two.keys())
        for name in shared:
            before = one.get_tensor(name).float()
            after = two.get_tensor(name).float()
            if before.shape != after.shape:
                mismatched.add(name)
                continue
            part = squares[name.partition(".")[0]]
            part[0] += float((after - before).square().sum())
            part[1] += float(before.square().sum())
    moved = {part: (math.sqrt(gap), math.sqrt(gap / (own or 1.0))) for part, (gap, own) in squares.items()}
    return moved, tuple(sorted(mismatched))


ACTIONS: dict[str, Callable[[Project, argparse.Namespace], int]] = {
    "compare": compare,
    "delete": delete,
    "promote": promote,
}
