"""What README says is so: its commands exist, its tree is the disk, its links lead somewhere."""

import re
import shlex
import subprocess
import sys

import pytest

from utils.__main__ import known_verbs
from utils.core.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "bash" for line in text.splitlines() if line.startswith("./")]
VERBS = sorted({verb for line in COMMANDS for verb in shlex.split(line, comments=True)[1:2] if verb in known_verbs()})
TREE = next(text for kind, text in BLOCKS if not kind)


@pytest.mark.parametrize("line", [line for line in COMMANDS if shlex.split(line, comments=True)[1:2] != ["test"]])
def test_the_flags_of_a_command_are_known(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    run = subprocess.run(
        [sys.executable, *(["-m", "utils"] if words and words[0] in VERBS else ["xtts_demo.py"]), *words, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "usage" in run.stdout


def test_the_tree_is_the_disk() -> None:
    paths = [line.partition(" ")[0] for line in TREE.splitlines() if line.strip()]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_module_of_utils_is_in_the_tree() -> None:
    listed = set(re.findall(r"\w+", TREE))
    there = {path.stem for path in (ROOT / "utils").iterdir() if path.stem[0] not in "_."}
    assert there <= listed


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert [target for target in targets if not (ROOT / target).exists()] == []
