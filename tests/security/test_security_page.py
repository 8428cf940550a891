"""docs/SECURITY.md names tests that exist, for every line of its table."""

import re

import pytest

from utils.core.paths import ROOT

TEXT = (ROOT / "docs" / "SECURITY.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:40])
def test_every_threat_has_a_test_that_exists(row: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", row)
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_test_of_security_is_named() -> None:
    there = {f"tests/security/{path.name}" for path in (ROOT / "tests" / "security").glob("test_*.py")}
    assert [name for name in there if name not in TEXT and not name.endswith("test_security_page.py")] == []


def test_the_page_names_no_other_computer() -> None:
    assert "://" not in TEXT
