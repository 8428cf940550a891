"""The studio works without the folder of integrations; that no module imports it is a matter of the layers."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from utils.core.paths import ROOT


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studio")
    shutil.copytree(ROOT / "configs", folder / "configs")
    shutil.copytree(ROOT / "utils", folder / "utils", ignore=shutil.ignore_patterns("__pycache__", "integrations"))
    return folder


def python(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=copy, capture_output=True, text=True, timeout=280, check=False)


def test_a_text_is_explained(copy: Path) -> None:
    run = python(copy, "-m", "utils", "say-how", "በ3 ሰዓት")
    assert (run.returncode, run.stderr) == (0, "")
    assert "ሦስት" in run.stdout


def test_the_list_of_commands_has_no_integration(copy: Path) -> None:
    run = python(copy, "-m", "utils")
    assert run.returncode == 0
    assert "check-text" in run.stdout
    assert "mcp" not in run.stdout


def test_a_corpus_is_refused_with_a_cure(copy: Path) -> None:
    run = python(copy, "-m", "utils", "prepare", "corpus:fleurs", "--project", "fleurs")
    assert run.returncode == 1
    assert "utils/integrations is missing" in run.stdout + run.stderr
    assert "Traceback" not in run.stdout + run.stderr
