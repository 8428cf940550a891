"""Run diagnostics: what works on this computer, what does not, and how to fix it."""

import argparse
import dataclasses
import json

from utils.cli.runs import add_output
from utils.system.doctor import examine

MARKS = {"pass": "ok  ", "warn": "warn", "fail": "FAIL"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the results; the exit code is 1 if a check failed."""
    findings = []
    for finding in examine(arguments.output):
        findings.append(finding)
        if not arguments.json:
            cure = f"\n{'':<30}{finding.cure}" if finding.cure else ""
            print(f"{MARKS[finding.verdict]}  {finding.name:<22} {finding.detail}{cure}", flush=True)
    if arguments.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], ensure_ascii=False, indent=1))
    return int(any(finding.verdict == "fail" for finding in findings))
