"""The command line: quick help, clear errors."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from utils.__main__ import known_verbs, main
from utils.core import VERSION
from utils.core.errors import EXIT_INTERRUPTED
from utils.core.paths import ROOT

HELP_OF_EVERY_VERB = """
import contextlib, sys
from utils.__main__ import main
for verb in sys.argv[1:]:
    with contextlib.suppress(SystemExit):
        main([verb, "--help"])
assert not {"torch", "gradio", "TTS"} & set(sys.modules)
"""


def test_help_of_a_verb_needs_neither_torch_nor_gradio() -> None:
    words = [sys.executable, "-c", HELP_OF_EVERY_VERB, *known_verbs()]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert [verb for verb in known_verbs() if f"usage: python -m utils {verb}" not in run.stdout] == []


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"{VERSION}\n"


def test_a_relative_home_is_the_same_folder_in_child_processes(tmp_path: Path) -> None:
    script = """
from utils.__main__ import run
from utils.core.processes import query
words = ["-c", "from utils.studio.paths import OUTPUT; print(OUTPUT)"]
run(lambda: print(query(words, str.strip, timeout=60)))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "AMHARIC_XTTS_HOME": "home"}
    words = [sys.executable, "-c", script]
    run = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(tmp_path / "home" / "output")


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [(">&-", 0, ""), ("> /dev/full", 1, "No space left on device"), ("| true", 1, "Broken pipe"), ("2>&- >&-", 0, "")],
)
def test_closed_and_full_streams_end_in_a_sentence(redirection: str, code: int, message: str) -> None:
    command = f"set -o pipefail; {shlex.quote(sys.executable)} -m utils --help {redirection}"
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == code
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("call", ["interrupt", "lambda *_: type('Created', (), {'member': Interrupted()})"])
def test_ctrl_c_while_a_command_is_imported_ends_in_a_sentence(call: str) -> None:
    script = f"""
import os, signal
import utils.__main__ as m

def interrupt(*_):
    os.kill(os.getpid(), signal.SIGINT)

class Interrupted:
    __set_name__ = interrupt

signal.signal(signal.SIGINT, signal.default_int_handler)
m.call = {call}
raise SystemExit(m.run())
"""
    command = [sys.executable, "-c", script, "speak", "x"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (EXIT_INTERRUPTED, "Interrupted.\n")


def test_the_user_of_a_container_may_have_no_name() -> None:
    script = "import os, getpass; os.getuid = lambda: 1 << 30; import utils.__main__ as m; m.run(getpass.getuser)"
    environment = {name: value for name, value in os.environ.items() if name not in {"USER", "LOGNAME", "USERNAME"}}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, check=True)


def test_too_little_memory_ends_in_a_sentence() -> None:
    command = f"ulimit -v 1000000; exec {shlex.quote(sys.executable)} -m utils speak x --model tiny"
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "There is not enough memory. Close other programs, or raise the limit (ulimit -v).\n"


def test_an_argument_that_is_not_text_is_refused() -> None:
    command: list[str | bytes] = [sys.executable, "-m", "utils", "say-how", b"\xff"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "not valid UTF-8" in ended.stderr
