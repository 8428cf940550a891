"""`python -m utils runs` and `rehearse`, as a person types them."""

import signal
import sys
import time
from pathlib import Path

import pytest

from tests.interrupting import heard
from utils.__main__ import main
from utils.cli.runs import progress_bar
from utils.core.events import BLOCK
from utils.core.paths import ROOT

pytestmark = pytest.mark.slow


def words(*rest: str, output: Path) -> list[str]:
    return [*rest, "--output", str(output)]


def only_run(output: Path) -> str:
    (folder,) = (path for path in (output / "default" / "runs").iterdir() if path.is_dir())
    return folder.name


def test_a_rehearsal_is_followed_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words("rehearse", "--seconds", "0.2", "--ticks-per-second", "10", output=tmp_path)) == 0
    text = capsys.readouterr().out
    assert "progress step=2 total=2" in text
    assert "ended status=finished" in text


def test_runs_are_listed_shown_stopped_and_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words("rehearse", "--seconds", "60", "--detach", output=tmp_path)) == 0
    name = only_run(tmp_path)
    assert main(words("runs", output=tmp_path)) == 0
    assert main(words("runs", "delete", name, output=tmp_path)) == 1
    assert main(words("runs", "stop", name, "--now", output=tmp_path)) == 0
    assert main(words("runs", "show", name, output=tmp_path)) == 0
    assert main(words("runs", "delete", name, output=tmp_path)) == 0
    captured = capsys.readouterr()
    assert f"{name:<32} running" in captured.out
    assert "seconds: 60.0" in captured.out
    assert f"{name} is running" in captured.err


@pytest.mark.slow
def test_a_resumed_run_is_followed_from_its_first_new_event(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words("rehearse", "--seconds", "0.1", output=tmp_path)) == 0
    capsys.readouterr()
    assert main(words("runs", "resume", only_run(tmp_path), output=tmp_path)) == 0
    assert capsys.readouterr().out.startswith("started")


@pytest.mark.slow
def test_a_log_larger_than_one_look_is_watched_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words("rehearse", "--seconds", "0.1", output=tmp_path)) == 0
    name = only_run(tmp_path)
    with (tmp_path / "default" / "runs" / name / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"kind": "filler"}\n' * (2 * BLOCK // 19) + '{"kind": "last"}\n')
    assert main(words("runs", "watch", name, output=tmp_path)) == 0
    assert capsys.readouterr().out.endswith("last\n")


def test_an_action_without_a_run_asks_for_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words("runs", "stop", output=tmp_path)) == 1
    assert main(words("runs", "list", output=tmp_path)) == 0
    captured = capsys.readouterr()
    assert "stop NAME" in captured.err
    assert str(tmp_path) in captured.out


def test_ctrl_c_saves_and_stops(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "utils", *words("rehearse", "--ticks-per-second", "20", output=tmp_path)]
    with heard(command, ROOT) as process:
        assert process.stdout
        while "progress" not in process.stdout.readline():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert "saved step=" in rest
    assert "ended status=stopped" in rest
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("fields", "bar"),
    [
        ({"step": 1, "total": 2}, "[###############---------------]  50%  1 of 2"),
        (
            {"step": 0, "total": 3, "percent": 10.0, "seconds_left": 75},
            "[###---------------------------]  10%  0 of 3, about 0:01:15 left",
        ),
        (
            {"step": 3, "total": 3, "percent": 100.0, "seconds_left": None},
            "[##############################] 100%  3 of 3",
        ),
    ],
)
def test_progress_is_a_bar_with_the_time_that_is_left(fields: dict[str, object], bar: str) -> None:
    assert progress_bar({"kind": "progress"} | fields) == bar
