"""A selection stays while the page refreshes, and a confirmation is about what was asked."""

import asyncio
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from gradio.block_function import BlockFunction
from gradio.blocks import Block
from gradio.state_holder import SessionState

from tests.ui.serving import emptied
from utils.core.paths import list_projects
from utils.workspace import projects

SKIPPED = {"__type__": "update"}


class Visitor:
    """What gradio does for one tab of a browser: it keeps its states, and makes what it is sent of the answers."""

    def __init__(self, blocks: gr.Blocks) -> None:
        self.blocks = blocks
        self.state = SessionState(blocks)

    def widget(self, name: str) -> Block:
        """Return the widget with this id, or the button with this text."""
        found = self.blocks.blocks.values()
        return next(block for block in found if name in {block.elem_id, str(getattr(block, "value", ""))})

    def event(self, name: str, kind: str) -> BlockFunction:
        target = self.widget(name)._id, kind
        return next(event for event in self.blocks.fns.values() if target in event.targets)

    def send(self, event: BlockFunction, **given: Any) -> dict[Block, Any]:
        """Send what the widgets hold by their ids; return what each output is answered."""
        values = [given.get(str(block.elem_id).replace("-", "_")) for block in event.inputs]
        answer = asyncio.run(self.blocks.process_api(event, values, state=self.state))
        return dict(zip(event.outputs, answer["data"], strict=True))


@pytest.fixture
def visitor(blocks: gr.Blocks, output: Path) -> Visitor:
    """Somebody new, before a page without projects."""
    emptied(output)
    return Visitor(blocks)


def test_the_selection_of_a_deleted_project_survives_a_refresh(visitor: Visitor, output: Path) -> None:
    for name in ("first", "second"):
        projects.delete(projects.create(name, output), output)
    chooser = visitor.widget("deleted-projects")
    look = visitor.event("project-name", "input")
    first, again = (visitor.send(look, project="voice", project_name="")[chooser] for _ in range(2))
    assert [label.partition(" ")[0] for label, _ in first["choices"]] == ["second", "first"]
    assert again == SKIPPED


@pytest.mark.parametrize(
    ("ask", "yes", "chosen", "other"),
    [
        ("delete-project", "project-question-confirm", {"project": "first"}, {"project": "second"}),
        (
            "data-delete",
            "data-run-question-confirm",
            {"project": "first", "data_runs": "r1"},
            {"project": "first", "data_runs": "r2"},
        ),
        (
            "data-delete",
            "data-run-question-confirm",
            {"project": "first", "data_runs": "r1"},
            {"project": "second", "data_runs": "r1"},
        ),
        (
            "delete-version",
            "download-question-confirm",
            {"download_version": "main"},
            {"download_version": "v2.0.3"},
        ),
        (
            "free-space",
            "free-question-confirm",
            {"project": "first", "spare_kind": "features"},
            {"project": "second", "spare_kind": "features"},
        ),
    ],
)
def test_a_confirmation_is_about_what_was_asked(
    visitor: Visitor, output: Path, ask: str, yes: str, chosen: dict[str, str], other: dict[str, str]
) -> None:
    for name in ("first", "second"):
        projects.create(name, output)
    visitor.send(visitor.event(ask, "click"), language="en", **chosen)
    with pytest.raises(gr.Error, match="selection has changed"):
        visitor.send(visitor.event(yes, "click"), language="en", **other)
    assert list_projects(output) == ["first", "second"]


def test_confirming_deletes_and_another_selection_hides_the_question(visitor: Visitor, output: Path) -> None:
    for name in ("first", "second"):
        projects.create(name, output)
    asked = visitor.send(visitor.event("delete-project", "click"), language="en", project="first")
    box = next(block for block in asked if isinstance(block, gr.Column))
    assert asked[box]["visible"] is True
    withdraw = next(event for event in visitor.blocks.fns.values() if event.outputs == [box] and len(event.inputs) > 1)
    assert visitor.send(withdraw, project="first")[box] == SKIPPED
    assert visitor.send(withdraw, project="second")[box]["visible"] is False
    visitor.send(visitor.event("project-question-confirm", "click"), language="en", project="first")
    assert list_projects(output) == ["second"]
