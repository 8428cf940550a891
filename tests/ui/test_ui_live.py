"""Parts of a tab that are refreshed by one event."""

from pathlib import Path

import gradio as gr
import pytest

from tests.worded import worded
from utils.core.errors import DataError
from utils.ui.page import Live, PageContext
from utils.ui.tabs.inference.tab import new_session


def test_a_part_that_fails_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(gr, "Warning", lambda message, **_: warnings.append(message))
    live = Live()
    with gr.Blocks() as blocks:
        language, button, first, second = gr.Radio(["en", "am"]), gr.Button(), gr.HTML(), gr.HTML()
        page = PageContext(tmp_path, gr.Dropdown(), language, gr.Timer(), blocks, gr.State({}), new_session(tmp_path))

        def fail() -> list[str]:
            raise worded(DataError, "The store is damaged.", "Restore it.")

        live.add(fail, [], [first])
        live.add(lambda: ["whole"], [], [second])
        live.connect(page, [button.click])
    (event,) = [event for event in blocks.fns.values() if event.fn]
    assert event.fn is not None
    skipped, shown = event.fn("en")
    assert skipped["__type__"] == "update"
    assert "value" not in skipped
    assert shown == "whole"
    assert warnings == ["The store is damaged. Restore it."]
