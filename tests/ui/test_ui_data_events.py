"""Whatever a browser or a program sends to the Data tab and to the projects: nothing but a sentence comes back."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from gradio.block_function import BlockFunction
from gradio.blocks import Block
from gradio.state_holder import SessionState

from tests.ui import auditing, inside
from tests.ui.data_folders import many_clips
from utils.core.paths import Project
from utils.ui import app
from utils.ui.tabs.data import tab as data
from utils.workspace import projects, uploads

pytestmark = pytest.mark.slow


class NoChild:
    """Stands in for the start of a child."""

    def __init__(self, *_: object, **__: object) -> None:
        raise OSError("This test starts no process.")


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("subprocess.Popen", NoChild)
    monkeypatch.setattr(app, "TABS", (data,))
    many_clips(projects.create("voice", tmp_path).dataset, 20, each=10)
    return tmp_path


@pytest.fixture
def blocks(output: Path) -> Iterator[gr.Blocks]:
    with inside.environment():
        yield app.build(output)


def sent(block: Block, picker: Block, project: object, *, empty: bool) -> Any:
    """What the browser sends of a widget; a state never leaves the page."""
    if block is picker:
        return project
    return None if isinstance(block, gr.State) or empty else auditing.value_of(block)


def answer(blocks: gr.Blocks, event: BlockFunction, values: list[Any]) -> str:
    """Send an event as the server does; return what went wrong with it, if a person would see no sentence."""
    try:
        asked = blocks.process_api(
            event,
            values,
            state=SessionState(blocks),
            request=auditing.request(),
            event_data=gr.EventData(None, {"clip": "x"}),
        )
        with ThreadPoolExecutor(1) as aside:  # the browser of other tests has a loop of its own in this thread
            aside.submit(asyncio.run, asked).result()
    except gr.Error as error:
        if "fault of the program" in str(error):
            return str(error)
        return f"HTTP 500: {error}" if event.queue is False else ""
    except Exception as error:  # noqa: BLE001  # whatever it is, no handler may let it out
        return f"{type(error).__name__}: {error}"
    return ""


def asked(blocks: gr.Blocks, name: str, *placed: object, **named: object) -> Any:
    """What an event answers."""
    event = next(one for one in blocks.fns.values() if one.api_name == name)
    return auditing.function_of(event)(*placed, **named)


def test_leaving_the_box_of_the_places_takes_none_away(blocks: gr.Blocks, output: Path) -> None:
    for place in ("/mine", "/theirs"):
        uploads.add_input(Project(output / "voice"), place)
    assert asked(blocks, "set_inputs", "voice", "/mine", "/mine") == ["/mine | /theirs"] * 2
    assert asked(blocks, "set_inputs", "voice", "/theirs", "/mine | /theirs") == ["/theirs"] * 2
    seen = next(event for event in blocks.fns.values() if event.api_name == "set_inputs").inputs[-1]
    box = next(block for block in blocks.blocks.values() if block.elem_id == "inputs")
    fills = [event for event in auditing.handlers(blocks) if box in event.outputs]
    heard = {auditing.name_of(event) for event in fills if seen in event.outputs}
    assert heard >= {
        "reload_inputs",
        "reload",
        "set_inputs",
        "upload_files",
        "remove_uploads",
        "add_folder",
        "save_take",
    }
    words_alone = {auditing.name_of(event) for event in fills} - heard
    assert words_alone <= {"translate", "restore_1"}


def test_a_reason_that_no_clip_has_any_longer_filters_nothing(blocks: gr.Blocks) -> None:
    given = {"project": "voice", "page_language": "en", "status": "all", "search": "", "order": "worst", "page": 1}
    for reason, total, reset in (("noisy", "2 clips", False), ("of another project", "20 clips", True)):
        _, table, pager, choice, *_ = asked(blocks, "clips", **given, reason=reason, clip="")
        assert total in pager
        assert "<tr" in table
        assert choice["choices"] == [("Any reason", ""), ("noisy (2)", "noisy")]
        assert (choice.get("value") == "") == reset


@pytest.mark.parametrize(
    ("project", "empty"),
    [("../../etc", False), ("nul", True), ("", False), (None, True), ("voice", True), ("not there yet", True)],
)
def test_every_event_answers_with_a_sentence_or_with_what_is_there(
    blocks: gr.Blocks, project: str | None, *, empty: bool
) -> None:
    picker = next(block for block in blocks.blocks.values() if block.elem_id == "project")
    found = {}
    for event in auditing.handlers(blocks):
        values = [sent(block, picker, project, empty=empty) for block in event.inputs]
        if fault := answer(blocks, event, values):
            found[auditing.name_of(event)] = fault
    assert found == {}
