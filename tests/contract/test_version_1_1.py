"""A project that version 1.1 prepared, corrected, trained and spoke in still opens, resumes, speaks and exports.

``tests/data/project_1_1`` holds the project, what 1.1 itself did next with it, and the script that made both. Its run
``tiny`` started from an embedded voice that is gone.
"""

import fcntl
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from utils.__main__ import main

STORED = Path(__file__).parents[1] / "data" / "project_1_1"
OUTPUT = Path("/tmp/amharic-xtts-1.1")  # 1.1 wrote absolute paths
TEXT = "ሰላም። አዎ።"
EXPECTED: dict[str, Any] = json.loads((STORED / "expected.json").read_text(encoding="utf-8"))
CUSTOM, TINY = str(EXPECTED["custom"]), str(EXPECTED["tiny"])
WHERE = ("--project", "project", "--output", str(OUTPUT))

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project() -> Iterator[Path]:
    with OUTPUT.with_suffix(".lock").open("w") as lock:  # other checkouts use the same folder
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(OUTPUT, ignore_errors=True)
        with tarfile.open(STORED / "project.tar.xz") as archive:
            archive.extractall(OUTPUT, filter="data")
        yield OUTPUT / "project"
        shutil.rmtree(OUTPUT, ignore_errors=True)


def run(capsys: Capture, *words: str, code: int = 0) -> str:
    """Run a command and return what it prints."""
    capsys.readouterr()
    assert main([*words]) == code
    printed = capsys.readouterr()
    return printed.out + printed.err


def events(project: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project / "runs" / name / "events.jsonl").read_text().splitlines()]


def losses(project: Path, name: str) -> list[tuple[str, int, float]]:
    return [(event["kind"], event["step"], event["loss"]) for event in events(project, name) if "loss" in event]


def set_steps(project: Path, name: str, steps: int) -> None:
    path = project / "runs" / name / "config.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("max_steps: 4", f"max_steps: {steps}"), encoding="utf-8")


def test_its_clips_have_their_corrections(project: Path, capsys: Capture) -> None:
    assert "noise: ዛሬ ማታ እንግዶች ይመጣሉ እንዴ?" in run(capsys, "dataset", "restore", *WHERE)
    assert "|ተነስ፣ ነጋ ጠባ።|" in (project / "dataset" / "metadata_train.csv").read_text(encoding="utf-8")


def test_a_correction_is_undone(project: Path, capsys: Capture) -> None:
    run(capsys, "dataset", "undo", *WHERE)
    assert "ዛሬ ማታ እንግዶች ይመጣሉ እንዴ?" in (project / "dataset" / "metadata_train.csv").read_text(encoding="utf-8")


def test_its_lists_are_valid(project: Path, capsys: Capture) -> None:
    assert "0 problems." in run(capsys, "dataset", "validate", *WHERE)


def test_its_runs_are_listed(project: Path, capsys: Capture) -> None:
    listed = run(capsys, "runs", "list", *WHERE)
    assert [line.split()[1] for line in listed.splitlines() if line.split()[0] in {CUSTOM, TINY}] == ["finished"] * 2


def test_its_checkpoints_are_listed(project: Path, capsys: Capture) -> None:
    listed = run(capsys, "checkpoints", "list", *WHERE)
    assert [line.split()[:2] for line in listed.splitlines()[1:]] == [[CUSTOM, "4"], [TINY, "4"]]


def test_a_run_resumes_with_the_losses_of_1_1(project: Path, capsys: Capture) -> None:
    set_steps(project, CUSTOM, 8)
    run(capsys, "runs", "resume", CUSTOM, *WHERE)
    found, wanted = losses(project, CUSTOM), EXPECTED["losses"]
    assert [loss[:2] for loss in found] == [tuple(loss[:2]) for loss in wanted]
    assert [loss[2] for loss in found] == pytest.approx([loss[2] for loss in wanted], rel=1e-4)


def spoken(capsys: Capture, model: Path, out: Path) -> np.ndarray[Any, Any]:
    settings = ("--precision", "fp32", "--seed", "7", "--tries", "1", "--language", "am", "--device", "cpu")
    run(capsys, "speak", TEXT, "--model", str(model), *settings, "--out", str(out))
    samples: np.ndarray[Any, Any] = soundfile.read(out)[0]
    return samples


def test_its_voice_speaks_as_in_1_1(project: Path, tmp_path: Path, capsys: Capture) -> None:
    samples = spoken(capsys, project / "ready", tmp_path / "said.wav")[::500]
    assert len(samples) == len(EXPECTED["speech"])
    assert np.abs(samples - np.array(EXPECTED["speech"])).max() < 1e-3


def test_what_was_spoken_is_in_the_history(project: Path) -> None:
    from utils.studio import takes
    from utils.studio.paths import Project

    (take,) = takes.newest(Project(project))
    assert (take.text, len(take.pieces)) == (TEXT, 2)


def test_a_model_is_exported(project: Path, tmp_path: Path, capsys: Capture) -> None:
    run(capsys, "export", str(project / "ready"), "--out", str(tmp_path / "exported"))
    assert spoken(capsys, tmp_path / "exported", tmp_path / "said.wav").size > 24_000


@pytest.fixture
def without_base(project: Path) -> Path:
    """The run whose embedded voice is gone; the project's voice was exported with it."""
    shutil.rmtree(OUTPUT / "base")
    return project / "runs" / TINY


def test_a_run_without_its_base_speaks(without_base: Path, tmp_path: Path, capsys: Capture) -> None:
    assert spoken(capsys, without_base, tmp_path / "said.wav").size > 24_000


def test_a_run_without_its_base_is_exported(without_base: Path, tmp_path: Path, capsys: Capture) -> None:
    run(capsys, "export", str(without_base), "--out", str(tmp_path / "exported"))
    assert spoken(capsys, tmp_path / "exported", tmp_path / "said.wav").size > 24_000


def test_a_run_without_its_base_is_promoted(without_base: Path, tmp_path: Path, capsys: Capture) -> None:
    run(capsys, "checkpoints", "promote", TINY, "4", *WHERE)
    about = json.loads((OUTPUT / "project" / "ready" / "about.json").read_text(encoding="utf-8"))
    assert about["run"] == TINY
    run(capsys, "checkpoints", "promote", CUSTOM, "4", *WHERE)  # so the parts of the base are still known


def test_a_run_without_its_base_does_not_resume(without_base: Path, capsys: Capture) -> None:
    set_steps(OUTPUT / "project", TINY, 8)
    printed = run(capsys, "runs", "resume", TINY, *WHERE, code=1)
    assert "data/tiny, is missing or has changed" in printed


def test_a_run_without_base_and_exported_voice_says_what_is_missing(without_base: Path, capsys: Capture) -> None:
    shutil.rmtree(OUTPUT / "project" / "ready")
    assert "its base model" in run(capsys, "speak", TEXT, "--model", str(without_base), code=1)
