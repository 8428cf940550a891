"""Runs the doctor in a child process, because the page must not load torch."""

import json
from pathlib import Path

from utils.runs.processes import query
from utils.system.doctor import Finding

TIMEOUT = 180.0  # seconds; loading torch from a cold disk has taken 40


def examine(output: Path) -> list[Finding]:
    """Run ``python -m utils doctor --json`` and return its findings."""
    return query(["-m", "utils", "doctor", "--json", "--output", str(output)], read_findings, timeout=TIMEOUT)


def read_findings(text: str) -> list[Finding]:
    """Read what the doctor printed."""
    return [Finding(**finding) for finding in json.loads(text)]
