"""Projects: made, copied, renamed, deleted and brought back."""

import dataclasses
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from utils import runs
from utils.core.errors import RunBusyError, StorageError
from utils.core.paths import Project, list_projects
from utils.core.storage import write_atomically
from utils.dataset.subtitles import read_cues
from utils.media import audio
from utils.ui import projects as panel
from utils.ui.i18n import t
from utils.workspace import projects, sample_project
from utils.workspace.projects import CopyProgress


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
    with pytest.raises(StorageError, match="cannot be a folder name"):
        projects.create("../up", tmp_path)


def test_a_copy_shares_sound_and_owns_what_grows(place: Project, tmp_path: Path) -> None:
    steps: list[CopyProgress] = []
    copy = projects.duplicate(place, "copy", tmp_path, steps.append)
    sound, manifest = Path("dataset", "wavs", "a.wav"), Path("dataset", "manifest.csv")
    assert (place.root / sound).samefile(copy.root / sound)
    assert not (place.root / manifest).samefile(copy.root / manifest)
    assert not (copy.dataset / ".lock").exists()
    assert steps[-1].done == steps[-1].total
    (run,) = runs.list_runs(copy)
    assert str(copy.root) in (run.folder / "base.json").read_text(encoding="utf-8")
    assert list_projects(tmp_path) == ["copy", "voice"]


def test_a_copy_that_has_no_room_leaves_nothing(
    place: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(StorageError, match="are free"):
        projects.duplicate(place, "copy", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["voice"]


def test_a_copy_that_breaks_off_leaves_nothing(place: Project, tmp_path: Path) -> None:
    def stop(_: CopyProgress) -> None:
        raise OSError(5, "The disk is gone")

    with pytest.raises(StorageError, match="The disk is gone"):
        projects.duplicate(place, "copy", tmp_path, stop)
    assert [path.name for path in tmp_path.iterdir()] == ["voice"]


def test_a_renamed_project_finds_its_own_base(place: Project, tmp_path: Path) -> None:
    moved = projects.rename(place, "ድምፅ", tmp_path)
    (run,) = runs.list_runs(moved)
    assert json.loads((run.folder / "base.json").read_text(encoding="utf-8"))["folder"] == f"{run.folder}/start"
    assert list_projects(tmp_path) == ["ድምፅ"]


@pytest.mark.parametrize("action", ["duplicate", "rename", "delete"])
def test_nothing_is_done_to_a_project_at_work(place: Project, tmp_path: Path, action: str) -> None:
    add_run(place, runs.Status.RUNNING, "20260102-000000-train").write_state(
        runs.State("train", runs.Status.STARTING, created=time.time(), heartbeat=time.time())
    )
    words = ["copy"] * (action != "delete")
    with pytest.raises(RunBusyError, match="running"):
        getattr(projects, action)(place, *words, output=tmp_path)
    assert list_projects(tmp_path) == ["voice"]


def test_a_deleted_project_comes_back_whole(place: Project, tmp_path: Path) -> None:
    gone = projects.delete(place, tmp_path)
    assert (list_projects(tmp_path), gone.name) == ([], "voice")
    projects.create("voice", tmp_path)
    (one,) = projects.list_deleted(tmp_path)
    back = projects.restore(one.id, tmp_path)
    assert back.root.name == "voice-2"
    assert (back.dataset / "wavs" / "a.wav").read_bytes() == b"sound"
    with pytest.raises(StorageError, match="trash"):
        projects.restore(one.id, tmp_path)


@pytest.mark.parametrize("which", ["../voice", "", "1-voice", "/etc"])
def test_only_a_deleted_project_is_brought_back(place: Project, tmp_path: Path, which: str) -> None:
    with pytest.raises(StorageError, match="trash"):
        projects.restore(which, tmp_path)


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


# the header


def allowed(found: dict[str, Any]) -> list[bool]:
    return [found[name]["interactive"] for name in ("create", "duplicate", "rename", "delete", "restore")]


def test_buttons_say_why_they_cannot_be_used(place: Project, tmp_path: Path) -> None:
    assert allowed(panel.available_actions(tmp_path, "voice", "", "en")) == [False, False, False, True, False]
    assert allowed(panel.available_actions(tmp_path, "voice", "copy", "en")) == [True, True, True, True, False]
    nothing = panel.available_actions(tmp_path, "other", "copy", "en")
    assert allowed(nothing) == [True, False, False, False, False]
    assert t("project.empty", "en") in nothing["reasons"]
    write_atomically(add_run(place, runs.Status.STARTING, "r2").folder / "note", "")
    busy = panel.available_actions(tmp_path, "voice", "copy", "en")
    assert allowed(busy) == [True, False, False, False, False]
    assert busy["reasons"].count(t("project.is_running", "en")) == 1


def test_the_deleted_ones_are_offered_the_last_one_first(place: Project, tmp_path: Path) -> None:
    projects.delete(projects.create("first", tmp_path), tmp_path)
    projects.delete(place, tmp_path)
    offered = panel.available_actions(tmp_path, "other", "", "en")
    assert [label.partition(" · ")[0] for label, _ in offered["deleted"]["choices"]] == ["voice", "first"]
    assert allowed(offered)[-1]


def test_a_projects_state_is_left_as_it_was(place: Project, tmp_path: Path) -> None:
    (run,) = runs.list_runs(place)
    before = dataclasses.asdict(run.current_state())
    copy = projects.duplicate(place, "copy", tmp_path)
    assert dataclasses.asdict(runs.list_runs(copy)[0].current_state()) == before
