"""The System tab: settings, licence, base models, disk."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.ui.data_folders import add_run
from tests.waiting import wait_for
from tests.xtts.hub_server import Hub, serving
from utils.core.errors import ConfigError, RunBusyError
from utils.core.events import EventLog
from utils.core.facts import Progress
from utils.studio import disk_usage, downloads, page_settings, paths, projects, runs
from utils.studio.disk_usage import DiskUsage
from utils.studio.facts import InputError
from utils.studio.page_settings import PageSettings
from utils.studio.paths import Project
from utils.ui.i18n import t
from utils.ui.page import PanelRequest
from utils.ui.tabs.system import base_models, disk
from utils.xtts import checkpoints
from utils.xtts.facts import ConsentFixedError, LicenceError
from utils.xtts.files import HUB_FILES
from utils.xtts.hub import VARIABLE


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the models and the consent of this computer alone."""
    monkeypatch.setattr(paths, "MODELS", tmp_path / "models")
    monkeypatch.setattr(paths, "LICENCE_CONSENT", tmp_path / "consent.json")
    monkeypatch.delenv(VARIABLE, raising=False)


def test_invalid_settings_are_the_defaults(tmp_path: Path) -> None:
    assert page_settings.read(tmp_path) == PageSettings()
    page_settings.write(PageSettings(colours="dark", kept_days=3), tmp_path)
    assert page_settings.read(tmp_path) == PageSettings(colours="dark", kept_days=3)
    page_settings.settings_path(tmp_path).write_text("colours: pink", encoding="utf-8")
    assert page_settings.read(tmp_path) == PageSettings()


def test_consent_by_a_variable_is_withdrawn_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(ConsentFixedError, match=VARIABLE):
        downloads.withdraw_consent()


ABSENT, WHOLE = (downloads.StoredModel("v2.0.2", files, 0, is_begun=False) for files in (0, len(HUB_FILES)))
BEGUN = downloads.StoredModel("v2.0.2", 2, 0, is_begun=True)


@pytest.mark.parametrize(
    ("model", "status", "offered"),
    [
        (ABSENT, None, ["download"]),
        (WHOLE, None, ["delete"]),
        (BEGUN, "stopped", ["download", "cancel", "delete"]),
        (BEGUN, "running", ["pause", "cancel"]),
        (downloads.base_model("tiny"), None, []),
    ],
)
def test_each_state_has_its_buttons(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: downloads.StoredModel,
    status: runs.Status,
    offered: list[str],
) -> None:
    run = add_run(Project(tmp_path), "20260101-000000-download-model", status) if status else None
    if run:
        run.config.write_text("version: v2.0.2\n", encoding="utf-8")
    assert "download" not in downloads.available_actions(model, run) or model.version == "tiny"  # without consent
    monkeypatch.setenv(VARIABLE, "1")
    assert downloads.available_actions(model, run) == offered


