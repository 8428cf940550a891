"""The System tab: settings, licence, base models, disk, guides."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.xtts.hub_server import Hub, serving
from utils import runs
from utils.core import paths
from utils.core.errors import ConfigError, RunBusyError, RunError
from utils.core.events import EventLog
from utils.core.paths import Project
from utils.ui.i18n import t
from utils.ui.tabs.system import base_models, disk, downloads, licence, settings, tab
from utils.ui.tabs.system.settings import PageSettings
from utils.workspace import disk_usage, projects
from utils.workspace.disk_usage import DiskUsage
from utils.xtts import checkpoints
from utils.xtts.files import HUB_FILES
from utils.xtts.hub import VARIABLE, LicenceError, accept_licence

LICENCE_TEXT = b"The terms.\n" * 200


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep models and consent of this computer out of it."""
    monkeypatch.setattr(paths, "MODELS", tmp_path / "models")
    monkeypatch.setattr(paths, "LICENCE_CONSENT", tmp_path / "consent.json")
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    files = {("main", licence.FILE): LICENCE_TEXT}
    with serving(Hub(files)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub


# settings


def test_settings_are_kept_and_spoiled_ones_are_the_defaults(tmp_path: Path) -> None:
    assert settings.read(tmp_path) == PageSettings()
    settings.write(PageSettings(colours="dark", kept_days=3), tmp_path)
    assert settings.read(tmp_path) == PageSettings(colours="dark", kept_days=3)
    settings.settings_path(tmp_path).write_text("colours: pink", encoding="utf-8")
    assert settings.read(tmp_path) == PageSettings()


# licence


def can(found: list[Any]) -> list[bool]:
    return [found[0][name]["interactive"] for name in ("agree", "withdraw")]


def test_consent_is_given_and_withdrawn() -> None:
    assert can(licence.licence_state("en")) == [True, False]
    accept_licence("Abebe", paths.LICENCE_CONSENT)
    agreed = licence.licence_state("en")
    assert "Abebe" in agreed[1]
    assert can(agreed) == [False, True]
    licence.withdraw_consent()
    assert can(licence.licence_state("en")) == [True, False]


def test_consent_by_a_variable_is_withdrawn_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    assert can(licence.licence_state("en")) == [False, False]
    with pytest.raises(LicenceError, match=VARIABLE):
        licence.withdraw_consent()


def test_the_licence_is_fetched_once(hub: Hub) -> None:
    assert licence.licence_text(hub.endpoint).encode() == LICENCE_TEXT
    assert licence.licence_text(hub.endpoint).encode() == LICENCE_TEXT
    assert hub.downloads() == [licence.FILE]


# base models


def put(version: str, names: list[str]) -> Path:
    folder = paths.MODELS / version
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(b"12345")
    return folder


def test_a_version_is_here_begun_or_not() -> None:
    put("v2.0.2", list(HUB_FILES))
    put("v2.0.3", [".model.pth.abc.partial"])
    found = {version: downloads.base_model(version) for version in downloads.VERSIONS}
    assert found["v2.0.2"].is_whole
    assert found["v2.0.2"].size == 5 * len(HUB_FILES)
    assert (found["v2.0.3"].is_whole, found["v2.0.3"].is_begun) == (False, True)
    assert (found["main"].files, found["main"].size) == (0, 0)


@pytest.mark.parametrize(
    ("version", "state", "reasons"),
    [
        ("absent", {}, ("", "system.not_downloading", "system.not_downloading", "system.nothing_to_delete")),
        (
            "absent",
            {"consent": False},
            ("system.licence_needed", *["system.not_downloading"] * 2, "system.nothing_to_delete"),
        ),
        ("whole", {}, ("system.already_installed", *["system.not_downloading"] * 2, "")),
        ("begun", {"unfinished": True}, ("", "system.not_downloading", "", "")),
        ("begun", {"busy": True}, ("system.downloading", "", "", "system.downloading")),
    ],
)
def test_each_state_has_its_buttons(version: str, state: dict[str, bool], reasons: tuple[str, ...]) -> None:
    files = {"absent": 0, "begun": 2, "whole": len(HUB_FILES)}[version]
    base = downloads.BaseModel("v2.0.2", files, 0, is_begun=version == "begun")
    told = base_models.reasons_disabled(base, **({"busy": False, "unfinished": False, "consent": True} | state))
    assert tuple(told.values()) == reasons


def test_the_small_voice_is_always_here_and_stays(tmp_path: Path) -> None:
    base = downloads.base_model("tiny")
    assert base.is_whole
    told = base_models.reasons_disabled(base, busy=False, unfinished=False, consent=True)
    assert (told["system.download"], told["system.delete_version"]) == ("system.already_installed", "system.built_in")
    with pytest.raises(RunError, match="tiny"):
        downloads.delete("tiny", tmp_path)
    assert base == downloads.base_model("tiny")


def test_nothing_is_fetched_without_consent(tmp_path: Path) -> None:
    with pytest.raises(LicenceError, match="License"):
        downloads.start("v2.0.2", tmp_path)
    with pytest.raises(ConfigError, match="version"):
        downloads.start("../v2", tmp_path)
    for action in (downloads.pause, downloads.cancel):
        with pytest.raises(RunError, match="No download"):
            action(tmp_path)


def test_progress_comes_from_the_last_events(tmp_path: Path) -> None:
    run = runs.Run(tmp_path / "r1")
    run.folder.mkdir()
    assert downloads.progress(run) is None
    with EventLog(run.events) as events:
        for step in (0, 50):
            events.emit("progress", part="model.pth", step=step, total=100)
            time.sleep(0.05)
    found = downloads.progress(run)
    assert found is not None
    assert (found.part, found.done, found.total) == ("model.pth", 50, 100)
    assert found.seconds_left is not None
    assert 0 < found.seconds_left < 10


@pytest.mark.parametrize("figure", ["1" + "0" * 400, "1" + "0" * 300, "NaN", "Infinity", "1e999", "1e300", "[1]"])
@pytest.mark.parametrize("name", ["step", "total", "time"])
def test_a_damaged_figure_of_a_download_does_not_block_the_view(tmp_path: Path, name: str, figure: str) -> None:
    run = runs.Run(tmp_path)
    with EventLog(run.events) as events:
        events.emit("progress", part="model.pth", step=10, total=100)
    event = {"kind": "progress", "time": time.time() + 1, "step": 50, "total": 100, name: "damaged"}
    with run.events.open("a", encoding="utf-8") as file:
        file.write(json.dumps(event).replace('"damaged"', figure) + "\n")
    found = downloads.progress(run)
    assert found is not None
    assert found.done == (10 if name == "step" else 50)
    assert "MB" in base_models._progress_label(found, "en")


@pytest.mark.slow
def test_a_download_is_paused_goes_on_and_is_given_up(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    content = b"x" * (1 << 20)
    hub.files |= {("v2.0.2", name): content for name in HUB_FILES} | {("main", name): content for name in HUB_FILES}
    held = hold_back(hub)
    run = downloads.start("v2.0.2", tmp_path)
    with pytest.raises(RunBusyError, match=r"v2\.0\.2"):
        downloads.start("v2.0.3", tmp_path)
    downloads.pause(tmp_path)
    held.set()
    wait_until_over(run)
    again = downloads.start("v2.0.2", tmp_path)
    assert [one.name for one in runs.list_runs(projects.downloads_project(tmp_path))] == [again.name]
    wait_until_over(again)
    assert (again.current_state().status, again.current_state().message) == (runs.Status.FINISHED, "")
    assert downloads.base_model("v2.0.2").is_whole
    assert downloads.delete("v2.0.2", tmp_path) > len(content)
    assert downloads.base_model("v2.0.2").files == 0
    (put("v2.0.2", []) / ".model.pth.abc.partial").write_bytes(b"half")
    downloads.cancel(tmp_path)
    assert not downloads.base_model("v2.0.2").is_begun
    assert downloads.current(tmp_path) is None


def hold_back(hub: Hub) -> threading.Event:
    """Answer no download before the event is set."""
    held, files = threading.Event(), hub.files

    class Slow(dict[tuple[str, str], bytes]):
        def get(self, key: Any, default: Any = None) -> Any:
            held.wait(20)
            return super().get(key, default)

    hub.files = Slow(files)
    return held


def wait_until_over(run: runs.Run) -> None:
    deadline = time.monotonic() + 60
    while run.current_state().status in runs.ACTIVE:
        assert time.monotonic() < deadline
        time.sleep(0.1)


# disk


@pytest.fixture
def place(tmp_path: Path) -> Project:
    made = projects.create("voice", tmp_path)
    for name, size in (
        ("dataset/wavs/a.wav", 5),
        ("dataset/features/x.arrow", 7),
        ("ready/model.pth", 11),
        ("note", 2),
    ):
        path = made.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    return made


def add_checkpoints(place: Project, status: runs.Status) -> runs.Run:
    import torch

    run = runs.Run(place.runs / "20260101-000000-train")
    run.folder.mkdir(parents=True)
    run.write_state(runs.State("train", status, created=time.time(), heartbeat=time.time()))
    for step in (1, 2, 3):
        checkpoints.write(run.folder, {"w": torch.zeros(4)}, checkpoints.CheckpointInfo(step))
    checkpoints.mark_best(run.folder, 1)
    (run.folder / "resume").mkdir()
    (run.folder / "resume" / "state.json").write_text("{}", encoding="utf-8")
    return run


def test_files_are_counted_under_what_they_are(place: Project) -> None:
    assert disk_usage.measure(place) == DiskUsage(dataset=5, features=7, ready=11, other=2)
    assert disk_usage.measure(place).total == 25


def test_what_can_go_goes_and_nothing_else(place: Project) -> None:
    run = add_checkpoints(place, runs.Status.FINISHED)
    assert disk_usage.reclaim(place, "checkpoints") > 0
    assert [one.step for one in checkpoints.list_checkpoints(run.folder)] == [3, 1]
    assert disk_usage.reclaim(place, "features") == 7
    assert disk_usage.reclaim(place, "resume") == 2
    assert disk_usage.reclaim(place, "exports") == 0
    assert disk_usage.measure(place).dataset == 5
    with pytest.raises(ConfigError, match="Choose one of"):
        disk_usage.reclaim(place, "ready")


def test_nothing_is_freed_while_a_run_is_at_work(place: Project) -> None:
    add_checkpoints(place, runs.Status.STARTING)
    with pytest.raises(RunBusyError, match="train"):
        disk_usage.reclaim(place, "features")
    assert disk_usage.reclaimable(place)["resume"] == 0


def test_deleted_projects_are_shown_and_go_for_good(place: Project, tmp_path: Path) -> None:
    projects.delete(projects.create("old", tmp_path), tmp_path)
    (projects.list_deleted(tmp_path)[0].folder / "clip").write_bytes(b"x" * 3_000_000)
    shown = disk.usage_tables(tmp_path, "voice", "en")
    assert all(words in shown for words in ("voice", t("common.deleted_projects", "en"), "3.0 MB"))
    assert disk.free(tmp_path, "voice", disk.TRASH) == 3_000_000
    assert projects.list_deleted(tmp_path) == []


# guides and versions


def test_every_guide_is_readable_and_leads_nowhere_else() -> None:
    found = tab.guides()
    assert found
    for title, name in found:
        text = tab.guide(name)
        assert title in text
        assert "](" not in text.replace("](#", "")
    assert tab.guide("../README.md") == ""


def test_versions_and_places_are_listed(tmp_path: Path) -> None:
    shown = tab.versions(tmp_path, "en")
    assert all(words in shown for words in ("gradio", "torch", str(tmp_path), str(paths.MODELS)))
