"""Asks the doctor in a process of its own, because the page must not load torch."""

import json
from pathlib import Path

from utils.system.doctor import Finding
from utils.ui import child_output

PATIENCE = 180.0  # seconds; loading torch from a cold disk has taken 40


def examine(output: Path) -> list[Finding]:
    """Run ``python -m utils doctor --json`` and return its findings."""
    words = ["-m", "utils", "doctor", "--json", "--output", str(output)]
    return child_output.ask(words, read_findings, patience=PATIENCE)


def read_findings(printed: str) -> list[Finding]:
    """Read what the doctor printed."""
    return [Finding(**finding) for finding in json.loads(printed)]