def test_actions_have_a_column_only_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page: Any = SimpleNamespace(output=tmp_path)
    assert t("common.actions") not in base_models.render(PanelRequest(page, "p"))  # without consent
    monkeypatch.setenv(VARIABLE, "1")
    assert t("common.actions") in base_models.render(PanelRequest(page, "p"))


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (lambda output: downloads.start("v2.0.2", output), LicenceError, "License"),
        (lambda output: downloads.start("../v2", output), ConfigError, "version"),
        (lambda output: downloads.delete("tiny", output), InputError, "tiny"),
        (downloads.pause, InputError, "No download"),
        (downloads.cancel, InputError, "No download"),
    ],
    ids=["no consent", "no version", "built in", "nothing to pause", "nothing to cancel"],
)
def test_what_cannot_be_done_is_refused(
    tmp_path: Path, action: Callable[[Path], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        action(tmp_path)


def test_a_download_shows_what_it_last_reported(tmp_path: Path) -> None:
    run = add_run(projects.downloads_project(tmp_path), "20260101-000000-download-model", "running")
    run.config.write_text("version: v2.0.2\n", encoding="utf-8")
    with EventLog(run.events) as events:
        events.report(Progress(10_000_000, 20_000_000, "model.pth", seconds_left=33))
    page: Any = SimpleNamespace(output=tmp_path)
    shown = base_models.render(PanelRequest(page, "p"))
    assert t("system.download_progress", done="10", total="20", part="model.pth") in shown
    assert "33 s" in shown


class DelayedFiles(dict[tuple[str, str], bytes]):
    """Files of a hub that arrive once they are released."""

    def __init__(self, files: dict[tuple[str, str], bytes]) -> None:
        super().__init__(files)
        self.released = threading.Event()

    def get(self, key: Any, default: Any = None) -> Any:
        self.released.wait(20)
        return super().get(key, default)


@pytest.mark.slow
def test_a_download_is_paused_continued_and_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    files = DelayedFiles({(version, name): b"x" * (1 << 20) for version in ("v2.0.2", "main") for name in HUB_FILES})
    with serving(Hub(files)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        run = downloads.start("v2.0.2", tmp_path)
        with pytest.raises(RunBusyError, match=r"v2\.0\.2"):
            downloads.start("v2.0.3", tmp_path)
        downloads.pause(tmp_path)
        files.released.set()
        wait_for(lambda: run.current_state().status not in runs.ACTIVE, 60)
        again = downloads.start("v2.0.2", tmp_path)
        assert [run.name for run in runs.list_runs(projects.downloads_project(tmp_path))] == [again.name]
        wait_for(lambda: again.current_state().status not in runs.ACTIVE, 60)
    assert (again.current_state().status, again.current_state().message) == ("finished", "")
    assert downloads.base_model("v2.0.2").is_whole
    assert downloads.delete("v2.0.2", tmp_path) > 1 << 20
    assert downloads.base_model("v2.0.2").files == 0
    partial = paths.MODELS / "v2.0.2" / ".model.pth.abc.partial"
    partial.parent.mkdir()
    partial.write_bytes(b"half")
    assert downloads.base_model("v2.0.2").is_begun
    downloads.cancel(tmp_path)
    assert not downloads.base_model("v2.0.2").is_begun
    assert downloads.current(tmp_path) is None


def test_only_what_can_be_made_again_is_deleted(tmp_path: Path) -> None:
    project = projects.create("voice", tmp_path)
    for name, size in {"dataset/wavs/a.wav": 5, "dataset/features/x": 7, "ready/model.pth": 11, "note": 2}.items():
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_bytes(b"x" * size)
    assert disk_usage.measure(project) == DiskUsage(dataset=5, features=7, ready=11, other=2)
    run = add_run(project, "20260101-000000-train")
    (run.folder / "resume").mkdir()
    (run.folder / "resume" / "state.json").write_text("{}", encoding="utf-8")
    for step in (1, 2, 3):
        checkpoints.write(run.folder, {"w": torch.zeros(4)}, checkpoints.CheckpointInfo(step))
    checkpoints.mark_best(run.folder, 1)
    with pytest.raises(RunBusyError, match="train"):
        disk_usage.reclaim(project, "features")
    assert disk_usage.reclaimable(project)["resume"] == 0

    add_run(project, run.name, "finished")
    assert disk_usage.reclaim(project, "checkpoints") > 0
    assert [checkpoint.step for checkpoint in checkpoints.list_checkpoints(run.folder)] == [3, 1]
    assert [disk_usage.reclaim(project, kind) for kind in ("features", "resume", "exports")] == [7, 2, 0]
    assert disk_usage.measure(project).dataset == 5
    with pytest.raises(ConfigError, match="Choose one of"):
        disk_usage.reclaim(project, "ready")


def test_deleted_projects_can_be_removed(tmp_path: Path) -> None:
    projects.create("voice", tmp_path)
    deleted = projects.delete(projects.create("old", tmp_path), tmp_path)
    (deleted.folder / "clip").write_bytes(b"x" * 3_000_000)
    shown = disk.usage_tables(tmp_path, "voice")
    assert all(text in shown for text in ("voice", t("common.deleted_projects"), "3.0 MB"))
    assert disk.free(tmp_path, "voice", disk.TRASH) == 3_000_000
    assert projects.list_deleted(tmp_path) == []
