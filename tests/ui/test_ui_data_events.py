"""Whatever a browser or a program sends to the Data tab and to the projects: it gets a result or a readable error."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from gradio.block_function import BlockFunction
from gradio.blocks import Block

from tests.ui import auditing, inside
from tests.ui.data_folders import add_run, many_clips
from utils.dataset.store import load_dataset
from utils.studio import projects
from utils.studio.paths import Project
from utils.ui import app
from utils.ui.tabs.data import tab as data
from utils.xtts.pronunciations import overrides

pytestmark = pytest.mark.slow


def start_nothing(*_: object, **__: object) -> None:
    raise OSError("This test starts no process.")


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("subprocess.Popen", start_nothing)
    monkeypatch.setattr(app, "TABS", (data,))
    many_clips(projects.create("voice", tmp_path).dataset, 20, each=10)
    return tmp_path


@pytest.fixture
def blocks(output: Path) -> Iterator[gr.Blocks]:
    with inside.environment():
        yield app.build(output)


def send(blocks: gr.Blocks, event: BlockFunction, values: list[Any]) -> str:
    """Send an event; return what went wrong, unless a person would see a readable error."""
    try:
        auditing.respond(blocks, event, values)
    except Exception as error:  # noqa: BLE001  # whatever it is, no handler may let it out
        if not isinstance(error, gr.Error) or "internal error" in str(error).lower():
            return f"{type(error).__name__}: {error}"
        return f"HTTP 500: {error}" if event.queue is False else ""
    return ""


def test_clips_stay_as_they_are_while_a_preparation_writes_them(blocks: gr.Blocks, output: Path) -> None:
    project = Project(output / "voice")
    run = add_run(project, "20260101-000000-prepare")
    clip = next(iter(load_dataset(project.dataset).kept))
    with pytest.raises(gr.Error, match=f"{run.name} is running in the project voice"):
        auditing.act(blocks, "review", "exclude", "voice", of=clip.id, why="noise")
    assert load_dataset(project.dataset).clips[clip.id].status == "kept"


def test_clips_are_reviewed_while_a_training_runs(blocks: gr.Blocks, output: Path) -> None:
    project = Project(output / "voice")
    add_run(project, "20260101-000000-train")
    clip = next(iter(load_dataset(project.dataset).kept))
    auditing.act(blocks, "review", "exclude", "voice", of=clip.id, why="noise")
    assert load_dataset(project.dataset).clips[clip.id].reason == "noise"


def test_a_corrected_word_is_shown_at_once_where_its_clip_is_open(blocks: gr.Blocks, output: Path) -> None:
    project = Project(output / "voice")
    clip = next(iter(load_dataset(project.dataset).kept))
    word = clip.text.split()[0].strip("።፣")
    fix = {"written": word, "spoken": "ɡənːa", "pronunciation_note": "heard"}
    with pytest.raises(gr.Error, match="missing"):
        auditing.act(blocks, "review", "fix_pronunciation", "voice", clip=clip.id, written=word)
    shown = auditing.act(
        blocks, "review", "fix_pronunciation", "voice", clip=clip.id, of=clip.id, text=clip.text, **fix
    )
    assert "ɡənːa" in str(shown)
    assert overrides(project.pronunciations) == {word: "ɡənːa"}


@pytest.mark.parametrize(
    ("project", "empty"), [("../../etc", False), ("", False), (None, True), ("voice", True), ("not there yet", True)]
)
def test_every_event_returns_a_result_or_a_readable_error(
    blocks: gr.Blocks, project: str | None, *, empty: bool
) -> None:
    def value(block: Block) -> Any:
        if block.elem_id == "project":
            return project
        return None if isinstance(block, gr.State) or empty else auditing.value_of(block)

    errors = {
        auditing.name_of(event): send(blocks, event, [value(block) for block in event.inputs])
        for event in auditing.handlers(blocks)
    }
    assert {name: error for name, error in errors.items() if error} == {}
