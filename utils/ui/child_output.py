"""What a child process answers: the JSON that it prints, or its last complaint."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from utils.core.errors import RunError
from utils.core.paths import ROOT

T = TypeVar("T")


def ask(words: Sequence[str], read: Callable[[str], T], *, patience: float, given: str = "") -> T:
    """Run Python in a process of its own and read what it prints.

    Args:
        words: What stands behind ``python`` on the command line.
        read: Makes the answer of what was printed.
        patience: Seconds.
        given: What the process reads.
    """
    try:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            input=given,
            capture_output=True,
            timeout=patience,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(
            f"There was no answer within {patience:g} s.", hint="Try again when less is going on."
        ) from error
    except OSError as error:
        raise unstarted(error) from error
    try:
        return read(done.stdout)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        reason = (done.stderr.strip().splitlines() or ["it printed nothing readable"])[-1]
        raise RunError(
            f"The process broke off: {reason}.", hint="Try it again; python -m utils doctor finds what is missing."
        ) from error


def unstarted(error: OSError) -> RunError:
    """Say why no process could be started."""
    return RunError(
        f"No process could be started: {error.strerror or error}.", hint="Close other programs and try again."
    )
