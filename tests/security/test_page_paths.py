"""Every call of the page, given the name of a place outside in each of its texts, shows and changes nothing there."""

import inspect
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio.block_function import BlockFunction

from tests.security.test_settings_of_paths import READ
from tests.ui.serving import stop_runs
from utils.core import paths
from utils.ui import app

pytestmark = pytest.mark.slow

SECRET = "abebe-keeps-this-to-himself"
BY_DESIGN = {name.partition(".")[2] for name in READ} | {"place"}  # read wherever it lies
NO_NAMES = {"language", "page_language", "speaker", "sample_texts"}
LONG = {"prepare", "train", "memory_test", "memory_plan", "check_dataset", "rehearse", "sample_project", "doctor"}
NO_TEXT = (gr.Number, gr.Checkbox, gr.Slider, gr.State, gr.Timer, gr.BrowserState)
UPLOADED = (gr.File, gr.UploadButton, gr.Audio)  # gradio itself looks whether it was uploaded


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the projects, with one project in it and links out of it."""
    found = tmp_path_factory.mktemp("page") / "output"
    (found / "mine" / "runs").mkdir(parents=True)
    outside = found.parent / "outside"
    for name in ("runs/r1", "dataset/wavs", "ready", "takes/t1", "comparisons/c1", "voices"):
        (outside / name).mkdir(parents=True)
        (outside / name / "kept.txt").write_text(SECRET, encoding="utf-8")
    (outside / "secret.yaml").write_text(SECRET, encoding="utf-8")
    (found / "link").symlink_to(outside)
    (found / "mine" / "runs" / "link").symlink_to(outside)
    return found


@pytest.fixture(scope="module")
def events(output: Path) -> Iterator[list[BlockFunction]]:
    """What programs can call of the page."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GRADIO_TEMP_DIR", "GRADIO_EXAMPLES_CACHE"):
            patch.setenv(name, "")
        patch.setattr(paths, "LICENCE_CONSENT", output / ".settings" / "licence-consent.json")
        blocks = app.build(output)
        yield [event for event in blocks.fns.values() if event.fn and event.api_visibility == "public"]
        stop_runs(output)


def inputs_of(event: BlockFunction) -> dict[str, Any]:
    """The widgets of a call by the names of its parameters."""
    assert event.fn
    known = inspect.signature(event.fn).parameters.values()
    keywords = list(event.input_keyword_names)
    plain = [one.name for one in known if one.annotation is not gr.Request and one.name not in keywords]
    return dict(zip([*plain[: len(event.inputs) - len(keywords)], *keywords], event.inputs, strict=True))


def evil(output: Path) -> list[str]:
    """A name with dots, a link, and a whole path."""
    return ["../outside", "link", str(output.parent / "outside" / "secret.yaml")]


def asked(event: BlockFunction, output: Path) -> Iterator[dict[str, Any]]:
    """What a call is given: one bad text at a time; the others are as the page begins."""
    assert event.fn
    widgets = inputs_of(event)
    usual = {name: getattr(widget, "value", None) for name, widget in widgets.items()}
    usual |= {name: "mine" for name in ("project", "open_one") if name in usual}
    for one in inspect.signature(event.fn).parameters.values():
        if one.annotation is gr.Request:
            usual[one.name] = SimpleNamespace(session_hash="visitor", username=None)
    for name, widget in widgets.items():
        checked = isinstance(widget, UPLOADED) and event.preprocess
        if name in BY_DESIGN | NO_NAMES or isinstance(widget, NO_TEXT) or checked:
            continue
        if event.api_name in LONG and name != "project":
            continue
        for bad in evil(output):
            several = getattr(widget, "multiselect", False) or isinstance(widget, gr.JSON)
            upload = {"path": bad, "meta": {"_type": "gradio.FileData"}} if isinstance(widget, UPLOADED) else bad
            yield {**usual, name: [bad] if several else upload}


def answer_of(event: BlockFunction, given: dict[str, Any]) -> str:
    """Call it as gradio does; an error that the page shows is an answer too."""
    assert event.fn
    order = [one for one in inspect.signature(event.fn).parameters if one in given]
    positional = [given[name] for name in order]
    named = {name: value for name, value in given.items() if name not in order}
    try:
        answer = event.fn(*positional, **named)
        return repr(list(answer) if inspect.isgenerator(answer) else answer)
    except gr.Error as error:
        return str(error)


def tree(folder: Path) -> dict[str, str]:
    """Everything below a folder, with what the files hold."""
    return {str(path): path.read_text(encoding="utf-8") if path.is_file() else "" for path in folder.rglob("*")}


def test_no_call_shows_or_changes_anything_outside(
    events: list[BlockFunction], output: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = tree(output.parent)
    faults: list[str] = []
    for event in events:
        for given in asked(event, output):
            caplog.clear()
            with caplog.at_level(logging.ERROR):
                answer = answer_of(event, given)
            if SECRET in answer or caplog.records:
                faults.append(f"{event.api_name} {given}: {answer} {caplog.text}")
    assert faults == []
    outside = str(output.parent / "outside")
    assert {path: text for path, text in tree(output.parent).items() if path.startswith(outside)} == {
        path: text for path, text in before.items() if path.startswith(outside)
    }
    assert {path.name for path in output.parent.iterdir()} == {"output", "outside"}
