"""Projects: made, copied, renamed, deleted and brought back, and what the page asks before it deletes something."""

import asyncio
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

from tests.ui.serving import emptied
from utils import runs
from utils.core.errors import RunBusyError, StorageError
from utils.core.paths import Project, list_projects
from utils.dataset.subtitles import read_cues
from utils.media import audio
from utils.ui import projects as panel
from utils.ui.i18n import t
from utils.workspace import projects, sample_project
from utils.workspace.projects import CopyProgress

SKIPPED = {"__type__": "update"}


@pytest.fixture
def place(tmp_path: Path) -> Project:
    """A project with a clip, a list, a finished run with its own base, and what a kill left."""
    made = projects.create("voice", tmp_path)
    (made.dataset / "wavs").mkdir(parents=True)
    (made.dataset / "wavs" / "a.wav").write_bytes(b"sound")
    (made.dataset / "manifest.csv").write_text("id\n", encoding="utf-8")
    (made.dataset / ".lock").touch()
    run = add_run(made, runs.Status.FINISHED)
    (run.folder / "base.json").write_text(json.dumps({"folder": f"{run.folder}/start"}), encoding="utf-8")
    return made


def add_run(place: Project, status: runs.Status, name: str = "20260101-000000-train") -> runs.Run:
    run = runs.Run(place.runs / name)
    run.folder.mkdir(parents=True)
    run.write_state(runs.State("train", status, created=time.time(), heartbeat=time.time()))
    return run


def test_a_name_is_given_once(place: Project, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="voice"):
        projects.create(" voice ", tmp_path)
    with pytest.raises(StorageError, match="voice"):
        projects.find("other", tmp_path)


def test_a_copy_shares_sound_and_owns_what_grows(place: Project, tmp_path: Path) -> None:
    steps: list[CopyProgress] = []
    before = runs.list_runs(place)[0].current_state()
    copy = projects.duplicate(place, "copy", tmp_path, steps.append)
    sound, manifest = Path("dataset", "wavs", "a.wav"), Path("dataset", "manifest.csv")
    assert (place.root / sound).samefile(copy.root / sound)
    assert not (place.root / manifest).samefile(copy.root / manifest)
    assert not (copy.dataset / ".lock").exists()
    assert steps[-1].done == steps[-1].total
    (run,) = runs.list_runs(copy)
    assert str(copy.root) in (run.folder / "base.json").read_text(encoding="utf-8")
    assert run.current_state() == before
    assert list_projects(tmp_path) == ["copy", "voice"]


