"""Starts commands that react to Ctrl-C, also where the tests themselves run in the background, which ignores it."""

import signal
import subprocess
from pathlib import Path


def start_interruptible(command: list[str], folder: Path) -> "subprocess.Popen[str]":
    """Start a command whose output is read."""
    return subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # one thread starts it
    )
