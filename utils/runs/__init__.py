"""Runs and their child processes: start, find, watch, stop, resume and delete them."""

from utils.runs.run import (
    ACTIVE,
    Run,
    State,
    Status,
    active_run,
    create,
    delete,
    find_run,
    list_runs,
    resume,
    start,
    stop_and_save,
    stop_now,
)

__all__ = [
    "ACTIVE",
    "Run",
    "State",
    "Status",
    "active_run",
    "create",
    "delete",
    "find_run",
    "list_runs",
    "resume",
    "start",
    "stop_and_save",
    "stop_now",
]
