"""Faults are injected into a real training and counted; a loss is reported and ends with exit code 1."""

import json
import random
from pathlib import Path

import pytest

from tests.soak import campaign, report
from tests.soak.__main__ import main
from tests.soak.campaign import Count, soak
from tests.soak.mounting import NotHere
from tests.soak.subject import Lost, Subject


def survived(subject: Subject, dice: random.Random) -> None:
    subject.check_clips()


def losing(subject: Subject, dice: random.Random) -> None:
    raise Lost("update 4 is gone")


def impossible(subject: Subject, dice: random.Random) -> None:
    raise NotHere("no permission to mount")


def interrupted(subject: Subject, dice: random.Random) -> None:
    raise KeyboardInterrupt


def test_losses_survivals_and_skipped_faults_are_counted_even_after_ctrl_c(tmp_path: Path) -> None:
    faults = {"survived": survived, "losing": losing, "impossible": impossible}
    counts = [Count(name) for name in faults]
    soak(tmp_path / "all", 1.0, 1, counts, faults)
    assert (counts[0].survived, counts[1].survived) == (counts[0].injected, 0)
    assert counts[1].lost == counts[1].injected > 0
    assert "update 4 is gone" in counts[1].losses[0]
    assert (counts[2].injected, counts[2].skipped) == (0, "no permission to mount")
    before = Count("survived")
    with pytest.raises(KeyboardInterrupt):
        soak(tmp_path / "some", 1e9, 1, [before, Count("ctrl-c")], {"survived": survived, "ctrl-c": interrupted})
    assert before.injected == before.survived


@pytest.mark.slow
def test_a_training_survives_the_worst_damage_of_its_files(tmp_path: Path) -> None:
    count = Count("state and newest checkpoint damaged")
    soak(tmp_path, 0.1, 3, [count], campaign.FAULTS)
    assert (count.injected, count.losses) == (1, [])


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "code"), [(survived, 0), (losing, 1)])
def test_the_command_ends_with_1_after_a_loss(
    fault: campaign.Fault, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.soak.readers.FORMATS", ())
    monkeypatch.setattr("tests.soak.campaign.FAULTS", {"it": fault})
    assert main(["--minutes", "0.001", "--fuzz", "0", "--seed", "1", "--output", str(tmp_path)]) == code
    assert (json.loads((tmp_path / report.FILE).read_text())["lost"] > 0) == bool(code)
