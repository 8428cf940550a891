"""Behind the Inference tab: batches, job status, previews, what is shown, and the layout."""

import contextlib
import json
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.workspace.test_takes import make_take, spoken
from utils.config import SpeechConfig
from utils.core.errors import RunError, StorageError
from utils.core.paths import TINY_MODEL, Project
from utils.media.rates import OUTPUT_RATE
from utils.runs.background_jobs import BackgroundJob, BackgroundJobs
from utils.speech.models import list_models
from utils.speech.session import Started
from utils.ui.i18n import t
from utils.ui.tabs.inference import tab as inference
from utils.ui.tabs.inference.background import export_state, job_status
from utils.ui.tabs.inference.context import Context, Snapshot, file_url, flag_text
from utils.ui.tabs.inference.model import model_state
from utils.ui.tabs.inference.speak import TakeRecorder
from utils.ui.tabs.inference.takes import files_html, player_audio, take_html
from utils.ui.tabs.inference.text import TextPreview, preview_html
from utils.workspace.takes import Take, TakeSentence
from utils.xtts.tokenizer import TokenizedText

HTML = "<img src=x onerror=alert(1)>"


def new_context(output: Path) -> Context:
    """A context without widgets."""
    page = SimpleNamespace(open=lambda name: Project(output / name))
    return Context(page, inference.new_session(output), BackgroundJobs())  # type: ignore[arg-type]


# --- jobs ---


@pytest.mark.parametrize(
    ("result", "error", "box"),
    [("file.zip", None, "success"), (None, None, "warning"), (None, RunError("It broke.", hint="Fix it."), "error")],
)
def test_status_of_a_job(result: object, error: Exception | None, box: str) -> None:
    reported, released = threading.Event(), threading.Event()

    def task(job: BackgroundJob) -> object:
        job.report(2, 5, "packing")
        reported.set()
        released.wait(10)
        if error:
            raise error
        return result

    job = BackgroundJob(task)
    reported.wait(10)
    html, button = job_status(job, "en", str)
    assert "packing" in html
    assert '<progress max="5" value="2"' in html
    assert "role=" not in html  # screen readers would announce each update
    assert button == {"interactive": True}
    released.set()
    job.wait(10)
    html, button = job_status(job, "en", str)
    assert html.startswith(f'<div class="message {box}"')
    assert str(error or result or "Stopped.") in html
    assert button == {"interactive": False}


def test_a_deleted_archive_hides_no_other(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    project.exports.mkdir(parents=True)
    (project.exports / "there.zip").write_bytes(b"x" * 2_000_000)
    (project.exports / "gone.zip").symlink_to(tmp_path / "nothing")
    html = export_state(new_context(tmp_path), Snapshot("p", project, [], "en"))["pack"]
    assert "there.zip (2.0 MB)" in html
    assert "gone.zip" not in html
    assert "?v=" not in file_url(project.exports / "gone.zip")


# --- takes ---


def test_a_stopped_take_says_so() -> None:
    recorder = TakeRecorder("speech", "ሰላም። ዛሬ።", SpeechConfig())
    assert recorder.take() is None
    for event in (Started(2, "m", "v"), spoken("ሰላም።"), None):
        recorder.add(event)
    recorded = recorder.take()
    assert recorded is not None
    assert recorded.take.unfinished
    assert t("inference.stopped_early_note", "en") in take_html(recorded.take, "en")


def test_the_player_in_the_browser_gets_the_newest_chunks() -> None:
    recorder = TakeRecorder("stream", "ሰላም።", SpeechConfig())
    assert recorder.player_json() == ""
    for _ in range(10):
        recorder.add(np.zeros(10, np.float32))
    sent = json.loads(recorder.player_json())
    assert sent["first"] + len(sent["parts"]) == 10


def test_subtitles_on_a_full_disk(small_disk: Path) -> None:
    project = Project(small_disk)
    take = make_take(project, "ሰላም።")
    with contextlib.suppress(OSError):
        (small_disk / "ballast").write_bytes(b"x" * 1_000_000)
    with pytest.raises(StorageError):
        files_html(project, take)
    assert not list(small_disk.rglob("take.srt"))


@pytest.mark.parametrize(("loudness", "value"), [(0.5, 16384), (2.0, 32767), (-2.0, -32768)])
def test_the_player_gets_integers_within_their_range(loudness: float, value: int) -> None:
    rate, samples = player_audio([replace(spoken("x"), samples=np.full(5000, loudness, np.float32))])
    assert (rate, samples[2500]) == (OUTPUT_RATE, value)


# --- what is shown ---


def test_texts_do_not_become_html() -> None:
    reading = TokenizedText(HTML, HTML, HTML, HTML, (HTML,), (1,), ())
    take = Take("speech", HTML, HTML, HTML, {"seed": 1}, (TakeSentence(reading, flags=(HTML,)),), (HTML,))
    assert "<img" not in preview_html(TextPreview((reading,)), "en") + take_html(take, "en")


def test_flags_are_put_into_words() -> None:
    assert "12" in flag_text("loop: 12 codes", "en")
    assert flag_text("loop: 12 codes", "am") == t("inference.flag_loop", "am")
    assert flag_text("unknown: 12", "en") == "unknown: 12"


@pytest.mark.slow
def test_the_model_of_the_open_project_is_preferred(tmp_path: Path) -> None:
    from utils.xtts import random_model

    random_model.build(tmp_path / ".models" / "v2.0.3")
    random_model.build(tmp_path / "p" / "ready")
    (tmp_path / "damaged" / "ready").mkdir(parents=True)
    models = list_models(tmp_path)
    assert [(model.name, model.kind) for model in models] == [("p", "ready"), ("v2.0.3", "base"), ("tiny", "base")]
    context, project = new_context(tmp_path), Project(tmp_path / "p")

    def selected(model: str, seen: dict[str, Any]) -> str | None:
        value: str | None = model_state(context, Snapshot("p", project, models, "en"), model, seen)["model"].get(
            "value"
        )
        return value

    own, base = str(project.ready), str(TINY_MODEL)
    assert selected("", {}) == own
    assert selected(base, {"model": {"value": base}}) == own
    assert selected(own, {"model": {"value": own}}) == own
    assert selected(base, {"model": {"value": own}}) is None  # the visitor selected it
