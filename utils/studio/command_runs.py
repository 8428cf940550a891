"""Commands that a page starts as runs, so that they go on when it is closed: exports, comparisons, tests."""

import shlex
from collections.abc import Callable, Sequence

from utils.config import Config, Text
from utils.config.base import setting
from utils.studio import runs
from utils.studio.paths import Project


class CommandConfig(Config):
    """The arguments of a command, whose name is the kind of its run."""

    arguments: Text = setting("", "Arguments", "Arguments of the command, as in a shell.")


def start(kind: str, arguments: Sequence[str], project: Project, before: Callable[[], object] = lambda: None) -> None:
    """Start a command in a project, or queue it behind another of its kind; only the newest of a kind is kept."""
    for run in runs.list_runs(project, kind):
        if run.current_state().status not in runs.UNFINISHED:
            runs.delete(run)
    runs.start(kind, CommandConfig(arguments=shlex.join(arguments)), project, before=before)


def newest(kind: str, project: Project) -> runs.Run | None:
    """Return the run that is active, or the newest one."""
    return runs.active_run(project, kind) or runs.newest_run(project, kind)


def stop(kind: str, project: Project) -> None:
    """Stop all runs of a kind, queued ones first."""
    for run in runs.list_runs(project, kind):
        runs.stop_now(run, grace=1.0)
