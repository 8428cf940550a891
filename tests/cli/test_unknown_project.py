"""A project whose name is misspelt is not created by a command that needs one with clips."""

from pathlib import Path

import pytest

from utils.__main__ import main


@pytest.mark.parametrize(
    "words",
    [
        ["train"], ["features", "--model", "tiny"], ["checkpoints"], ["runs"], ["advise"], ["dataset", "stats"],
        ["prompts"], ["pronounce"],
    ],
)  # fmt: skip
def test_nothing_is_created(words: list[str], tmp_path: Path) -> None:
    main([*words, "--project", "typo", "--output", str(tmp_path)])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["train"], ["features", "--model", "tiny"]])
def test_the_existing_projects_are_named(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    assert main([*words, "--project", "typo", "--output", str(tmp_path)]) == 1
    assert "mine" in capsys.readouterr().err
