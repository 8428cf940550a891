"""`--accept-licence`, as a person types it: consent is written before the run begins, and by that word alone."""

from pathlib import Path

import pytest

from utils.__main__ import main
from utils.studio import paths, runs
from utils.xtts.facts import LicenceError
from utils.xtts.hub import VARIABLE, licence_accepted, require_licence


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train", "--detach"], [False]), (["train", "--detach", "--accept-licence"], [True]),
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
    if expected != [True]:
        with pytest.raises(LicenceError, match="--accept-licence"):
            require_licence(consent)
