"""Behind the Inference tab: batches, job status, previews, what is shown, and the layout."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.studio.test_takes import make_take, spoken
from tests.ui.data_folders import add_run
from utils.config import SpeechConfig
from utils.core.errors import PathMissingError
from utils.core.facts import error_to_json
from utils.core.paths import TINY_MODEL
from utils.evaluation.evaluate import unique_names
from utils.speech.facts import Flag
from utils.speech.preview import TextPreview
from utils.speech.tasks import SpeechStart
from utils.studio.models import ListedModel, list_models
from utils.studio.paths import Project
from utils.studio.run_state import State
from utils.studio.runs import Run
from utils.studio.takes import Take, TakeRecorder, TakeSentence
from utils.ui.i18n import t
from utils.ui.page import PanelRequest
from utils.ui.run_panel import command_status
from utils.ui.tabs.inference.background import checkpoint_titles
from utils.ui.tabs.inference.model import model_name, picker_state
from utils.ui.tabs.inference.shared import Context
from utils.ui.tabs.inference.tab import new_session
from utils.ui.tabs.inference.takes import facts_html, take_html
from utils.ui.tabs.inference.text import preview_html
from utils.xtts import checkpoints
from utils.xtts.checkpoints import CheckpointInfo
from utils.xtts.tokenizer import TokenizedText

HTML = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ({"status": "finished"}, '<div class="message success"'),
        ({"status": "stopped"}, '<div class="message warning"'),
        ({"status": "failed", "error": error_to_json(PathMissingError("film.srt"))}, "film.srt does not exist."),
        ({"status": "queued"}, 'data-act="stop"'),
    ],
)
def test_a_command_says_how_its_run_ended(tmp_path: Path, state: dict[str, Any], shown: str) -> None:
    run = Run(tmp_path / "runs" / "20260101-000000-export")
    run.folder.mkdir(parents=True)
    run.write_state(State("export", created=0.0, **state))
    page: Any = SimpleNamespace(open=lambda _: Project(tmp_path))
    assert shown in command_status("export", PanelRequest(page, "p"), "done")


def test_a_comparison_calls_a_checkpoint_by_its_run(tmp_path: Path) -> None:
    run = add_run(Project(tmp_path / "mine"), "20261128-142000-train", "finished")
    checkpoints.write(run.folder, {"w": torch.zeros(4)}, CheckpointInfo(10))
    models = list_models(tmp_path)
    (name,) = unique_names([model.path for model in models if model.run])
    assert checkpoint_titles(models) == {name: "Saturday 28/11 14:20:00 · step 10"}


def test_a_stopped_take_says_so() -> None:
    recorder = TakeRecorder("speech", "ሰላም። ዛሬ።", SpeechConfig())
    assert recorder.take() is None
    for event in (SpeechStart(2, "m", "v"), spoken("ሰላም።")):
        recorder.add(event)
    recorded = recorder.take()
    assert recorded is not None
    assert t("inference.stopped_early_note") in facts_html(recorded.take)


def test_a_shorter_take_is_shown_from_its_first_sentence(tmp_path: Path) -> None:
    take = make_take(Project(tmp_path), "ሰላም።")
    page: Any = SimpleNamespace(open=lambda _: Project(tmp_path))
    assert "ሰላም።" in take_html(PanelRequest(page, "p", {"take": take.name, "first": "50"}))


def test_texts_do_not_become_html() -> None:
    reading = TokenizedText(HTML, HTML, HTML, HTML, (HTML,), (1,), ())
    take = Take("speech", HTML, HTML, HTML, {"seed": 1}, (TakeSentence(reading, flags=(Flag("short"),)),), (HTML,))
    assert "<img" not in preview_html(TextPreview((reading,))) + facts_html(take)


@pytest.mark.parametrize(("by_page", "changed"), [("mine", None), (str(TINY_MODEL), "mine")])
def test_a_model_that_the_visitor_selected_stays(by_page: str, changed: str | None, tmp_path: Path) -> None:
    page: Any = SimpleNamespace(session=new_session(tmp_path))
    context = Context(page, None, None, None)  # type: ignore[arg-type]
    mine = ListedModel("mine", tmp_path / "mine", "ready", 0.0, 0)
    picked = picker_state(context, Project(tmp_path), [mine], str(TINY_MODEL), {"model": {"value": by_page}})
    assert picked["model"].get("value") == (changed and str(mine.path))


def test_a_checkpoint_has_the_name_of_its_run(tmp_path: Path) -> None:
    run = add_run(Project(tmp_path / "mine"), "20261127-142000-train")
    model = ListedModel("mine: raw", tmp_path, "checkpoint", 0.0, 0, run=run, step=40)
    assert model_name(model) == "mine: Friday 27/11 14:20:00 · step 40"
    run.note_file.write_text("with pauses\n", encoding="utf-8")
    assert model_name(model) == "mine: with pauses · step 40"
