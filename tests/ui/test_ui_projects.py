"""Projects: created, copied, renamed, deleted and restored, and the questions before something is deleted."""

import json
import os
import re
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from tests.ui import auditing
from tests.ui.data_folders import add_run
from tests.ui.serving import emptied
from utils.core.errors import RunBusyError, StorageError
from utils.core.facts import Fact, Progress
from utils.core.storage import read_document
from utils.studio import projects, runs
from utils.studio.paths import Project, list_projects
from utils.ui import projects as panel
from utils.ui.i18n import t
from utils.ui.page import PanelRequest

SOUND, LIST = Path("dataset", "wavs", "a.wav"), Path("dataset", "manifest.csv")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a clip, a list, a finished run with its own base, and a lock file of a killed process."""
    project = projects.create("voice", tmp_path)
    (project.dataset / "wavs").mkdir(parents=True)
    (project.root / SOUND).write_bytes(b"sound")
    (project.root / LIST).write_text("id\n", encoding="utf-8")
    (project.dataset / ".lock").touch()
    run = add_run(project, "20260101-000000-train", "finished")
    (run.folder / "base.json").write_text(json.dumps({"folder": f"{run.folder}/start"}), encoding="utf-8")
    return project


def base_of(project: Project) -> Path:
    """The base that the only run of a project was started from, relative to the project."""
    (run,) = runs.list_runs(project)
    base = read_document(run.folder / "base.json")["folder"]
    return Path(base).relative_to(project.root)


def shown(project: Project) -> str:
    """What the panel shows while a project is open."""
    page: Any = SimpleNamespace(output=project.root.parent, look=lambda _: project)
    return panel.render(PanelRequest(page, project.root.name))


def test_a_renamed_copy_finds_its_own_base(project: Project, tmp_path: Path) -> None:
    steps: list[Fact] = []
    base = base_of(project)
    copy = projects.duplicate(project, "copy", tmp_path, steps.append)
    assert (project.root / SOUND).samefile(copy.root / SOUND)
    assert not (project.root / LIST).samefile(copy.root / LIST)
    assert not (copy.dataset / ".lock").exists()
    assert isinstance(steps[-1], Progress)
    assert steps[-1].step == steps[-1].total > 0
    assert base_of(projects.rename(copy, "ድምፅ", tmp_path)) == base
    assert list_projects(tmp_path) == ["voice", "ድምፅ"]


def test_a_failed_copy_leaves_nothing(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: Fact) -> None:
        raise OSError(5, "The disk is gone")

    with pytest.raises(StorageError, match="The disk is gone"):
        projects.duplicate(project, "copy", tmp_path, stop)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(StorageError, match="are free"):
        projects.duplicate(project, "copy", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["voice"]


@pytest.mark.usefixtures("project")
def test_a_name_belongs_to_one_project(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="voice"):
        projects.create(" voice ", tmp_path)
    with pytest.raises(StorageError, match="voice"):
        projects.find("other", tmp_path)


def test_a_project_with_an_active_run_is_not_changed(project: Project, tmp_path: Path) -> None:
    add_run(project, "20260102-000000-train")
    for action in (
        lambda: projects.duplicate(project, "copy", tmp_path),
        lambda: projects.rename(project, "copy", tmp_path),
        lambda: projects.delete(project, tmp_path),
    ):
        with pytest.raises(RunBusyError, match="-train is running in the project voice"):
            action()
    assert list_projects(tmp_path) == ["voice"]
    assert re.findall('data-act="([a-z]+)"', shown(project)) == ["new"]
    assert t("project.is_running") in shown(project)


def test_names_that_differ_only_in_capital_letters_are_one(project: Project, tmp_path: Path) -> None:
    other = projects.create("other", tmp_path)
    for action in (projects.create, partial(projects.duplicate, project), partial(projects.rename, other)):
        with pytest.raises(StorageError, match="differ only in capital letters"):
            action("VOICE", tmp_path)
    projects.delete(project, tmp_path)
    (deleted,) = projects.list_deleted(tmp_path)
    projects.create("VOICE", tmp_path)
    assert projects.restore(deleted.id, tmp_path).root.name == "voice-2"


def test_a_project_can_get_the_same_name_in_capital_letters(project: Project, tmp_path: Path) -> None:
    assert projects.rename(project, "VOICE", tmp_path).root.name == "VOICE"
    assert list_projects(tmp_path) == ["VOICE"]


def test_folders_with_odd_names_are_listed_as_no_projects(project: Project, tmp_path: Path) -> None:
    (tmp_path / "<img src=x onerror=alert(1)>").mkdir()
    (tmp_path / "my (new) project").mkdir()
    assert shown(project).count("Not a project: ") == 2
    assert "my (new) project" in shown(project)
    assert "<img" not in shown(project)


def test_a_page_opens_the_project_that_changed_last(tmp_path: Path) -> None:
    for name in ("abebe", "genet", "lema"):
        projects.create(name, tmp_path)
    run = tmp_path / "genet/runs/one"
    run.mkdir(parents=True)
    later = time.time() + 10
    os.utime(run, (later, later))
    assert panel.choose_project(tmp_path)["value"] == "genet"


def test_a_deleted_project_is_restored_whole(project: Project, tmp_path: Path) -> None:
    projects.delete(project, tmp_path)
    assert list_projects(tmp_path) == []
    projects.create("voice", tmp_path)
    (deleted,) = projects.list_deleted(tmp_path)
    restored = projects.restore(deleted.id, tmp_path)
    assert restored.root.name == "voice-2"
    assert (restored.root / SOUND).read_bytes() == b"sound"
    for unknown in (deleted.id, "../voice", "", "/etc"):
        with pytest.raises(StorageError, match="no longer exists"):
            projects.restore(unknown, tmp_path)


def test_the_trash_is_emptied_of_old_projects(project: Project, tmp_path: Path) -> None:
    old = projects.delete(project, tmp_path).folder
    old.rename(old.with_name(f"{time.time_ns() - 8 * 86_400 * 10**9}-voice"))
    projects.delete(projects.create("young", tmp_path), tmp_path)
    unfinished_copy = tmp_path / ".voice.copy-1"
    unfinished_copy.mkdir()
    os.utime(unfinished_copy, (0, 0))
    assert projects.empty_trash(tmp_path, days=7) == 1
    assert [deleted.name for deleted in projects.list_deleted(tmp_path)] == ["young"]
    assert not unfinished_copy.exists()


def test_a_tab_says_that_its_project_is_gone(tmp_path: Path) -> None:
    assert panel.gone("default", tmp_path) == ""
    projects.create("voice", tmp_path)
    assert panel.gone("voice", tmp_path) == ""
    assert "Project old has been renamed or deleted." in panel.gone("old", tmp_path)


@pytest.mark.parametrize("old", ["old", "default"])
def test_nothing_is_done_in_a_project_that_is_gone(blocks: gr.Blocks, output: Path, old: str) -> None:
    emptied(output)
    projects.create("voice", output)
    reason = f"Project {old} was not found. Projects: voice."
    assert reason in auditing.shown(blocks, "sources", "add", old, link=str(output))
    with pytest.raises(gr.Error, match=reason):
        auditing.act(blocks, "fix-pronunciation", "fix_pronunciation", old, written="ገና", spoken="gəna")
    assert list_projects(output) == ["voice"]
    unasked = {"refresh", "effects", "_restore", "_describe"}  # no error is shown of what nobody started
    for event in (event for event in auditing.handlers(blocks) if auditing.name_of(event) in unasked):
        values = [old if block.elem_id == "project" else auditing.value_of(block) for block in event.inputs]
        auditing.respond(blocks, event, values)


def test_the_project_that_the_question_named_is_deleted_whatever_is_open(blocks: gr.Blocks, output: Path) -> None:
    emptied(output)
    for name in ("first", "second"):
        projects.create(name, output)
    auditing.act(blocks, "projects-panel", "delete", "first", project="second")
    assert list_projects(output) == ["first"]
