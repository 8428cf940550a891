"""Run diagnostics: what works on this computer, what does not, and how to fix it."""

import argparse
import dataclasses
import json
from pathlib import Path

from utils.core.paths import OUTPUT
from utils.system.doctor import Finding, examine

MARKS = {"pass": "ok  ", "warn": "warn", "fail": "FAIL"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder with the projects (default: output/)")


def run(arguments: argparse.Namespace) -> int:
    """Print the results; the exit code is 1 if a check failed."""
    findings = []
    for finding in examine(arguments.output):
        findings.append(finding)
        if not arguments.json:
            print(row(finding), flush=True)
    if arguments.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], ensure_ascii=False, indent=1))
    return int(any(finding.verdict == "fail" for finding in findings))


def row(finding: Finding) -> str:
    """Format a result as a line, with its fix below."""
    text = f"{MARKS[finding.verdict]}  {finding.name:<22} {finding.detail}"
    return f"{text}\n{'':<30}{finding.cure}" if finding.cure else text
