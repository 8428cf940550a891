"""List, show, watch, annotate, stop, resume or delete runs."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from utils.config import Config
from utils.config.flags import add_flags
from utils.core import wording
from utils.core.errors import EXIT_INTERRUPTED, StorageError
from utils.core.events import read_events, read_tail, tail_offset
from utils.core.facts import to_json
from utils.core.paths import IS_CHECKOUT
from utils.core.wording import describe
from utils.studio import runs
from utils.studio.facts import RunNameMissingError
from utils.studio.paths import OUTPUT, Project, list_others, project
from utils.studio.progress import EventPrinter
from utils.studio.runs import Run
from utils.training.facts import Train
from utils.xtts import checkpoints

DETACH = "return immediately; the run continues in the background"
ACTIONS = ("list", "show", "watch", "note", "stop", "resume", "delete")
POLL_SECONDS = 0.2
STOPPING_SECONDS = 0.5  # that a run with nothing to save has to end by itself


def add_project(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose the project."""
    parser.add_argument("--project", default="default", help="name of the project (default: default)")
    add_output(parser)


def chosen_project(arguments: argparse.Namespace) -> Project:
    """Return the project that the flags of ``add_project`` name."""
    return project(arguments.project, arguments.output)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def add_output(parser: argparse.ArgumentParser) -> None:
    default = "output/" if IS_CHECKOUT else OUTPUT
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"folder with the projects (default: {default})")


def add_following(parser: argparse.ArgumentParser, config: type[Config]) -> None:
    """Add the flags of a command that starts a run with these settings and follows it."""
    add_json(parser)
    parser.add_argument("--detach", action="store_true", help=DETACH)
    add_flags(parser, config)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the events of the run as JSON lines")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS, help="default: list")
    parser.add_argument("name", nargs="?", default="", help="name of the run; not needed for list")
    add_json(parser)
    parser.add_argument("--detach", action="store_true", help=f"with resume: {DETACH}")
    parser.add_argument(
        "text", nargs="?", default="", help="with note: what to write; its first line is shown in lists"
    )
    parser.add_argument("--now", action="store_true", help="with stop: stop at once, without saving")


def run(arguments: argparse.Namespace) -> int:
    opened = chosen_project(arguments)
    runs.watch_queue(opened)
    if arguments.action == "list":
        show_list(opened, list_others(arguments.output))
        return 0
    if not arguments.name:
        raise RunNameMissingError(arguments.action)
    run = runs.find_run(opened, arguments.name)
    match arguments.action:
        case "show":
            show(run)
        case "watch":
            return follow(run, as_json=arguments.json)
        case "note":
            runs.write_note(run, arguments.text)
        case "stop":
            stop(run, now=arguments.now)
        case "resume":
            offset = tail_offset(run.events, 0)  # before the start, so that no new event is missed
            runs.resume(run)
            if not arguments.detach:
                return follow(run, offset=offset, as_json=arguments.json)
            print(f"{run.name} continues in the background.")
        case "delete":
            runs.delete(run)
            print(f"{run.name} deleted.")
    return 0


def show_list(opened: Project, others: list[StorageError]) -> None:
    """Print one line per run, and which folders are no projects."""
    for error in others:
        print(wording.text("project.not_a_project", values={"reason": error}), file=sys.stderr)
    shown = runs.list_runs(opened)
    if not shown:
        print(f"There are no runs in {opened.root}.")
    for run in shown:
        state = run.current_state()
        title = run.title.removeprefix(run.name)
        print(f"{run.name:<32} {state.status:<10} {' · '.join(filter(None, (title, state.reason())))}".rstrip())


def show(run: Run) -> None:
    """Print the state, the settings and the end of the log."""
    state = run.current_state()
    began = datetime.fromtimestamp(state.created).astimezone().isoformat(timespec="seconds")
    print(f"{run.name}: {state.status} (process {state.pid}, began {began}) {state.reason()}".rstrip())
    print(*filter(None, (run.note, read_tail(run.config))), sep="\n\n")
    print(read_tail(run.log))


def stop(run: Run, *, now: bool) -> None:
    """Stop a run, and print what it will do or how it has ended."""
    if state := runs.stop(run, now=now):
        print(f"{run.name} has ended: {state.status}. {state.reason()}".rstrip())
    else:
        print(f"{run.name} will save and stop at its next step.")


def start_and_follow(verb: str, config: Config, opened: Project, arguments: argparse.Namespace) -> int:
    """Start a run and follow it until it ends, or return at once."""
    start = runs.start(verb, config, opened)
    began = json.dumps({**to_json(start.fact), "kind": "run"}) if arguments.json else describe(start.fact)
    if arguments.detach:
        print(began, flush=True)
        return 0
    return follow(start.run, began, as_json=arguments.json)


# Long because Ctrl-C may come anywhere in the loop, and means what it says at that point.
def follow(run: Run, began: str = "", *, offset: int = 0, as_json: bool = False) -> int:
    """Print how the run began and its events until it ends.

    Ctrl-C saves the updates of a training and stops, a second one stops at once.
    """
    printer = EventPrinter(sys.stdout)
    has_unsaved = is_saving = False
    while True:
        try:
            if began:  # here, since whoever reads it may press Ctrl-C
                print(began, flush=True)
                began = ""
            state = run.current_state()  # before the events, so that the last ones are printed
            batch = read_events(run.events, offset)
            for event in batch.events:
                has_unsaved = has_unsaved or event["kind"] == Train.kind
                print(json.dumps(event, ensure_ascii=False), flush=True) if as_json else printer(event)
            if batch.offset > offset:
                offset = batch.offset
                continue  # there may be more than one batch
            if state.status not in runs.UNFINISHED:
                printer.close()
                break
            if state.status == "queued":
                runs.watch_queue(run.project)
            time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            if run.current_state().status not in runs.UNFINISHED:
                continue  # there is nothing to stop; how it ended comes next
            saves = "Saving and stopping. Press Ctrl-C again to skip saving."
            is_saving = has_unsaved and not is_saving
            message = saves if is_saving else "Stopping now."
            print(message, file=sys.stderr, flush=True) if as_json else printer.print(message)
            if is_saving:
                runs.stop_and_save(run)
            else:
                runs.stop_now(run, grace=STOPPING_SECONDS)
    return _end(run, asks=not as_json)  # not in the loop: Ctrl-C leaves its question


def _end(run: Run, *, asks: bool) -> int:
    """Report how a run ended; on a terminal, offer the best checkpoint of one that was stopped."""
    state = run.current_state()
    if state.status in {"lost", "unreadable"}:
        print(state.reason())  # any other end is an event
    if state.status in {"stopped", "lost"} and asks:
        print(f"To continue: python -m utils runs resume {run.name} --project {run.project.argument}")
    step = checkpoints.best_step(run.folder) if state.status == "stopped" and asks else None
    if step and sys.stdin.isatty() and sys.stdout.isatty():
        answer = input(f"Make its best checkpoint (step {step}) the finished model of {run.project.name}? [y/N] ")
        if answer.strip().lower() in {"y", "yes"}:
            from utils.studio.loading import make_ready

            print(f"The finished model is in {make_ready(checkpoints.find(run.folder, 'best'))}.")
    return {"finished": 0, "stopped": EXIT_INTERRUPTED}.get(state.status, 1)
