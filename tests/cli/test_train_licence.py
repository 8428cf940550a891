"""`--accept-licence`, as a person types it: consent is kept before the run begins, and by that word alone."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from utils import runs
from utils.__main__ import main
from utils.config import Config
from utils.core.paths import Project
from utils.xtts.hub import VARIABLE, LicenceError, accept_licence, licence_accepted, require_licence


@pytest.fixture
def consent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for the consent that is not the one of this computer."""
    path = tmp_path / "settings" / "consent.json"
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(accept_licence, "__defaults__", ("", path))
    return path


@pytest.fixture
def started(consent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each run that begins, whether there was consent by then; no process is started."""
    found: list[bool] = []

    def start(_verb: str, _config: Config, _project: Project) -> runs.Run:
        found.append(licence_accepted(consent))
        return runs.Run(tmp_path / "run")

    monkeypatch.setattr(runs, "start", start)
    return found


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train", "--detach"], [False]),
        (["train", "--detach", "--accept-licence"], [True]),
        (["train", "--show", "--accept-licence"], []),
        (["download-model", "--detach"], [False]),
        (["download-model", "--detach", "--accept-licence"], [True]),
    ],
)
def test_consent_is_there_when_the_run_begins(
    words: Sequence[str], expected: list[bool], started: list[bool], consent: Path
) -> None:
    assert main(words) == 0
    assert started == expected
    assert licence_accepted(consent) is (expected == [True])


def test_who_did_not_agree_is_told_the_word_that_agrees(consent: Path) -> None:
    with pytest.raises(LicenceError, match="--accept-licence"):
        require_licence(consent)