def test_a_copy_that_breaks_off_or_has_no_room_leaves_nothing(
    place: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: CopyProgress) -> None:
        raise OSError(5, "The disk is gone")

    with pytest.raises(StorageError, match="The disk is gone"):
        projects.duplicate(place, "copy", tmp_path, stop)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(StorageError, match="are free"):
        projects.duplicate(place, "copy", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["voice"]


def test_a_renamed_project_finds_its_own_base(place: Project, tmp_path: Path) -> None:
    moved = projects.rename(place, "ድምፅ", tmp_path)
    (run,) = runs.list_runs(moved)
    assert json.loads((run.folder / "base.json").read_text(encoding="utf-8"))["folder"] == f"{run.folder}/start"
    assert list_projects(tmp_path) == ["ድምፅ"]


def test_nothing_is_done_to_a_project_with_a_run(place: Project, tmp_path: Path) -> None:
    add_run(place, runs.Status.STARTING, "20260102-000000-train")
    for action in (
        lambda: projects.duplicate(place, "copy", tmp_path),
        lambda: projects.rename(place, "copy", tmp_path),
        lambda: projects.delete(place, tmp_path),
    ):
        with pytest.raises(RunBusyError, match="running"):
            action()
    assert list_projects(tmp_path) == ["voice"]
    actions = panel.available_actions(tmp_path, "voice", "copy", "en")
    assert allowed(actions) == [True, False, False, False, False]
    assert actions["reasons"].count(t("project.is_running", "en")) == 1


def allowed(actions: dict[str, Any]) -> list[bool]:
    return [actions[name]["interactive"] for name in ("create", "duplicate", "rename", "delete", "restore")]


def test_buttons_say_why_they_are_disabled(place: Project, tmp_path: Path) -> None:
    assert allowed(panel.available_actions(tmp_path, "voice", "", "en")) == [False, False, False, True, False]
    assert allowed(panel.available_actions(tmp_path, "voice", "copy", "en")) == [True, True, True, True, False]
    nothing = panel.available_actions(tmp_path, "other", "copy", "en")
    assert allowed(nothing) == [True, False, False, False, False]
    assert t("project.empty", "en") in nothing["reasons"]


def test_a_deleted_project_comes_back_whole(place: Project, tmp_path: Path) -> None:
    gone = projects.delete(place, tmp_path)
    assert (list_projects(tmp_path), gone.name) == ([], "voice")
    projects.create("voice", tmp_path)
    (one,) = projects.list_deleted(tmp_path)
    back = projects.restore(one.id, tmp_path)
    assert back.root.name == "voice-2"
    assert (back.dataset / "wavs" / "a.wav").read_bytes() == b"sound"
    for gone_or_never_there in (one.id, "../voice", "", "/etc"):
        with pytest.raises(StorageError, match="trash"):
            projects.restore(gone_or_never_there, tmp_path)


def test_the_trash_is_emptied_of_what_is_old(place: Project, tmp_path: Path) -> None:
    old = projects.delete(place, tmp_path).folder
    old.rename(old.with_name(f"{time.time_ns() - 8 * 86_400 * 10**9}-voice"))
    projects.delete(projects.create("young", tmp_path), tmp_path)
    left = tmp_path / ".voice.copy-1"
    left.mkdir()
    os.utime(left, (0, 0))
    assert projects.empty_trash(tmp_path, days=7) == 1
    assert [one.name for one in projects.list_deleted(tmp_path)] == ["young"]
    assert not left.exists()
    assert projects.empty_trash(tmp_path) == 1


def test_the_sample_is_sound_with_its_words(tmp_path: Path) -> None:
    made = sample_project.create(tmp_path)
    folder = made.dataset / sample_project.UPLOADS
    cues = read_cues(folder / sample_project.SUBTITLE_FILE).cues
    seconds = audio.duration(folder / sample_project.AUDIO_FILE)
    assert 170 < seconds < 190
    assert [cue.text for cue in cues] == sample_project.sentences()
    assert cues[-1].span.end < seconds
    before = (folder / sample_project.AUDIO_FILE).stat().st_mtime_ns
    sample_project.create(tmp_path)
    assert (folder / sample_project.AUDIO_FILE).stat().st_mtime_ns == before


# the page, as gradio calls it for one tab of a browser


class Visitor:
    """What gradio does for one tab of a browser: it keeps its states, and updates the widgets."""

    def __init__(self, blocks: gr.Blocks) -> None:
        self.blocks = blocks
        self.state = SessionState(blocks)

    def widget(self, elem_id: str) -> Block:
        return next(block for block in self.blocks.blocks.values() if block.elem_id == elem_id)

    def send(self, elem_id: str, kind: str, **values: str) -> dict[Block, Any]:
        """Send what the widgets hold by their ids with an event of a widget; return the update of each output."""
        target = self.widget(elem_id)._id, kind
        return self.trigger(next(event for event in self.blocks.fns.values() if target in event.targets), **values)

    def trigger(self, event: BlockFunction, **values: str) -> dict[Block, Any]:
        inputs = [values.get(str(block.elem_id).replace("-", "_")) for block in event.inputs]
        answer = asyncio.run(self.blocks.process_api(event, inputs, state=self.state))
        return dict(zip(event.outputs, answer["data"], strict=True))


@pytest.fixture
def visitor(blocks: gr.Blocks, output: Path) -> Visitor:
    """A new visitor of a page with two projects."""
    emptied(output)
    for name in ("first", "second"):
        projects.create(name, output)
    return Visitor(blocks)


def test_the_selection_of_a_deleted_project_survives_a_refresh(visitor: Visitor, output: Path) -> None:
    for name in ("first", "second"):
        projects.delete(projects.find(name, output), output)
    chooser = visitor.widget("deleted-projects")
    first, again = (visitor.send("project-name", "input", project="voice", project_name="")[chooser] for _ in range(2))
    assert [label.partition(" ")[0] for label, _ in first["choices"]] == ["second", "first"]
    assert again == SKIPPED


@pytest.mark.parametrize(
    ("ask", "confirm", "chosen", "other"),
    [
        ("delete-project", "project-question-confirm", {"project": "first"}, {"project": "second"}),
        ("data-delete", "data-run-question-confirm", {"data_runs": "r1"}, {"data_runs": "r2"}),
        ("delete-version", "download-question-confirm", {"download_version": "main"}, {"download_version": "v2.0.3"}),
        ("free-space", "free-question-confirm", {"project": "first"}, {"project": "second"}),
    ],
)
def test_a_confirmation_is_about_what_was_asked(
    visitor: Visitor, output: Path, ask: str, confirm: str, chosen: dict[str, str], other: dict[str, str]
) -> None:
    same = {"language": "en", "project": "first", "spare_kind": "features"}
    visitor.send(ask, "click", **same | chosen)
    with pytest.raises(gr.Error, match="selection has changed"):
        visitor.send(confirm, "click", **same | other)
    assert list_projects(output) == ["first", "second"]


def test_confirming_deletes_and_another_selection_hides_the_question(visitor: Visitor, output: Path) -> None:
    asked = visitor.send("delete-project", "click", language="en", project="first")
    box = next(block for block in asked if isinstance(block, gr.Column))
    assert asked[box]["visible"] is True
    withdraw = next(event for event in visitor.blocks.fns.values() if event.outputs == [box] and len(event.inputs) > 1)
    assert visitor.trigger(withdraw, project="first")[box] == SKIPPED
    assert visitor.trigger(withdraw, project="second")[box]["visible"] is False
    visitor.send("project-question-confirm", "click", language="en", project="first")
    assert list_projects(output) == ["second"]
