"""`python -m utils export`, as a person types it."""

from pathlib import Path

import pytest

from utils.__main__ import main

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("words", "message"), [([], "nowhere"), (["--push", "name"], "'name'"), (["--push", "owner/name"], "HF_TOKEN")]
)
def test_a_refusal_comes_before_the_work(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert main(["export", "nowhere", *words, "--out", str(tmp_path / "out"), "--output", str(tmp_path)]) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
