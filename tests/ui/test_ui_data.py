"""What is behind the Data tab: places, pages of clips, and what is said of them."""

import errno
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.ui.data_folders import many_clips, one, talks
from utils.config import DatasetConfig
from utils.core.errors import DataError, RunBusyError, StorageError
from utils.core.events import EventLog
from utils.core.paths import Project
from utils.dataset import statistics
from utils.dataset.clip import APPROVED, Clip
from utils.dataset.queries import ClipPage
from utils.dataset.store import Store, load_dataset
from utils.runs import Run, State, Status
from utils.ui.i18n import t
from utils.ui.tabs.data import bulk_edit, clip_render, render, results, settings_form, start
from utils.ui.views import disabled_reasons
from utils.workspace import uploads

NASTY = "<img src=x onerror=alert(1)>"


# Settings


def test_every_setting_is_on_the_tab_once() -> None:
    shown = ["inputs", *settings_form.FIELDS]
    assert sorted(shown) == sorted(DatasetConfig.model_fields)


def test_the_form_starts_with_the_settings_of_the_newest_run(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert start.last_settings(project) == DatasetConfig()
    for name, seconds in (("20260101-000000-prepare", 2.0), ("20260102-000000-prepare", 3.0)):
        make_run(project, name).config.write_text(DatasetConfig(min_seconds=seconds).to_yaml(), encoding="utf-8")
    make_run(project, "20260103-000000-train").config.write_text("num_epochs: 3\n", encoding="utf-8")
    assert start.last_settings(project).min_seconds == 3.0


def make_run(project: Project, name: str, status: Status = Status.FINISHED) -> Run:
    run = Run(project.runs / name)
    run.folder.mkdir(parents=True)
    verb = name.split("-")[2]
    run.write_state(State(verb=verb, status=status, created=time.time(), heartbeat=time.time()))
    return run


# Places


def test_uploads_are_saved_under_their_names(tmp_path: Path) -> None:
    project, files = Project(tmp_path / "p"), talks(tmp_path / "in", 1)
    found = uploads.save_uploads(project, list(map(str, files)))
    assert found == uploads.UploadResult(("talk0.wav", "talk0.am.srt"))
    assert uploads.save_uploads(project, [str(files[0])]).names == ("talk0.wav",)
    assert [path.name for path in uploads.list_uploads(project)] == ["talk0.am.srt", "talk0.wav"]
    assert uploads.read_inputs(project) == ["recordings/uploads"]
    assert uploads.absolute_input(project, "recordings/uploads") == str(
        uploads.uploads_folder(project, uploads.UPLOADS).resolve()
    )


def test_two_files_of_the_same_name_are_both_saved(tmp_path: Path) -> None:
    project, (media, *_) = Project(tmp_path / "p"), talks(tmp_path / "in", 1)
    other = tmp_path / "other" / media.name
    other.parent.mkdir()
    other.write_bytes((tmp_path / "in" / "talk0.wav").read_bytes()[:-3200])
    uploads.save_uploads(project, [str(media), str(other)])
    assert [path.name for path in uploads.list_uploads(project)] == ["talk0-2.wav", "talk0.wav"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("broken.wav", b"RIFF no sound at all", "cannot be decoded"),
        ("empty.mp3", b"", "is empty"),
        ("notes.docx", b"PK", "not audio"),
        ("metadata.csv", b"a|b\n", "Existing dataset"),
        ("odd.srt", b"no cues in here", "odd.srt"),
    ],
)
def test_unusable_uploads_are_refused_with_a_reason(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    found = uploads.save_uploads(Project(tmp_path / "p"), [str(path)])
    assert found.names == ()
    (told,) = map(str, found.errors)
    assert reason in told
    assert str(tmp_path) not in told
    assert uploads.read_inputs(Project(tmp_path / "p")) == []


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def apart(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    media, _ = talks(tmp_path / "in", 1)
    monkeypatch.setattr(os, "link", apart)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    (fault,) = uploads.save_uploads(Project(tmp_path / "p"), [str(media)]).errors
    assert "are free" in fault.message
    assert "checkpoint" not in fault.hint
    assert uploads.list_uploads(Project(tmp_path / "p")) == []


def test_errors_do_not_show_temporary_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, _: str) -> None:
        raise DataError(f"{path} is odd.", hint=f"Look at {path}.")

    monkeypatch.setattr(uploads, "check_upload", refuse)
    (fault,) = uploads.save_uploads(Project(tmp_path / "p"), [str(tmp_path / "in" / "odd.wav")]).errors
    assert str(fault) == "odd.wav is odd. Look at odd.wav."


def test_removing_the_last_file_removes_its_input(tmp_path: Path) -> None:
    project, files = Project(tmp_path / "p"), talks(tmp_path / "in", 1)
    uploads.save_uploads(project, list(map(str, files)))
    uploads.remove_uploads(project, ["talk0.wav"])
    assert uploads.read_inputs(project) == ["recordings/uploads"]
    uploads.remove_uploads(project, ["talk0.am.srt"])
    assert uploads.read_inputs(project) == []


def test_no_file_outside_the_project_is_removed(tmp_path: Path) -> None:
    victim = tmp_path / "victim.wav"
    victim.write_bytes(b"x")
    with pytest.raises(StorageError, match="outside"):
        uploads.remove_uploads(Project(tmp_path / "p"), ["../../../../victim.wav"])
    assert victim.is_file()


def test_inputs_are_stored_once_each(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert uploads.write_inputs(project, " /a | https://example.test/x \n/a\n|") == ["/a", "https://example.test/x"]
    assert uploads.add_input(project, "/b") == ["/a", "https://example.test/x", "/b"]
    assert uploads.remove_input(project, "/a") == ["https://example.test/x", "/b"] == uploads.read_inputs(project)
    config = start.complete({"inputs": uploads.join_inputs(uploads.read_inputs(project))}, project)
    assert config.input_list() == ["https://example.test/x", "/b"]
    assert start.complete({"inputs": "/c | /c"}, project).input_list() == ["/c"]
    assert uploads.read_inputs(project) == [
        "https://example.test/x",
        "/b",
    ]


@pytest.mark.parametrize(
    ("shown", "text", "there", "after"),
    [
        ("/a", "/a", ["/a", "/b"], ["/a", "/b"]),
        ("/a | /b", "/a | /b", ["/a"], ["/a"]),
        ("/a", "/a | /c", ["/a", "/b"], ["/a", "/c", "/b"]),
        ("/a | /b", "/b", ["/a", "/b", "/c"], ["/b", "/c"]),
        ("/a", "", ["/a", "/b"], ["/b"]),
        ("", "/b", ["/b"], ["/b"]),
        (None, "/c", ["/a", "/b"], ["/c"]),
    ],
)
def test_an_edit_keeps_the_changes_of_others(
    tmp_path: Path, shown: str | None, text: str, there: list[str], after: list[str]
) -> None:
    project = Project(tmp_path)
    uploads.write_inputs(project, uploads.join_inputs(there))
    assert uploads.write_inputs(project, text, shown) == after == uploads.read_inputs(project)


def test_simultaneous_changes_of_the_inputs_are_all_stored(tmp_path: Path) -> None:
    project = Project(tmp_path)
    uploads.write_inputs(project, uploads.join_inputs(f"/old/{number}" for number in range(20)))
    with ThreadPoolExecutor(8) as visitors:
        for number in range(20):
            visitors.submit(uploads.remove_input, project, f"/old/{number}")
            visitors.submit(uploads.add_input, project, f"/new/{number}")
    assert sorted(uploads.read_inputs(project)) == sorted(f"/new/{number}" for number in range(20))


def test_without_a_change_no_project_is_created(tmp_path: Path) -> None:
    uploads.write_inputs(Project(tmp_path / "p"), "", "/a")
    uploads.remove_input(Project(tmp_path / "p"), "/a")
    assert list(tmp_path.iterdir()) == []


def test_a_preview_pairs_subtitles(tmp_path: Path) -> None:
    talks(tmp_path, 2)
    (tmp_path / "lonely.srt").write_text("1\n", encoding="utf-8")
    (tmp_path / "read.wav").write_bytes(b"x")
    (tmp_path / "read.txt").write_text("ሰላም", encoding="utf-8")
    found = uploads.preview(str(tmp_path))
    pairs = {pair.media.name: render.words_of(pair) for pair in found.pairs}
    assert pairs == dict.fromkeys(("talk0.wav", "talk1.wav"), "data.its_subtitles") | {"read.wav": "data.its_text_file"}
    assert [path.name for path in found.unmatched] == ["lonely.srt"]
    shown = render.looked(found, "en")
    assert "talk0.am.srt (am)" in shown
    assert "No recording has this name" in shown


@pytest.mark.parametrize(
    ("place", "reason"),
    [("/no/such/place", "does not exist"), ("a|b", "has a |"), (".", "no audio and no video")],
)
def test_an_invalid_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, reason: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=reason.replace("|", r"\|")):
        uploads.preview(place)


def test_a_preview_counts_the_clips_of_a_dataset(tmp_path: Path) -> None:
    media, *_ = talks(tmp_path, 1)
    lines = ["audio_file|text|speaker_name", f"{media.name}|ሰላም|a", "gone.wav|ሰላም|a"]
    (tmp_path / "metadata.csv").write_text("\n".join(lines), encoding="utf-8")
    found = uploads.preview(str(tmp_path))
    assert found.clips == 1
    assert "gone.wav" in found.problems[0]


@pytest.mark.parametrize("place", ["https://example.test/talk", "hf:owner/name"])
def test_a_preview_of_a_remote_input_says_so(place: str) -> None:
    assert uploads.preview(place).is_remote
    assert "downloaded" in render.looked(uploads.preview(place), "en")


# Starting


def test_reasons_why_a_preparation_cannot_start(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert "Add recordings first" in start.obstacle(project, " ", "en")
    assert start.obstacle(project, "/a", "en") == ""
    make_run(project, "20260101-000000-prepare", Status.STARTING)
    assert "prepare" in start.obstacle(project, "/a", "en")


@pytest.mark.parametrize(("verb", "refused"), [("prepare", True), ("train", True), ("rehearse", False)])
def test_clips_cannot_change_during_a_run(tmp_path: Path, verb: str, refused: bool) -> None:
    project = Project(tmp_path)
    make_run(project, f"20260101-000000-{verb}", Status.STARTING)
    if refused:
        with pytest.raises(RunBusyError, match="cannot be changed"):
            start.refuse_while_busy(project)
    else:
        start.refuse_while_busy(project)


def test_progress_and_problems_come_from_the_events(tmp_path: Path) -> None:
    run = make_run(Project(tmp_path), "20260101-000000-prepare", Status.STARTING)
    with EventLog(run.events) as log:
        log.emit("bad", path="/in/odd.wav", reason=f"It is odd {NASTY}.")
        log.emit("progress", step=1, total=3, percent=37.5, seconds_left=65)
    shown = render.facts(run, run.current_state(), "en")
    assert "1 of 3 recordings · 38 % · about 0:01:05 left" in shown
    assert "odd.wav: It is odd" in shown
    assert "<img" not in shown


# Clips


def fields_of(clip: Clip) -> dict[str, object]:
    return {name: getattr(clip, name) for name in clip.__dataclass_fields__}


def test_limits_name_the_clips_beyond_them() -> None:
    clips = [one(number) for number in range(10)]
    assert len(bulk_edit.beyond(clips, "snr", 15)) == 3
    assert len(bulk_edit.beyond(clips, "long", 3.9)) == 9
    assert bulk_edit.beyond(clips, "short", 3.9) == []
    with pytest.raises(DataError, match="No measure"):
        bulk_edit.beyond(clips, "beauty", 1)


# What is shown


def test_every_second_is_in_the_ledger(tmp_path: Path) -> None:
    many_clips(tmp_path, 20, each=10)
    found = render.ledger(statistics.account(load_dataset(tmp_path)), "en")
    assert all(text in found for text in ("Pauses between clips", "Excluded: noisy", "100 %"))


def test_statistics_name_the_missing_sounds(tmp_path: Path) -> None:
    many_clips(tmp_path, 20, each=10)
    shown = render.counted(statistics.count(Store(tmp_path), "am"), "en")
    assert "Phonemes missing" in shown


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0], [float(number) for number in range(100)]])
def test_a_distribution_counts_every_value(values: list[float]) -> None:
    assert results.distribution(values)["clips"].sum() == len(values)


