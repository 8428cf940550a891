"""Asks the doctor in a process of its own, because the page must not load torch."""

import json
import subprocess
import sys
from pathlib import Path

from utils.doctor import Finding
from utils.errors import RunError
from utils.paths import ROOT

PATIENCE = 180.0  # seconds; loading torch from a cold disk has taken 40


def examine(output: Path) -> list[Finding]:
    """Run ``python -m utils doctor --json`` and return its findings."""
    words = [sys.executable, "-m", "utils", "doctor", "--json", "--output", str(output)]
    try:
        done = subprocess.run(
            words, cwd=ROOT, capture_output=True, timeout=PATIENCE, check=False, encoding="utf-8", errors="replace"
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(
            f"The examination took more than {PATIENCE:g} s.", hint="Try again when less is going on."
        ) from error
    return read_findings(done.stdout, done.stderr)


def read_findings(printed: str, complaints: str = "") -> list[Finding]:
    """Read what the doctor printed; when it is no list of findings, its last complaint says why."""
    try:
        return [Finding(**finding) for finding in json.loads(printed)]
    except (ValueError, TypeError) as error:
        reason = (complaints.strip().splitlines() or ["it printed nothing readable"])[-1]
        raise RunError(
            f"The examination broke off: {reason}.", hint="Try python -m utils doctor in a terminal."
        ) from error
