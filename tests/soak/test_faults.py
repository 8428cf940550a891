"""Faults are done to a real training and counted; what is lost is told and ends with exit code 1."""

import json
import random
from pathlib import Path

import pytest

from tests.soak import campaign, report
from tests.soak.__main__ import main
from tests.soak.campaign import Count, soak
from tests.soak.damage import spoil
from tests.soak.fuzzing import Failure, Fuzzed, Tally
from tests.soak.mounting import NotHere
from tests.soak.report import Report
from tests.soak.subject import Lost, Subject


def survived(subject: Subject, dice: random.Random) -> None:
    subject.check_clips()


def losing(subject: Subject, dice: random.Random) -> None:
    raise Lost("update 4 was announced as saved, and the state is of 2")


def breaking(subject: Subject, dice: random.Random) -> None:
    raise KeyError("no error of ours")


def impossible(subject: Subject, dice: random.Random) -> None:
    raise NotHere("no right to mount a disk here")


def done(folder: Path, fault: campaign.Fault) -> Count:
    count = Count("it")
    soak(folder, 0.1, 1, [count], {"it": fault})
    return count


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (losing, "Lost: update 4 was announced as saved"),
        (breaking, "KeyError: 'no error of ours'"),
    ],
)
def test_what_is_lost_is_counted_and_told(tmp_path: Path, fault: campaign.Fault, told: str) -> None:
    count = done(tmp_path, fault)
    assert count.lost == count.injected > 0
    assert told in count.losses[0]


def test_what_is_survived_is_counted(tmp_path: Path) -> None:
    count = done(tmp_path, survived)
    assert count.survived == count.injected > 0
    assert count.losses == []


def test_a_run_that_cannot_be_ended_is_a_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subject, "close", lambda _: losing(_, random.Random()))
    count = done(tmp_path, survived)
    assert (count.lost, count.survived) == (1, count.injected)


def test_what_was_counted_is_there_after_an_interruption(tmp_path: Path) -> None:
    def interrupted(subject: Subject, dice: random.Random) -> None:
        raise KeyboardInterrupt

    counts = [Count("it"), Count("interrupted")]
    with pytest.raises(KeyboardInterrupt):
        soak(tmp_path, 1e9, 1, counts, {"it": survived, "interrupted": interrupted})
    assert counts[0].survived == counts[0].injected > 0


def test_a_campaign_in_which_nothing_is_possible_ends(tmp_path: Path) -> None:
    told: list[str] = []
    count = Count("impossible")
    soak(tmp_path, 1e9, 1, [count], {"impossible": impossible}, told.append)
    assert (count.injected, count.skipped) == (0, "no right to mount a disk here")
    assert told == ["impossible: skipped, no right to mount a disk here"]


@pytest.mark.parametrize("seed", range(6))
def test_a_spoiled_file_differs(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(200)))
    spoil(path, random.Random(seed))
    assert path.read_bytes() != bytes(range(200))


def test_the_tables_tell_every_number_and_every_loss(tmp_path: Path) -> None:
    counts = [Count("killed", 5, 4, 1, losses=["step 3 is gone"]), Count("disk full", skipped="no right")]
    tallies = (Tally("SRT", 30, 20, 9, 4, 1, 0.25),)
    failures = (Failure("SRT", "1/SRT/4", ("nest",), "Traceback\nKeyError: 1\n", "SRT-4.srt"),)
    found = Report("python -m tests.soak", 7, "2026-11-22", 2.0, counts, Fuzzed(tallies, failures, 3.0))
    text = report.text(found)
    assert "| killed | 5 | 4 | 1 |" in text
    assert "| SRT | 30 | 20 | 9 | 4 | 1 | 0.25 s |" in text
    assert "Skipped: disk full: no right" in text
    assert "LOST: killed: step 3 is gone" in text
    assert "FAILED: SRT-4.srt (nest): KeyError: 1" in text
    assert text.endswith("30 damaged files, 2 lost.")
    assert json.loads(report.write(found, tmp_path).read_text())["lost"] == 2


@pytest.mark.slow
def test_a_training_survives_the_worst_damage_of_its_files(tmp_path: Path) -> None:
    name = "state and newest checkpoint damaged"
    count = Count(name)
    soak(tmp_path, 0.1, 3, [count], campaign.FAULTS)
    assert (count.injected, count.losses) == (1, [])


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "code"), [(survived, 0), (losing, 1)])
def test_the_command_ends_with_1_when_something_is_lost(
    fault: campaign.Fault,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tests.soak.readers.FORMATS", ())
    monkeypatch.setattr("tests.soak.campaign.FAULTS", {"it": fault})
    words = ["--minutes", "0.001", "--fuzz", "0", "--seed", "1", "--output", str(tmp_path)]
    assert main(words) == code
    assert "Seed 1;" in capsys.readouterr().out
    assert (json.loads((tmp_path / report.FILE).read_text())["lost"] > 0) == bool(code)
