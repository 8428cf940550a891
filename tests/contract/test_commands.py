"""What the command line offers, says and exits with."""

import json
import re
from pathlib import Path

import pytest

from utils.__main__ import main

FLAGS: dict[str, str] = json.loads((Path(__file__).parent / "flags.json").read_text(encoding="utf-8"))
FLAG = re.compile(r"--[\w-]+")

Capture = pytest.CaptureFixture[str]


def help_of(capsys: Capture, verb: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("verb", FLAGS)
def test_a_command_still_has_its_flags(verb: str, capsys: Capture) -> None:
    assert set(FLAGS[verb].split()) - set(FLAG.findall(help_of(capsys, verb))) == set()


ACTIONS = {
    "dataset": "validate stats report merge lengths resplit export restore filter rename edit undo redo",
    "checkpoints": "list compare delete promote",
    "runs": "list show watch note stop resume delete",
}


@pytest.mark.parametrize("verb", ACTIONS)
def test_a_command_still_has_its_actions(verb: str, capsys: Capture) -> None:
    assert set(ACTIONS[verb].split()) - set(re.findall(r"\w+", help_of(capsys, verb))) == set()


FAILURES = {  # a command: its exit code and a part of what it says
    "fly": (2, "Unknown command: fly. Commands: "),
    "train --config nowhere.yaml": (1, "nowhere.yaml cannot be read as settings: No such file or directory"),
    "train --num-epochs 0 --show": (1, "num_epochs: '0' should be greater than or equal to 1"),
    "train --num_epoch 5 --show": (2, "unrecognized arguments: --num-epoch 5 (did you mean --num-epochs?)"),
    "train --num-epochs many --show": (1, "num_epochs: 'many' should be a whole number"),
    "train --use-dora --show": (1, "use_dora needs enable_lora"),
    "train --config bad.yaml --show": (1, "bad.yaml cannot be read as settings: line 1"),
    "train --config unknown.yaml --show": (1, "num_epoch: unknown setting (did you mean num_epochs?)"),
    "train --version v3 --show": (1, "version: 'v3' should be"),
    "prepare": (1, "No recordings are given"),
    "prepare nowhere.wav": (1, "nowhere.wav"),
    "prepare --min-seconds 9 --max-seconds 8 a.wav": (1, "min_seconds"),
    "dataset stats": (1, "has no clips.db"),
    "dataset edit a --text b": (1, "has no clips.db"),
    "runs show none": (1, "has no run named 'none'"),
    "runs stop none": (1, "has no run named 'none'"),
    "checkpoints promote none 3": (1, "none"),
    "speak": (1, "The text is empty"),
    "speak ሰላም --model nowhere": (1, "nowhere"),
    "speak ሰላም --temperature 9": (1, "temperature: '9'"),
    "speak --file nowhere.txt": (1, "nowhere.txt"),
    "speak ሰላም --out x.xyz": (1, "x.xyz"),
    "speak ሰላም --speed 9": (1, "speed"),
    "export nowhere --out x": (1, "nowhere"),
    "evaluate --checkpoints nowhere": (1, "nowhere"),
    "advise --project none": (1, "none"),
    "advise --curve 0": (2, "--curve: must be above 0"),
    "advise --curve -5": (2, "--curve"),
    "memory-plan --config nowhere.yaml": (1, "nowhere.yaml cannot be read"),
    "serve --model nowhere": (1, "nowhere"),
    "check-text nowhere.csv --model nowhere": (1, "nowhere"),
    "download-model --version v9": (1, "v9"),
}
SUCCESSES = {  # a command and a part of what it prints
    "": "usage: python -m utils <command>",
    "--help": "usage: python -m utils <command>",
    "runs list": "",
    "train --version tiny --show": "version: tiny",
    "train --show --batch_size 3": "batch_size: 3",
    "say-how ሰላም": "səlam",
    "prompts --count 2": "",
    "pronounce": "",
}


def printed(line: str, folder: Path, capsys: Capture) -> tuple[int, str]:
    try:
        code = main(line.split())
    except SystemExit as ended:
        code = int(str(ended.code))
    said = capsys.readouterr()
    return code, said.out + said.err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("a: [", encoding="utf-8")
    (tmp_path / "unknown.yaml").write_text("num_epoch: 3", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("line", FAILURES)
def test_a_command_that_cannot_work_says_why(line: str, folder: Path, capsys: Capture) -> None:
    code, words = FAILURES[line]
    ended, said = printed(line, folder, capsys)
    assert ended == code, said
    assert words in said
    assert "Traceback" not in said


@pytest.mark.parametrize("line", SUCCESSES)
def test_a_command_succeeds(line: str, folder: Path, capsys: Capture) -> None:
    ended, said = printed(line, folder, capsys)
    assert ended == 0, said
    assert SUCCESSES[line] in said
