"""`python -m utils runs`, as a person types it, with runs that count."""

import dataclasses
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.interrupting import start_interruptible
from utils.__main__ import call, main
from utils.cli.runs import follow
from utils.core.errors import EXIT_INTERRUPTED
from utils.core.events import BLOCK
from utils.core.paths import ROOT
from utils.studio.run_state import State
from utils.studio.runs import Run
from utils.xtts import checkpoints

pytestmark = pytest.mark.slow

COUNT = "import sys; from utils.__main__ import call, run; sys.exit(run(lambda: call('count', sys.argv[1:])))"
Capture = pytest.CaptureFixture[str]


def only_run(output: Path) -> Path:
    (folder,) = (path for path in (output / "default" / "runs").iterdir() if path.is_dir())
    return folder


def test_a_run_is_followed_resumed_and_watched_to_its_end(tmp_path: Path, capsys: Capture) -> None:
    output = ["--output", str(tmp_path)]
    assert call("count", ["--seconds", "0.2", "--ticks-per-second", "10", *output]) == 0
    text = capsys.readouterr().out
    assert "step 2/2\n" in text
    assert text.endswith("Finished.\n")
    run = only_run(tmp_path)
    assert main(["runs", "resume", run.name, "--json", *output]) == 0
    resumed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["kind"] for event in resumed] == ["started", "ended"]
    with (run / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"kind": "filler"}\n' * (2 * BLOCK // 19) + '{"kind": "last"}\n')
    assert main(["runs", "watch", run.name, *output]) == 0  # more than one block
    assert capsys.readouterr().out.endswith("last\n")


@pytest.mark.parametrize("words", [[], ["--now"]])
def test_stopping_a_run_that_has_ended_says_how_it_ended(words: list[str], tmp_path: Path, capsys: Capture) -> None:
    output = ["--output", str(tmp_path)]
    call("count", ["--seconds", "0.1", *output])
    name = only_run(tmp_path).name
    capsys.readouterr()
    assert main(["runs", "stop", name, *words, *output]) == 0
    assert capsys.readouterr().out == f"{name} has ended: finished.\n"


@pytest.mark.parametrize("words", [["speak", "ሰላም", "--out", "a\nb.wav"], ["export", "tiny", "--out", "a\nb"]])
def test_a_name_of_two_lines_is_refused_before_the_work(words: list[str], capsys: Capture) -> None:
    assert main(words) == 1
    assert "cannot be a folder name" in capsys.readouterr().err


def test_runs_are_listed_shown_stopped_and_deleted(tmp_path: Path, capsys: Capture) -> None:
    output = ["--output", str(tmp_path)]
    assert main(["runs", "list", *output]) == 0
    assert str(tmp_path) in capsys.readouterr().out  # there are none
    assert call("count", ["--seconds", "60", "--detach", *output]) == 0
    name = only_run(tmp_path).name
    assert main(["runs", *output]) == 0
    assert main(["runs", "delete", name, *output]) == 1
    assert main(["runs", "stop", name, "--now", *output]) == 0
    assert main(["runs", "show", name, *output]) == 0
    assert main(["runs", "delete", name, *output]) == 0
    captured = capsys.readouterr()
    assert f"{name:<32} running" in captured.out
    assert "seconds: 60.0" in captured.out
    assert f"{name} is running" in captured.err


def test_a_run_is_resumed_in_the_background(tmp_path: Path, capsys: Capture) -> None:
    output = ["--output", str(tmp_path)]
    assert call("count", ["--seconds", "60", "--detach", *output]) == 0
    run = Run(only_run(tmp_path))
    for words in (["stop", "--now"], ["resume", "--detach"]):
        assert main(["runs", words[0], run.name, *words[1:], *output]) == 0
    assert run.current_state().status == "running"
    assert main(["runs", "stop", run.name, "--now", *output]) == 0


def counting(output: Path, *words: str) -> subprocess.Popen[str]:
    return start_interruptible([sys.executable, "-c", COUNT, *words, "--output", str(output)], ROOT)


def test_ctrl_c_saves_and_stops(tmp_path: Path) -> None:
    with counting(tmp_path, "--ticks-per-second", "20") as process:
        assert process.stdout
        while "step 1/" not in process.stdout.readline():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert re.search(r"Step \d+: saved", rest)
    assert "Stopped and saved." in rest
    again = rest.splitlines()[-1].removeprefix("To continue: python -m utils ")
    assert again == f"runs resume {only_run(tmp_path).name} --project default --output {tmp_path}"
    assert process.returncode == EXIT_INTERRUPTED


def test_ctrl_c_before_the_first_update_does_not_wait_for_it(tmp_path: Path) -> None:
    with counting(tmp_path, "--seconds", "600", "--ticks-per-second", "0.01") as process:
        assert process.stdout
        assert "is running" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == EXIT_INTERRUPTED
    assert Run(only_run(tmp_path)).current_state().status == "stopped"


def test_ctrl_c_after_the_end_of_a_run_stops_nothing(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path / "default" / "runs" / "20260101-000000-count")
    run.folder.mkdir(parents=True)
    state = State("count", "starting", time.time(), heartbeat=time.time())
    run.write_state(state)

    def end_and_interrupt(_: float) -> None:
        run.write_state(dataclasses.replace(state, status="finished"))
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", end_and_interrupt)
    assert follow(run) == 0
    assert "Stopping" not in capsys.readouterr().out


def test_ctrl_c_leaves_the_question_about_the_finished_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path / "default" / "runs" / "20260101-000000-train")
    run.folder.mkdir(parents=True)
    run.write_state(State("train", "stopped", time.time()))
    monkeypatch.setattr("builtins.input", Mock(side_effect=[KeyboardInterrupt, "n"]))
    monkeypatch.setattr(checkpoints, "best_step", lambda _: 1)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    with pytest.raises(KeyboardInterrupt):
        follow(run)


def test_ctrl_c_during_a_start_leaves_no_process(tmp_path: Path) -> None:
    with counting(tmp_path, "--seconds", "600") as process:
        while not list(tmp_path.glob("*/runs/*/state.json")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == EXIT_INTERRUPTED
    assert Run(only_run(tmp_path)).current_state().status == "stopped"
