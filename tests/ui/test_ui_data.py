"""Behind the Data tab: the inputs of a project, why something is disabled, and what is shown of clips."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from soundfile import SoundFile

from tests.ui.data_folders import add_run, example_clip, talks
from utils.config import DatasetConfig
from utils.core.errors import DataError, FileDamagedError
from utils.core.events import EventLog
from utils.dataset.clip import Source
from utils.dataset.editor import available_actions
from utils.dataset.metadata import WAVS
from utils.dataset.store import ClipPage, Store
from utils.recognition.spans import Span
from utils.studio import uploads
from utils.studio.paths import Project
from utils.ui import views
from utils.ui.i18n import t
from utils.ui.page import PanelRequest
from utils.ui.tabs.data import clip_render, render, settings_form, tab

HTML = "<img src=x onerror=alert(1)>"


def test_the_form_starts_with_the_settings_of_the_newest_run(tmp_path: Path) -> None:
    fields = " ".join(settings_form.GROUPS.values()).split()
    assert sorted(["inputs", *fields]) == sorted(DatasetConfig.model_fields)
    project = Project(tmp_path)
    assert settings_form.last_settings(project) == DatasetConfig()
    for name, seconds in (("20260101-000000-prepare", 2.0), ("20260102-000000-prepare", 3.0)):
        add_run(project, name).config.write_text(DatasetConfig(min_seconds=seconds).to_yaml(), encoding="utf-8")
    add_run(project, "20260103-000000-train").config.write_text("num_epochs: 3\n", encoding="utf-8")
    assert settings_form.last_settings(project).min_seconds == 3.0


def test_what_a_run_shows_comes_from_its_events(tmp_path: Path) -> None:
    run = add_run(Project(tmp_path), "20260101-000000-prepare")
    with EventLog(run.events) as log:
        log.emit("bad", path="/in/odd.wav", reason=f"It is odd {HTML}.")
        log.emit("progress", step=1, total=3, percent=37.5, seconds_left=65)
    shown = render.run_facts(run, run.current_state())
    assert "38 % · about 65 s left" in shown
    assert "odd.wav: It is odd" in shown
    assert "<img" not in shown
    with EventLog(run.events) as log:
        log.emit("prepared", added=1, known=0, bad=0, clips=0)
    finished = replace(run.current_state(), status="finished")
    shown = render.run_facts(run, finished)
    assert '<b class="warn">finished' in shown
    assert f'<div class="message warning"><p>{t("data.no_clips_made")}' in shown


def test_clips_that_an_active_preparation_stored_are_heard(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.dataset / WAVS).mkdir(parents=True)
    clips = [replace(example_clip(number), text=text) for number, text in enumerate(("before", "made now"))]
    Store(project.dataset).add(Source("0" * 16, "/in/a.wav", 1, 2, 9.0), clips)
    run = add_run(project, "20260101-000000-prepare")
    for clip, seconds in zip(clips, (-60, 60), strict=True):
        file, written = project.dataset / clip.audio, run.current_state().created + seconds
        file.write_bytes(b"RIFF")
        os.utime(file, (written, written))
    shown = render.run_facts(run, run.current_state())
    assert "made now" in shown
    assert "data-hear" in shown
    assert "before" not in shown
    assert "made now" not in render.run_facts(run, replace(run.current_state(), status="finished"))


def test_uploads_are_saved_under_their_names(tmp_path: Path) -> None:
    project, (media, subtitles) = Project(tmp_path / "p"), talks(tmp_path / "in", 1)
    assert uploads.save_uploads(project, [str(media), str(subtitles)]).names == ("talk0.wav", "talk0.am.srt")
    assert uploads.save_uploads(project, [str(media)]).names == ("talk0.wav",)  # the same file again
    (other,) = (path for path in talks(tmp_path / "other", 1, seconds=6.0) if path.name == media.name)
    uploads.save_uploads(project, [str(other)])
    names = [path.name for path in uploads.list_uploads(project)]
    assert names == ["talk0-2.wav", "talk0.am.srt", "talk0.wav"]
    assert uploads.read_inputs(project) == ["recordings/uploads"]
    config = settings_form.read_settings({}, project)
    assert config.input_list() == [str(uploads.uploads_folder(project, uploads.UPLOADS))]
    uploads.remove_uploads(project, names)
    assert uploads.read_inputs(project) == []


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("broken.wav", b"RIFF no sound at all", "cannot be decoded"),
        ("empty.mp3", b"", "is empty"),
        ("photo.jpg", b"\xff\xd8\xff\x00\x01\x02", "not audio"),
        ("metadata.csv", b"a|b\n", "together with its audio"),
        ("odd.srt", b"no cues in here", "odd.srt"),
    ],
)
def test_unusable_uploads_are_refused_with_a_reason(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    saved = uploads.save_uploads(Project(tmp_path / "p"), [str(path)])
    assert saved.names == ()
    (message,) = map(str, saved.errors)
    assert reason in message
    assert str(tmp_path) not in message
    assert uploads.read_inputs(Project(tmp_path / "p")) == []


def test_a_list_may_follow_its_audio(tmp_path: Path) -> None:
    media, _ = talks(tmp_path / "in", 1)
    path, project = tmp_path / "metadata.csv", Project(tmp_path / "p")
    path.write_text(f"path,sentence\n{media.name},ሰላም ለዓለም\n", encoding="utf-8")
    uploads.save_uploads(project, [str(media)], uploads.LISTS)
    assert uploads.save_uploads(project, [str(path)], uploads.LISTS) == (("metadata.csv",), ())


@pytest.mark.parametrize(
    ("text", "language", "warning"),
    [
        (b"This is not Amharic.", "am", "no Ethiopic letters"),
        ("ሰላም ለዓለም".encode(), "en", "written in Ethiopic letters, but the language is English"),
        ("ሰላም ለዓለም".encode(), "am", ""),
        ("a|ሰላም ለዓለም\n".encode("utf-16"), "am", ""),
        (f"/data/{'speaker_one/' * 20}clip.wav|ሰላም\n".encode(), "am", ""),
        (b"This is English.", "en", ""),
    ],
)
def test_a_language_that_does_not_fit_the_texts_is_noticed(
    tmp_path: Path, text: bytes, language: str, warning: str
) -> None:
    path, project = tmp_path / "talk.txt", Project(tmp_path / "p")
    path.write_bytes(text)
    uploads.save_uploads(project, [str(path)])
    page: Any = SimpleNamespace(open=lambda _: project)
    shown = tab.render_fit(PanelRequest(page, "p", {"settings": {"language": language}}))
    assert warning in shown if warning else not shown


def test_simultaneous_changes_of_the_inputs_are_all_stored(tmp_path: Path) -> None:
    project = Project(tmp_path)
    uploads.add_input(project, "\n".join(f"/old/{number}" for number in range(20)))
    with ThreadPoolExecutor(8) as visitors:
        for number in range(20):
            visitors.submit(uploads.remove_input, project, f"/old/{number}")
            visitors.submit(uploads.add_input, project, f"/new/{number}")
    assert sorted(uploads.read_inputs(project)) == sorted(f"/new/{number}" for number in range(20))


@pytest.mark.parametrize(
    ("entered", "reason"), [("/no/such/place", "does not exist"), ("a|b", r"has a \|"), (".", "no audio or video")]
)
def test_an_invalid_input_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entered: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=reason):
        uploads.preview(entered)


def test_nothing_in_a_clip_becomes_html(tmp_path: Path) -> None:
    clip = replace(example_clip(0), text=HTML, speaker=HTML, source=HTML, audio="")
    assert "<img" not in clip_render.rows(ClipPage([clip], 1, 1, 1), clip.id, tmp_path)
    box = views.text_area("text", HTML, "", HTML, HTML) + views.conflict("text", HTML, "save_text")
    assert "<img" not in clip_render.editor(clip, None, HTML, box, tmp_path, HTML)


def test_the_words_of_a_clip_stand_under_its_sound(tmp_path: Path) -> None:
    SoundFile(str(tmp_path / "a.wav"), "w", 8000, 1).write(np.zeros(32_000))
    clip = replace(example_clip(0), audio="a.wav", span=Span(1.0, 5.0), words='[["ቡና", 0.0, 1.0], ["ጠጣ", 2.0, 4.0]]')
    shown = clip_render.editor(clip, None, clip.text, "", tmp_path, "")
    assert 'style="left: 50.00%; width: 50.00%" title="ጠጣ"' in shown
    damaged = clip_render.editor(replace(clip, words='[["ቡና", "x"]]'), None, clip.text, "", tmp_path, "")
    assert 'class="words"' not in damaged


def test_the_difference_to_what_was_heard_is_marked() -> None:
    found = clip_render.differences("ልጁ ቡና ጠጣ።", "ልጁ ሻይ ጠጣ። ሄደ")
    assert found == [("", "ልጁ"), ("del", "ቡና"), ("ins", "ሻይ"), ("", "ጠጣ።"), ("ins", "ሄደ")]


def test_the_readings_of_an_ambiguous_word_are_offered(tmp_path: Path) -> None:
    clip = replace(example_clip(0), text="ገና ነው", audio="")
    shown = clip_render.editor(clip, None, clip.text, "", tmp_path, "")
    assert 'data-written="ገና" data-spoken="' in shown
    clip = replace(clip, text="ባለ ሱቅ")  # a word that several entries read alike
    offered = clip_render.editor(clip, None, clip.text, "", tmp_path, "").split('data-spoken="')[1:]
    assert len({part.partition('"')[0] for part in offered} - {"balə"}) == len(offered)


@pytest.mark.parametrize(
    ("changes", "hidden"),
    [
        ({"reason": "approved"}, {"approve"}),
        ({"status": "excluded", "reason": "noise"}, {"exclude"}),
        ({"audio": ""}, {"approve", "restore", "trim", "split", "merge_next"}),
        ({"text": "", "status": "excluded", "reason": "empty text"}, {"approve", "exclude", "restore"}),
    ],
)
def test_what_cannot_be_done_with_a_clip_is_not_offered(changes: dict[str, Any], hidden: set[str]) -> None:
    clip, following = replace(example_clip(0), **changes), replace(example_clip(1), span=Span(4.0, 8.0))
    every = {"approve", "exclude", "restore", "trim", "split", "merge_next"}
    actions = available_actions(clip, following)
    assert every - set(actions) - hidden <= {"restore"}
    assert not hidden & set(actions)
    assert "merge_next" not in available_actions(clip, None)


def test_a_list_of_inputs_without_its_digest_is_damaged(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    uploads.add_input(project, "https://example.org/talk.wav")
    (project.recordings / uploads.INPUTS).write_text('["https://example.org/other.wav"]', encoding="utf-8")
    with pytest.raises(FileDamagedError):
        uploads.read_inputs(project)


def test_a_preview_names_what_has_no_recording(tmp_path: Path) -> None:
    talks(tmp_path, 2)
    (tmp_path / "lonely.srt").write_text("1\n", encoding="utf-8")
    (tmp_path / "read.wav").write_bytes(b"x")
    (tmp_path / "read.txt").write_text("ሰላም", encoding="utf-8")
    shown = render.preview(uploads.preview(str(tmp_path)))
    assert "0 s · text file" in shown
    assert "No recording has this name" in shown
