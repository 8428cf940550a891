"""The Python call ``train_gpt``, as a person uses it."""

import inspect
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.random_base import random_base
from tests.training.running import QUICK, events, figures, same, trained, weights
from tests.training.trainable import write_dataset
from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError
from utils.core.paths import ROOT
from utils.gpt_train import train_gpt
from utils.studio import paths
from utils.studio.paths import Project, list_projects, project_of
from utils.studio.runs import list_runs
from utils.xtts import hub

Capture = pytest.CaptureFixture[str]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(tmp_path: Path, dataset: Path) -> Project:
    shutil.copytree(dataset, tmp_path / "output" / "mine" / "dataset")
    return Project(tmp_path / "output" / "mine")


@pytest.mark.slow
def test_the_example_in_the_reference_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    write_dataset(tmp_path / "output" / "mine" / "dataset", train=2, held_back=1)
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "REFERENCE.md"
    example = next(text for text in BLOCK.findall(page.read_text("utf-8")) if "train_gpt" in text)
    exec(compile(example, page.name, "exec"), {})  # our own page
    printed = capsys.readouterr()
    assert printed.out.startswith("5 ")
    assert "step 3/3 · loss " in printed.err
    (run,) = list_runs(Project(tmp_path / "output" / "mine"))
    assert figures(run, "step") == [1, 2, 3, 4, 5]
    assert [str(event["file"]) for event in events(run, "sample")]
    assert events(run, "sample")[0]["recording"] == "dataset/wavs/eval0.wav"


@pytest.mark.slow
def test_a_resumed_call_gives_the_weights_of_one_call(
    project: Project, dataset: Path, tmp_path: Path, capsys: Capture
) -> None:
    constant = {"lr_scheduler": "constant", "warmup_steps": 0}  # the same for runs of another length
    values: dict[str, Any] = {
        **QUICK,
        **constant,
        "custom_model": random_base(),
        "output_path": str(project.root),
        "progress": False,
    }
    train_gpt(**(values | {"max_steps": 3}))
    result = train_gpt(output_path=str(project.root), resume="latest", max_steps=6, progress=False)
    assert capsys.readouterr().err == ""
    assert result.updates == 6
    assert same(weights(list_runs(project)[0]), weights(trained(tmp_path / "other", dataset, **constant)))


def test_without_a_run_there_is_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(AmharicTtsError, match="no training run"):
        train_gpt(output_path=str(tmp_path), resume="latest")


def test_the_licence_is_accepted_by_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "LICENCE_CONSENT", tmp_path / "consent.json")
    with pytest.raises(AmharicTtsError, match="no training run"):
        train_gpt(output_path=str(tmp_path), resume="latest", accept_licence=True)
    assert hub.licence_accepted(tmp_path / "consent.json")


def test_the_signature_names_every_setting() -> None:
    names = list(inspect.signature(train_gpt).parameters)
    assert names[:3] == ["resume", "accept_licence", "progress"]
    assert set(names[3:]) == TrainConfig.model_fields.keys()


def test_the_folder_of_all_projects_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("utils.studio.paths.OUTPUT", tmp_path)
    assert project_of(TrainConfig()).root == tmp_path / "default"
    assert project_of(TrainConfig(output_path=str(tmp_path))).root == tmp_path / "default"
    assert project_of(TrainConfig(output_path=str(tmp_path / "mine"))).root == tmp_path / "mine"
    for name in ("dataset", "runs", "mine"):
        (tmp_path / name).mkdir()
    assert list_projects(tmp_path) == ["mine"]  # not three, where a program trained in the folder itself
    assert project_of(TrainConfig(output_path=str(tmp_path))).root == tmp_path