@pytest.mark.parametrize("size", [0, 1, 599, 22_050])
def test_a_waveform_of_any_length_is_drawn(size: int) -> None:
    path = clip_render.outline(np.sin(np.arange(size, dtype=np.float32)))
    assert path.startswith("M")
    assert "nan" not in path


def test_nothing_that_a_clip_says_becomes_html(tmp_path: Path) -> None:
    clip = Clip(**{**fields_of(one(0)), "text": NASTY, "speaker": NASTY, "source": NASTY, "audio": ""})  # type: ignore[arg-type]
    page = ClipPage([clip], 1, 1, 1)
    assert "<img" not in clip_render.rows(page, clip.id, tmp_path, "en")
    assert "<img" not in clip_render.details(clip, tmp_path, "en")


@pytest.mark.parametrize(
    ("changes", "locked"),
    [
        ({}, {"data.restore"}),
        ({"reason": APPROVED}, {"data.approve"}),
        ({"status": "excluded", "reason": "noise"}, {"data.exclude"}),
        ({"audio": ""}, {"data.approve", "data.restore", "data.trim", "data.split", "data.merge_next"}),
        ({"text": "", "status": "excluded", "reason": "empty text"}, {"data.approve", "data.exclude", "data.restore"}),
    ],
)
def test_every_locked_button_says_why(changes: dict[str, object], locked: set[str]) -> None:
    clip, other = Clip(**{**fields_of(one(0)), **changes}), Clip(**{**fields_of(one(1)), "span": one(0).span})  # type: ignore[arg-type]
    follower = Clip(**{**fields_of(other), "span": type(clip.span)(4.0, 8.0)})  # type: ignore[arg-type]
    found = clip_render.abilities(clip, follower, busy=False)
    assert {label for label, reason in found.named.items() if reason} == locked
    shown = disabled_reasons(found.named, "en")
    assert all(t(label, "en") in shown for label in locked)


def test_while_a_run_is_at_work_no_button_acts_and_one_sentence_says_so() -> None:
    found = clip_render.abilities(one(0), None, busy=True)
    assert all(found.named.values())
    assert disabled_reasons(found.named, "en").count("A run is using the clips") == 1
