"""List, compare or delete checkpoints, or make one the finished model."""

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from utils.cli.runs import add_project, chosen_project, table
from utils.core.errors import PathMissingError
from utils.studio import runs
from utils.studio.facts import RunNameMissingError, UsageError
from utils.studio.paths import Project
from utils.xtts import checkpoints
from utils.xtts.checkpoints import MODEL, SavedCheckpoint, Which

HEADER = ("run", "step", "epoch", "train", "eval", "MB", "best", "samples", "")
LOSSES = ("epoch", "train_loss", "eval_loss", "eval_text", "eval_audio")
SETTINGS_SHOWN = 40  # characters of a value

Norms = dict[str, float]  # squared, by part


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
    opened = chosen_project(arguments)
    if arguments.action == "list":
        show_list(opened, arguments.name)
        return 0
    if not arguments.name:
        raise RunNameMissingError(arguments.action)
    ACTIONS[arguments.action](opened, arguments)
    return 0


def show_list(opened: Project, name: str) -> None:
    """Print a table of the checkpoints, newest first."""
    shown = [runs.find_run(opened, name)] if name else runs.list_runs(opened)
    rows = [_row(run.name, checkpoint) for run in shown for checkpoint in checkpoints.list_checkpoints(run.folder)]
    if not rows:
        print(f"There are no checkpoints in {opened.runs / name if name else opened.root}.")
        return
    print("\n".join(table([HEADER, *rows])))


def compare(opened: Project, arguments: argparse.Namespace) -> None:
    """Print the differences of two checkpoints."""
    if len(arguments.steps) != 2:
        raise UsageError("two_steps")
    first = _find(opened, arguments.name, arguments.steps[0])
    second = _find(opened, arguments.with_run or arguments.name, arguments.steps[1])
    left, right = _losses(first), _losses(second)
    weights = _weight_changes(first, second)
    print(f"{_title(first)} | {_title(second)}")
    _print_pairs((*LOSSES, *sorted({*first.scores, *second.scores})), left, right, _number)
    before, after = first.require_info().settings, second.require_info().settings
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    _print_pairs(changed, before, after, lambda value: str(value)[:SETTINGS_SHOWN])
    print(*weights, sep="\n")


def delete(opened: Project, arguments: argparse.Namespace) -> None:
    """Delete checkpoints, damaged ones too."""
    folder = runs.find_run(opened, arguments.name).folder
    known = {checkpoint.step: checkpoint for checkpoint in checkpoints.list_checkpoints(folder)}
    wanted = [_which(step) for step in arguments.steps]
    if not wanted:
        raise UsageError("no_step", arguments.name)
    for which in wanted:
        checkpoint = known.get(cast("int", which)) or checkpoints.find(folder, which)
        checkpoints.delete(checkpoint)
        print(f"{_title(checkpoint)} deleted{'; it was the best one' if checkpoint.is_best else ''}.")


def promote(opened: Project, arguments: argparse.Namespace) -> None:
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
    mark = "*" if checkpoint.is_best else ""
    size = f"{checkpoint.size / 1e6:.1f}"
    samples = str(len(checkpoint.samples) or "")
    progress = (f"{info.epoch:g}", _number(info.train_loss), _number(info.eval_loss)) if info else ("", "", "")
    problem = checkpoint.error.message if checkpoint.error else ""
    return (name, str(checkpoint.step), *progress, size, mark, samples, problem)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _title(checkpoint: SavedCheckpoint) -> str:
    return f"{checkpoint.run.name} step {checkpoint.step}"


def _print_pairs(
    names: Iterable[str], left: Mapping[str, Any], right: Mapping[str, Any], write: Callable[[Any], str]
) -> None:
    for name in names:
        print(f"{name}: {write(left.get(name))} | {write(right.get(name))}")


def _losses(checkpoint: SavedCheckpoint) -> dict[str, float | None]:
    info = checkpoint.require_info()
    return {name: getattr(info, name) for name in LOSSES} | checkpoint.scores


def _weight_changes(first: SavedCheckpoint, second: SavedCheckpoint) -> list[str]:
    """Return lines that say how far the weights of each part have moved."""
    moved, norms, mismatched = _compare_weights(first.folder / MODEL, second.folder / MODEL)
    lines = [
        f"{part}: weights changed by {math.sqrt(gap):.4g} (norm), {math.sqrt(gap / (norms[part] or 1.0)):.3%}"
        for part, gap in moved.items()
    ]
    if mismatched:
        lines.append(f"Not comparable: {len(mismatched)} weights, such as {min(mismatched)}.")
    return lines


def _compare_weights(first: Path, second: Path) -> tuple[Norms, Norms, set[str]]:
    """Return for each part the squared norms of the difference and of the weights, and what cannot be compared."""
    from safetensors import safe_open

    moved: Norms = defaultdict(float)
    norms: Norms = defaultdict(float)
    with safe_open(first, framework="pt") as one, safe_open(second, framework="pt") as two:
        mismatched = {*one.keys()} ^ {*two.keys()}
        for name in sorted({*one.keys()} & {*two.keys()}):
            before = one.get_tensor(name).float()
            after = two.get_tensor(name).float()
            if before.shape != after.shape:
                mismatched.add(name)
                continue
            part = name.partition(".")[0]
            moved[part] += float((after - before).square().sum())
            norms[part] += float(before.square().sum())
    return moved, norms, mismatched


ACTIONS: dict[str, Callable[[Project, argparse.Namespace], None]] = {
    "compare": compare,
    "delete": delete,
    "promote": promote,
}
