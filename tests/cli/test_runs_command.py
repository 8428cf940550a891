"""`python -m utils runs` and `rehearse`, as a person types them."""

import signal
import sys
import time
from pathlib import Path

import pytest

from tests.interrupting import start_interruptible
from utils.__main__ import main
from utils.cli.runs import progress_bar
from utils.core.events import BLOCK
from utils.core.paths import ROOT

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]


def only_run(output: Path) -> Path:
    (folder,) = (path for path in (output / "default" / "runs").iterdir() if path.is_dir())
    return folder


def test_a_rehearsal_is_followed_resumed_and_watched_to_its_end(tmp_path: Path, capsys: Capture) -> None:
    output = ["--output", str(tmp_path)]
    assert main(["rehearse", "--seconds", "0.2", "--ticks-per-second", "10", *output]) == 0
    text = capsys.readouterr().out
    assert "progress step=2 total=2" in text
    assert "ended status=finished" in text
    run = only_run(tmp_path)
    assert main(["runs", "resume", run.name, *output]) == 0
    assert capsys.readouterr().out.startswith("started")  # its first new event
    with (run / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"kind": "filler"}\n' * (2 * BLOCK // 19) + '{"kind": "last"}\n')
    assert main(["runs", "watch", run.name, *output]) == 0  # more than one block
    assert capsys.readouterr().out.endswith("last\n")


def test_runs_are_listed_shown_stopped_and_deleted(tmp_path: Path, capsys: Capture) -> None:
    output = ["--output", str(tmp_path)]
    assert main(["runs", "list", *output]) == 0
    assert str(tmp_path) in capsys.readouterr().out  # there are none
    assert main(["rehearse", "--seconds", "60", "--detach", *output]) == 0
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


def test_ctrl_c_saves_and_stops(tmp_path: Path) -> None:
    words = ["rehearse", "--ticks-per-second", "20", "--output", str(tmp_path)]
    with start_interruptible([sys.executable, "-m", "utils", *words], ROOT) as process:
        assert process.stdout
        while "progress" not in process.stdout.readline():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert "saved step=" in rest
    assert "ended status=stopped" in rest
    assert process.returncode == 0


def test_progress_is_a_bar_with_the_remaining_time() -> None:
    event = {"kind": "progress", "step": 0, "total": 3, "percent": 10.0, "seconds_left": 75}
    assert progress_bar(event) == "[###---------------------------]  10%  0 of 3, about 0:01:15 left"
