"""`--accept-licence`, as a person types it: consent is written before the run begins, and by that word alone."""

from pathlib import Path

import pytest

from utils.__main__ import main
from utils.studio import paths, runs
from utils.xtts.hub import VARIABLE, licence_accepted


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train", "--detach", "--accept-licence"], [True]),
        (["train", "--show", "--accept-licence"], []), (["download-model", "--detach", "--accept-licence"], [True]),
    ],
)  # fmt: skip
def test_consent_is_there_when_the_run_begins(
    words: list[str], expected: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consent, consent_at_start = tmp_path / "settings" / "consent.json", []

    def start(*_: object) -> runs.Start:
        consent_at_start.append(licence_accepted(consent))
        return runs.Start(runs.Run(tmp_path / "run"), "started")

    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(paths, "LICENCE_CONSENT", consent)
    monkeypatch.setattr(runs, "start", start)
    assert main(words) == 0
    assert consent_at_start == expected
    assert licence_accepted(consent) == (expected == [True])


@pytest.mark.parametrize("command", ["train", "download-model"])
def test_the_variable_is_consent_where_nobody_can_type(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    monkeypatch.setattr(paths, "LICENCE_CONSENT", tmp_path / "consent.json")
    monkeypatch.setattr(runs, "start", lambda *_: runs.Start(runs.Run(tmp_path / "run"), "started"))
    assert main([command, "--detach"]) == 0
    assert not (tmp_path / "consent.json").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["train", "--detach"], "--accept-licence"),
        (["download-model", "--detach"], "--accept-licence"),
        (["train", "--version", "tiny", "--optimizer", "adamw_8bit", "--device", "cpu"], "adamw_8bit needs a CUDA GPU"),
    ],
)
def test_what_cannot_work_is_refused_before_there_is_a_run(
    words: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(paths, "LICENCE_CONSENT", tmp_path / "consent.json")
    assert main([*words, "--output", str(tmp_path)]) == 1
    assert reason in capsys.readouterr().err
    assert not list(tmp_path.glob("*/runs/*"))
