"""No project is created by a command that needs one with clips, or that has nothing to put into it."""

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


@pytest.mark.parametrize(
    ("files", "named", "reason"),
    [
        ([], "nosuch", "No such file or folder."), ([], "", "No audio, video or dataset found."),
        (["read/me.txt"], "", "No audio, video or dataset found."),
    ],
)  # fmt: skip
def test_nothing_is_created_without_a_recording(
    files: list[str], named: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    for file in files:
        (tmp_path / "in" / file).parent.mkdir()
        (tmp_path / "in" / file).write_text("ሰላም", encoding="utf-8")
    assert main(["prepare", str(tmp_path / "in" / named), "--project", "new", "--output", str(tmp_path / "out")]) == 1
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [["train"], ["features", "--model", "tiny"]])
def test_the_existing_projects_are_named(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    assert main([*words, "--project", "typo", "--output", str(tmp_path)]) == 1
    assert "mine" in capsys.readouterr().err
