"""Projects: created, copied, renamed, deleted and restored, and the questions before something is deleted."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio.block_function import BlockFunction
from gradio.blocks import Block
from gradio.state_holder import SessionState

from tests.ui import auditing
from tests.ui.data_folders import add_run
from tests.ui.serving import emptied
from utils import runs
from utils.core.errors import RunBusyError, StorageError
from utils.core.paths import Project, list_projects
from utils.ui import projects as panel
from utils.ui.i18n import t
from utils.workspace import projects
from utils.workspace.projects import CopyProgress

UNCHANGED = {"__type__": "update"}
SOUND, LIST = Path("dataset", "wavs", "a.wav"), Path("dataset", "manifest.csv")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a clip, a list, a finished run with its own base, and a lock file of a killed process."""
    project = projects.create("voice", tmp_path)
    (project.dataset / "wavs").mkdir(parents=True)
    (project.root / SOUND).write_bytes(b"sound")
    (project.root / LIST).write_text("id\n", encoding="utf-8")
    (project.dataset / ".lock").touch()
    run = add_run(project, "20260101-000000-train", runs.Status.FINISHED)
    (run.folder / "base.json").write_text(json.dumps({"folder": f"{run.folder}/start"}), encoding="utf-8")
    return project


def base_of(project: Project) -> Path:
    """The base that the only run of a project was started from, relative to the project."""
    (run,) = runs.list_runs(project)
    base = json.loads((run.folder / "base.json").read_text(encoding="utf-8"))["folder"]
    return Path(base).relative_to(project.root)


def test_a_copy_shares_audio_and_finds_its_own_base_even_when_renamed(project: Project, tmp_path: Path) -> None:
    steps: list[CopyProgress] = []
    base = base_of(project)
    copy = projects.duplicate(project, "copy", tmp_path, steps.append)
    assert (project.root / SOUND).samefile(copy.root / SOUND)
    assert not (project.root / LIST).samefile(copy.root / LIST)
    assert not (copy.dataset / ".lock").exists()
    assert steps[-1].done == steps[-1].total
    assert base_of(projects.rename(copy, "ድምፅ", tmp_path)) == base
    assert list_projects(tmp_path) == ["voice", "ድምፅ"]


def test_a_failed_copy_leaves_nothing_and_a_name_is_used_once(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: CopyProgress) -> None:
        raise OSError(5, "The disk is gone")

    with pytest.raises(StorageError, match="The disk is gone"):
        projects.duplicate(project, "copy", tmp_path, stop)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(StorageError, match="are free"):
        projects.duplicate(project, "copy", tmp_path)
    with pytest.raises(StorageError, match="voice"):
        projects.create(" voice ", tmp_path)
    with pytest.raises(StorageError, match="voice"):
        projects.find("other", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["voice"]


def test_a_project_with_an_active_run_is_not_changed(project: Project, tmp_path: Path) -> None:
    add_run(project, "20260102-000000-train")
    for action in (
        lambda: projects.duplicate(project, "copy", tmp_path),
        lambda: projects.rename(project, "copy", tmp_path),
        lambda: projects.delete(project, tmp_path),
    ):
        with pytest.raises(RunBusyError, match="running"):
            action()
    assert list_projects(tmp_path) == ["voice"]
    actions = panel.available_actions(tmp_path, "voice", "copy", "en")
    enabled = [name for name, update in actions.items() if isinstance(update, dict) and update.get("visible")]
    assert enabled == ["project.new"]
    assert t("project.is_running", "en") in actions["reason"]


def test_a_deleted_project_is_restored_whole(project: Project, tmp_path: Path) -> None:
    projects.delete(project, tmp_path)
    assert list_projects(tmp_path) == []
    projects.create("voice", tmp_path)
    (deleted,) = projects.list_deleted(tmp_path)
    restored = projects.restore(deleted.id, tmp_path)
    assert restored.root.name == "voice-2"
    assert (restored.root / SOUND).read_bytes() == b"sound"
    for unknown in (deleted.id, "../voice", "", "/etc"):
        with pytest.raises(StorageError, match="trash"):
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


# the page, as gradio calls it for one tab of a browser


class Visitor:
    """What gradio does for one tab of a browser: it stores its states and updates its widgets."""

    def __init__(self, blocks: gr.Blocks) -> None:
        self.blocks, self.state = blocks, SessionState(blocks)

    def send(self, elem_id: str, kind: str, **values: str) -> dict[Block, Any]:
        """Trigger the event of a widget."""
        widget = next(block for block in self.blocks.blocks.values() if block.elem_id == elem_id)
        event = next(event for event in self.blocks.fns.values() if (widget._id, kind) in event.targets)
        return self.trigger(event, **values)

    def trigger(self, event: BlockFunction, **values: str) -> dict[Block, Any]:
        """Send the values of widgets by their ids; return the update of each output."""
        inputs = [values.get(str(block.elem_id).replace("-", "_")) for block in event.inputs]
        return dict(zip(event.outputs, auditing.respond(self.blocks, event, inputs, self.state), strict=True))


@pytest.fixture
def visitor(blocks: gr.Blocks, output: Path) -> Visitor:
    """A new visitor of a page with two projects."""
    emptied(output)
    for name in ("first", "second"):
        projects.create(name, output)
    return Visitor(blocks)


@pytest.mark.parametrize(
    ("ask", "confirm", "chosen", "other"),
    [
        ("delete-project", "project-question-confirm", {"project": "first"}, {"project": "second"}),
        ("data-delete", "data-run-question-confirm", {"data_runs": "r1"}, {"data_runs": "r2"}),
        ("delete-version", "download-question-confirm", {"download_version": "main"}, {"download_version": "v2.0.3"}),
        ("free-space", "free-question-confirm", {"project": "first"}, {"project": "second"}),
    ],
)
def test_a_confirmation_applies_to_the_selection_in_question(
    visitor: Visitor, output: Path, ask: str, confirm: str, chosen: dict[str, str], other: dict[str, str]
) -> None:
    same = {"language": "en", "project": "first", "spare_kind": "features"}
    visitor.send(ask, "click", **same | chosen)
    with pytest.raises(gr.Error, match="selection has changed"):
        visitor.send(confirm, "click", **same | other)
    assert list_projects(output) == ["first", "second"]


def test_confirming_deletes_and_another_selection_hides_the_question(visitor: Visitor, output: Path) -> None:
    updates = visitor.send("delete-project", "click", language="en", project="first")
    box = next(block for block in updates if isinstance(block, gr.Column))
    assert updates[box]["visible"] is True
    hide = next(event for event in visitor.blocks.fns.values() if event.outputs == [box] and len(event.inputs) > 1)
    assert visitor.trigger(hide, project="first")[box] == UNCHANGED
    assert visitor.trigger(hide, project="second")[box]["visible"] is False
    visitor.send("project-question-confirm", "click", language="en", project="first")
    assert list_projects(output) == ["second"]
