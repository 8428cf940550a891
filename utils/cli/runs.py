"""List, show, watch, stop, resume or delete runs."""

import argparse
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from utils import runs
from utils.config import Config
from utils.core.errors import RunError
from utils.core.events import Event, format_event, read_events, read_tail, tail_offset
from utils.core.paths import OUTPUT, Project, project

POLL_SECONDS = 0.2
BAR = 30
CLEAR = "\r\033[K"


def add_project(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which project is meant."""
    parser.add_argument("--project", default="default", help="name of the project (default: default)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the projects (default: output/)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take what to do and with which run."""
    add_project(parser)
    parser.add_argument("action", nargs="?", default="list", choices=["list", *ACTIONS], help="default: list")
    parser.add_argument("name", nargs="?", default="", help="the run; not needed for list")
    parser.add_argument("--now", action="store_true", help="with stop: end it at once, without saving")


def run(arguments: argparse.Namespace) -> int:
    """Do one thing with the runs of a project."""
    place = project(arguments.project, arguments.output)
    if arguments.action == "list":
        return show_list(place)
    if not arguments.name:
        raise RunError(f"Which run? Write: runs {arguments.action} NAME.", hint="The names come with: runs list.")
    return ACTIONS[arguments.action](runs.find_run(place, arguments.name), arguments)


def show_list(place: Project) -> int:
    """Print one line a run."""
    found_runs = runs.list_runs(place)
    if not found_runs:
        print(f"There is no run in {place.root}.")
    for found in found_runs:
        state = found.current_state()
        print(f"{found.name:<32} {state.status:<10} {state.message}".rstrip())
    return 0


def show(found: runs.Run, _arguments: argparse.Namespace) -> int:
    """Print the state, the settings and the end of the log."""
    state = found.current_state()
    began = datetime.fromtimestamp(state.created).astimezone().isoformat(timespec="seconds")
    print(f"{found.name}: {state.status} (process {state.pid}, began {began}) {state.message}".rstrip())
    print(read_tail(found.config))
    print(read_tail(found.log))
    return 0


def stop(found: runs.Run, arguments: argparse.Namespace) -> int:
    """Stop a run, saving first unless told otherwise."""
    if arguments.now:
        runs.stop_now(found)
    else:
        runs.stop_and_save(found)
        print(f"{found.name} will save and end at its next step.")
    return 0


def resume(found: runs.Run, _arguments: argparse.Namespace) -> int:
    """Go on with a run and follow it."""
    told = tail_offset(found.events, 0)  # before the start: what it tells first is new
    return follow(runs.resume(found), offset=told)


def delete(found: runs.Run, _arguments: argparse.Namespace) -> int:
    """Delete a run that is not at work."""
    runs.delete(found)
    print(f"{found.name} is deleted.")
    return 0


def watch(found: runs.Run, _arguments: argparse.Namespace) -> int:
    """Follow a run until it ends."""
    return follow(found)


def start_and_follow(verb: str, config: Config, arguments: argparse.Namespace) -> int:
    """Start a run as the page does; follow it unless told to leave it alone."""
    started = runs.start(verb, config, project(arguments.project, arguments.output))
    print(f"{started.name} is at work in {started.folder}", flush=True)
    return 0 if arguments.detach else follow(started)


def follow(found: runs.Run, *, offset: int = 0) -> int:
    """Print events until the run ends; Ctrl-C asks it to save and end, a second one ends it at once."""
    asked = False
    while True:
        try:
            before, (offset, status) = offset, _print_new(found, offset)
            if offset > before:
                continue  # one look is bounded: read on before judging that all has been said
            if status not in runs.ACTIVE:
                return _farewell(found.current_state())
            time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            print("Stopping at once." if asked else "Saving and stopping; Ctrl-C again stops at once.", flush=True)
            (runs.stop_now if asked else runs.stop_and_save)(found)
            asked = True


def _print_new(found: runs.Run, offset: int) -> tuple[int, runs.Status]:
    state = found.current_state()  # before the events: what it wrote last is then surely printed
    look = read_events(found.events, offset)
    for event in look.events:
        print_event(event)
    return look.offset, state.status


def print_event(event: Event) -> None:
    """Print one event; on a terminal, progress is a bar that stays in its line."""
    if not sys.stdout.isatty():
        print(format_event(event), flush=True)
    elif event["kind"] == "progress":
        print(f"{CLEAR}{progress_bar(event)}", end="", flush=True)
    else:
        print(f"{CLEAR}{format_event(event)}", flush=True)


def progress_bar(event: Event) -> str:
    """Draw how far a run is and how long it will take."""
    step, total = float(str(event["step"])), float(str(event["total"])) or 1.0
    share = float(str(event.get("percent", 100 * step / total))) / 100
    left = event.get("seconds_left")
    ends = f", about {timedelta(seconds=round(float(str(left))))} left" if left is not None else ""
    return f"[{'#' * round(share * BAR):-<{BAR}}] {share:4.0%}  {step:.0f} of {total:.0f}{ends}"


def _farewell(state: runs.State) -> int:
    if state.status in {runs.Status.LOST, runs.Status.UNREADABLE}:
        print(state.message)  # any other end has told itself as an event
    return 0 if state.status in {runs.Status.FINISHED, runs.Status.STOPPED} else 1


ACTIONS: dict[str, Callable[[runs.Run, argparse.Namespace], int]] = {
    "show": show,
    "watch": watch,
    "stop": stop,
    "resume": resume,
    "delete": delete,
}
