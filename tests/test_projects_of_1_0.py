"""A project that version 1.0 prepared, corrected, trained and spoke in still opens, resumes and speaks.

``tests/data/project_1_0`` holds the project, what 1.0 itself did next with it, and the script that made both.
"""

import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from utils.__main__ import main
from utils.config import TrainConfig
from utils.core import paths
from utils.core.errors import ConfigError
from utils.media import audio

STORED = Path(__file__).parent / "data" / "project_1_0"
OUTPUT = Path("/tmp/amharic-xtts-1.0")  # 1.0 wrote absolute paths
TEXT = "ሰላም ለዓለም። ደህና ናችሁ?"
EXPECTED: dict[str, Any] = json.loads((STORED / "expected.json").read_text(encoding="utf-8"))

pytestmark = pytest.mark.slow


@pytest.fixture
def project() -> Iterator[Path]:
    shutil.rmtree(OUTPUT, ignore_errors=True)
    with tarfile.open(STORED / "project.tar.xz") as archive:
        archive.extractall(OUTPUT, filter="data")
    yield OUTPUT / "project"
    shutil.rmtree(OUTPUT, ignore_errors=True)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command on the project and return what it prints."""
    capsys.readouterr()
    assert main([*words, "--output", str(OUTPUT)]) == 0
    return capsys.readouterr().out


def test_the_dataset_opens_with_its_corrections(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--project", "project")
    assert "noise: የት ጠፍተህ ነበር?" in run(capsys, "dataset", "restore", *where)
    run(capsys, "dataset", "validate", *where)
    excluded = "aa9a0a0a71a553b5-00006938-00010694"
    run(capsys, "dataset", "restore", excluded, *where)
    lists = [(project / "dataset" / f"metadata_{split}.csv").read_text(encoding="utf-8") for split in ("train", "eval")]
    assert f"wavs/{excluded}.wav|የት ጠፍተህ ነበር? ታምሜ ተኝቼ ነበር።" in "".join(lists)
    assert "|ተነስ፣ ነጋ ጠባ።|" in "".join(lists)  # the text that a person corrected


def test_the_run_resumes_where_it_was(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project / "runs" / EXPECTED["run"]
    settings = (folder / "config.yaml").read_text(encoding="utf-8")
    (folder / "config.yaml").write_text(settings.replace("max_steps: 4", "max_steps: 8"), encoding="utf-8")
    assert EXPECTED["run"] in run(capsys, "runs", "list", "--project", "project")
    run(capsys, "runs", "resume", EXPECTED["run"], "--project", "project")
    run(capsys, "runs", "watch", EXPECTED["run"], "--project", "project")
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [(event["kind"], event["step"], event["loss"]) for event in events if "loss" in event]
    assert [loss[:2] for loss in losses] == [tuple(loss[:2]) for loss in EXPECTED["losses"]]
    assert [loss[2] for loss in losses] == pytest.approx([loss[2] for loss in EXPECTED["losses"]], rel=1e-4)


@pytest.mark.parametrize("model", ["ready", f"runs/{EXPECTED['run']}"])
def test_its_models_speak_as_they_did(
    model: str, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ("--precision", "fp32", "--seed", "7", "--tries", "1", "--language", "am", "--loudness", "0")
    words = ["speak", TEXT, "--model", str(project / model), *settings, "--out", str(tmp_path / "said.wav")]
    capsys.readouterr()
    assert main(words) == 0
    spoken = audio.load(tmp_path / "said.wav", 24_000)[::500]
    assert len(spoken) == len(EXPECTED["speech"])
    assert np.abs(spoken - np.array(EXPECTED["speech"])).max() < 1e-4


def test_what_was_spoken_is_in_the_history(project: Path) -> None:
    from utils.core.paths import Project
    from utils.studio import takes

    (take,) = takes.newest(Project(project))
    assert take.text == TEXT
    assert len(take.pieces) == 2
    assert takes.load_audio(Project(project), take).size / 24_000 > 1


def test_a_run_of_the_retired_base_opens_while_the_folder_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = tmp_path / "config.yaml"
    stored.write_text("version: tiny-random\n")
    monkeypatch.setattr(paths, "MODELS", tmp_path)
    with pytest.raises(ConfigError, match="tiny-random"):
        TrainConfig.load(stored)
    (tmp_path / "tiny-random").mkdir()
    config = TrainConfig.load(stored)
    assert config.model_dump()["version"] == "tiny-random"
    assert TrainConfig.parse(yaml.safe_load(config.to_yaml())) == config
