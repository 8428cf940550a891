"""List, show, watch, stop, resume or delete runs."""

import argparse
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

from utils import runs
from utils.config import Config
from utils.core.errors import RunError
from utils.core.events import Event, format_event, read_events, read_tail, tail_offset
from utils.core.paths import OUTPUT, Project, project
from utils.runs import Run

ACTIONS = ("list", "show", "watch", "note", "stop", "resume", "delete")
POLL_SECONDS = 0.2
BAR = 30
CLEAR = "\r\033[K"


def add_project(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose the project."""
    parser.add_argument("--project", default="default", help="name of the project (default: default)")
    add_output(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder with the projects (default: output/)")


def add_detach(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--detach", action="store_true", help="return immediately; the run continues in the background")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS, help="default: list")
    parser.add_argument("name", nargs="?", default="", help="name of the run; not needed for list")
    parser.add_argument(
        "text", nargs="?", default="", help="with note: what to write; its first line is shown in lists"
    )
    parser.add_argument("--now", action="store_true", help="with stop: stop at once, without saving")


def run(arguments: argparse.Namespace) -> int:
    opened = project(arguments.project, arguments.output)
    if arguments.action == "list":
        show_list(opened)
        return 0
    if not arguments.name:
        raise RunError(f"No run given. Usage: runs {arguments.action} NAME.", hint="See: runs list.")
    run = runs.find_run(opened, arguments.name)
    match arguments.action:
        case "show":
            show(run)
        case "watch":
            return follow(run)
        case "note":
            runs.write_note(run, arguments.text)
        case "stop" if arguments.now:
            runs.stop_now(run)
        case "stop":
            runs.stop_and_save(run)
            print(f"{run.name} will save and stop at its next step.")
        case "resume":
            offset = tail_offset(run.events, 0)  # before the start, so that no new event is missed
            return follow(runs.resume(run), offset=offset)
        case "delete":
            runs.delete(run)
            print(f"{run.name} deleted.")
    return 0


def show_list(opened: Project) -> None:
    """Print one line per run."""
    shown = runs.list_runs(opened)
    if not shown:
        print(f"There are no runs in {opened.root}.")
    for run in shown:
        state = run.current_state()
        title = run.title.removeprefix(run.name)
        print(f"{run.name:<32} {state.status:<10} {' · '.join(filter(None, (title, state.message)))}".rstrip())


def show(run: Run) -> None:
    """Print the state, the settings and the end of the log."""
    state = run.current_state()
    began = datetime.fromtimestamp(state.created).astimezone().isoformat(timespec="seconds")
    print(f"{run.name}: {state.status} (process {state.pid}, began {began}) {state.message}".rstrip())
    print(*filter(None, (run.note, read_tail(run.config))), sep="\n\n")
    print(read_tail(run.log))


def start_and_follow(verb: str, config: Config, opened: Project, *, detach: bool) -> int:
    """Start a run and follow it until it ends, or return at once."""
    run = runs.start(verb, config, opened)
    print(f"{run.name} is running in {run.folder}", flush=True)
    return 0 if detach else follow(run)


def follow(run: Run, *, offset: int = 0) -> int:
    """Print events until the run ends; Ctrl-C stops and saves, a second one stops at once."""
    is_stopping = False
    while True:
        try:
            state = run.current_state()  # before the events, so that the last ones are printed
            batch = read_events(run.events, offset)
            for event in batch.events:
                print_event(event)
            if batch.offset > offset:
                offset = batch.offset
                continue  # there may be more than one batch
            if state.status not in runs.ACTIVE:
                return _exit_code(run.current_state())
            time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            print("Stopping now." if is_stopping else "Saving and stopping; Ctrl-C again skips saving.", flush=True)
            (runs.stop_now if is_stopping else runs.stop_and_save)(run)
            is_stopping = True


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
