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
    """Add the flags that choose the project."""
    parser.add_argument("--project", default="default", help="name of the project (default: default)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder with the projects (default: output/)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_project(parser)
    parser.add_argument("action", nargs="?", default="list", choices=["list", *ACTIONS], help="default: list")
    parser.add_argument("name", nargs="?", default="", help="name of the run; not needed for list")
    parser.add_argument("--now", action="store_true", help="with stop: stop at once, without saving")


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    place = project(arguments.project, arguments.output)
    if arguments.action == "list":
        return show_list(place)
    if not arguments.name:
        raise RunError(f"No run given. Usage: runs {arguments.action} NAME.", hint="See: runs list.")
    return ACTIONS[arguments.action](runs.find_run(place, arguments.name), arguments)


def show_list(place: Project) -> int:
    """Print one line per run."""
    found_runs = runs.list_runs(place)
    if not found_runs:
        print(f"There are no runs in {place.root}.")
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
    """Stop a run; it saves first unless --now is given."""
    if arguments.now:
        runs.stop_now(found)
    else:
        runs.stop_and_save(found)
        print(f"{found.name} will save and stop at its next step.")
    return 0


def resume(found: runs.Run, _arguments: argparse.Namespace) -> int:
    """Resume a run and follow it."""
    offset = tail_offset(found.events, 0)  # before the start, so that no new event is missed
    return follow(runs.resume(found), offset=offset)


def delete(found: runs.Run, _arguments: argparse.Namespace) -> int:
    """Delete a run that is not running."""
    runs.delete(found)
    print(f"{found.name} deleted.")
    return 0


def watch(found: runs.Run, _arguments: argparse.Namespace) -> int:
    """Follow a run until it ends."""
    return follow(found)


def start_and_follow(verb: str, config: Config, arguments: argparse.Namespace) -> int:
    """Start a run; follow it unless --detach is given."""
    started = runs.start(verb, config, project(arguments.project, arguments.output))
    print(f"{started.name} is running in {started.folder}", flush=True)
    return 0 if arguments.detach else follow(started)


def follow(found: runs.Run, *, offset: int = 0) -> int:
    """Print events until the run ends; Ctrl-C stops and saves, a second one stops at once."""
    is_stopping = False
    while True:
        try:
            before, (offset, status) = offset, _print_new(found, offset)
            if offset > before:
                continue  # there may be more than one batch
            if status not in runs.ACTIVE:
                return _exit_code(found.current_state())
            time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            print(
                "Stopping now." if is_stopping else "Saving and stopping; Ctrl-C again skips saving.",
                flush=True,
            )
            (runs.stop_now if is_stopping else runs.stop_and_save)(found)
            is_stopping = True


def _print_new(found: runs.Run, offset: int) -> tuple[int, runs.Status]:
    state = found.current_state()  # before the events, so that the last ones are printed
    batch = read_events(found.events, offset)
    for event in batch.events:
        print_event(event)
    return batch.offset, state.status


def print_event(event: Event) -> None:
    """Print one event; on a terminal, progress is a bar in one line."""
    if not sys.stdout.isatty():
        print(format_event(event), flush=True)
    elif event["kind"] == "progress":
        print(f"{CLEAR}{progress_bar(event)}", end="", flush=True)
    else:
        print(f"{CLEAR}{format_event(event)}", flush=True)


def progress_bar(event: Event) -> str:
    """Draw a progress bar with the remaining time."""
    step, total = float(str(event["step"])), float(str(event["total"])) or 1.0
    share = float(str(event.get("percent", 100 * step / total))) / 100
    left = event.get("seconds_left")
    ends = f", about {timedelta(seconds=round(float(str(left))))} left" if left is not None else ""
    return f"[{'#' * round(share * BAR):-<{BAR}}] {share:4.0%}  {step:.0f} of {total:.0f}{ends}"


def _exit_code(state: runs.State) -> int:
    if state.status in {runs.Status.LOST, runs.Status.UNREADABLE}:
        print(state.message)  # any other end is an event
    return 0 if state.status in {runs.Status.FINISHED, runs.Status.STOPPED} else 1


ACTIONS: dict[str, Callable[[runs.Run, argparse.Namespace], int]] = {
    "show": show,
    "watch": watch,
    "stop": stop,
    "resume": resume,
    "delete": delete,
}
