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
from utils.core.paths import Project
from utils.dataset.store import load_dataset
from utils.ui import app
from utils.ui.tabs.data import tab as data
from utils.workspace import projects, uploads

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


def event_named(blocks: gr.Blocks, name: str) -> BlockFunction:
    return next(event for event in blocks.fns.values() if event.api_name == name)


def send(blocks: gr.Blocks, event: BlockFunction, values: list[Any]) -> str:
    """Send an event; return what went wrong, unless a person would see a readable error."""
    try:
        auditing.respond(blocks, event, values)
    except Exception as error:  # noqa: BLE001  # whatever it is, no handler may let it out
        if not isinstance(error, gr.Error) or "internal error" in str(error).lower():
            return f"{type(error).__name__}: {error}"
        return f"HTTP 500: {error}" if event.queue is False else ""
    return ""


def test_leaving_the_box_of_the_inputs_removes_none_of_another_visitor(blocks: gr.Blocks, output: Path) -> None:
    for path in ("/mine", "/theirs"):
        uploads.add_input(Project(output / "voice"), path)
    event = event_named(blocks, "set_inputs")
    save = auditing.function_of(event)
    assert save("voice", "/mine", "/mine") == ["/mine | /theirs"] * 2
    assert save("voice", "/theirs", "/mine | /theirs") == ["/theirs"] * 2
    text, shown = event.inputs[1:]
    public = (event for event in auditing.handlers(blocks) if event.api_visibility == "public")
    filling = {auditing.name_of(event): shown in event.outputs for event in public if text in event.outputs}
    assert all(filling.values()), filling
    assert filling.keys() >= {"upload_files", "remove_uploads", "add_input", "save_take"}


def test_clips_stay_as_they_are_while_a_run_uses_them(blocks: gr.Blocks, output: Path) -> None:
    project = Project(output / "voice")
    add_run(project, "20260101-000000-prepare")
    clip = next(iter(load_dataset(project.dataset).kept))
    event = event_named(blocks, "set_clip_aside")
    named = dict(zip(event.input_keyword_names or [], map(auditing.value_of, event.inputs), strict=True))
    with pytest.raises(gr.Error, match="cannot be changed now"):
        auditing.function_of(event)(**named | {"project": "voice", "clip": clip.id})
    assert load_dataset(project.dataset).clips[clip.id].status == "kept"


def test_another_project_is_merged_after_a_preview(blocks: gr.Blocks, output: Path) -> None:
    many_clips(Project(output / "other").dataset, 20, each=10, first=2)
    preview, merge = (auditing.function_of(event_named(blocks, name)) for name in ("plan_merge", "merge_datasets"))
    assert "Preview only. Nothing has changed." in preview("voice", "other", "en")
    assert len(load_dataset(output / "voice" / "dataset").recordings) == 2
    assert "No source project" in merge("voice", None, "en")
    assert "Done." in merge("voice", "other", "en")
    assert len(load_dataset(output / "voice" / "dataset").recordings) == 4


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
