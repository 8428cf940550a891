"""Run diagnostics: what works on this computer, what does not, and how to fix it."""

import argparse
import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from utils.cli.runs import add_output
from utils.config.base import Device
from utils.studio import paths
from utils.studio.facts import UsageError
from utils.system.doctor import Finding, examine

if TYPE_CHECKING:
    from utils.xtts.certificate import Check

MARKS = {"pass": "ok  ", "warn": "warn", "fail": "FAIL"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    parser.add_argument(
        "--gpu",
        nargs="?",
        choices=get_args(Device),
        const="auto",
        help="test every kernel and switch on the GPU (at most three minutes) and write gpu-certificate.json and .md; "
        "training and speech then avoid what failed. cpu tests the processor instead",
    )
    parser.add_argument(
        "--config",
        dest="file",
        type=Path,
        metavar="FILE",
        help="with --gpu: test the settings of this training preset or run, and anything else not tested yet",
    )
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the results; the exit code is 1 if a check failed."""
    if arguments.gpu:
        return _certify(arguments.gpu, arguments.file, as_json=arguments.json)
    if arguments.file:
        raise UsageError("needs_flag", "--config", "--gpu")
    findings = []
    for finding in examine(arguments.output):
        findings.append(finding)
        if not arguments.json:
            cure = f"\n{'':<30}{finding.cure}" if finding.cure else ""
            print(f"{MARKS[finding.verdict]}  {finding.name:<22} {finding.detail}{cure}", flush=True)
    if arguments.json:
        _print_json(findings)
    return int(any(finding.verdict == "fail" for finding in findings))


def _print_json(findings: Iterable[Finding]) -> None:
    print(json.dumps([dataclasses.asdict(finding) for finding in findings], ensure_ascii=False, indent=1))


def _certify(name: str, file: Path | None, *, as_json: bool) -> int:
    import torch

    from utils.config import TrainConfig
    from utils.training.gpu_test import checks
    from utils.training.gpu_test import run as certify
    from utils.xtts.device import choose_device
    from utils.xtts.facts import GpuMissingError

    def show(check: "Check") -> None:
        if not as_json:
            print(check.row, flush=True)

    config = TrainConfig.load(file) if file else None
    device = torch.device(choose_device(name))
    if name == "auto" and device.type == "cpu":
        raise GpuMissingError("cuda")
    certificate = certify(device, paths.GPU_CERTIFICATE, show, config, missing_only=config is not None)
    wanted = checks(device, config)
    found = [one for one in certificate.checks if one.name in wanted]  # not what failed with the settings of other runs
    if as_json:
        _print_json(Finding(one.name, "pass" if one.passed else "fail", one.detail) for one in found)
    else:
        print(f"Written to {paths.GPU_CERTIFICATE} and {paths.GPU_CERTIFICATE.with_suffix('.md').name}.")
    return int(not all(one.passed for one in found))
