"""The checks for a GPU machine (tools/gpu), rehearsed with toy sizes on the processor."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUICK = "versions,out of memory,memory plan,speech sweep"
OTHERS = "resume,training sweep"


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "steps", [pytest.param(QUICK, marks=pytest.mark.slow), pytest.param(OTHERS, marks=pytest.mark.long)]
)
def test_checks_run_without_errors(steps: str, tmp_path: Path) -> None:
    toy = {"GO_DEVICE": "cpu", "GO_TOY": "1", "GO_SERIAL": "1", "GO_PYTHON": sys.executable, "GO_SCALE": "4"}
    environment = {**os.environ, **toy, "GO_ONLY": steps, "GO_SECONDS": "800", "OUT": str(tmp_path)}
    subprocess.run(["bash", "tools/gpu/go"], cwd=ROOT, env=environment, check=True, capture_output=True)
    found = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert {each["step"] for each in found} == set(steps.split(","))
    assert not [each for each in found if "error" in each]
    assert {line.split(": ")[1].split(",")[0] for line in summary_titles(tmp_path)} == {"ok"}


def summary_titles(folder: Path) -> list[str]:
    return [line for line in (folder / "summary.md").read_text().splitlines() if line.startswith("## ")]
