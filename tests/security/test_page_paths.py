"""Every call of the page, given a path outside in each of its texts, shows and changes nothing there."""

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
from utils.studio import paths
from utils.ui import app

pytestmark = pytest.mark.slow

SECRET = "abebe-keeps-this-to-himself"
BY_DESIGN = {name.partition(".")[2] for name in READ} | {"place"}  # read wherever it lies
NO_NAMES = {"language", "speaker", "sample_texts"}
LONG = {"prepare", "train"}
NO_TEXT = (gr.Number, gr.Checkbox, gr.Slider, gr.State, gr.Timer)
UPLOADED = (gr.File, gr.UploadButton, gr.Audio)  # gradio itself looks whether it was uploaded


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the projects, with one project in it and links out of it."""
    output = tmp_path_factory.mktemp("page") / "output"
    (output / "mine" / "runs").mkdir(parents=True)
    outside = output.parent / "outside"
    for name in ("runs/r1", "dataset/wavs", "ready", "takes/t1", "comparisons/c1", "voices"):
        (outside / name).mkdir(parents=True)
        (outside / name / "file.txt").write_text(SECRET, encoding="utf-8")
    (outside / "secret.yaml").write_text(SECRET, encoding="utf-8")
    (output / "link").symlink_to(outside)
    (output / "mine" / "runs" / "link").symlink_to(outside)
    return output


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


def bad_calls(event: BlockFunction, output: Path) -> Iterator[dict[str, Any]]:
    """Arguments with one bad text at a time: a name with dots, a link, a whole path; the others are usual."""
    assert event.fn
    known, keywords = inspect.signature(event.fn).parameters.values(), list(event.input_keyword_names)
    plain = [parameter.name for parameter in known if parameter.annotation is not gr.Request]
    plain = [name for name in plain if name not in keywords][: len(event.inputs) - len(keywords)]
    widgets = dict(zip([*plain, *keywords], event.inputs, strict=True))
    usual = {name: getattr(widget, "value", None) for name, widget in widgets.items()}
    usual |= {name: "mine" for name in ("project", "open_one") if name in usual}
    request = SimpleNamespace(session_hash="visitor", username=None)
    usual |= {parameter.name: request for parameter in known if parameter.annotation is gr.Request}
    for name, widget in widgets.items():
        checked = isinstance(widget, UPLOADED) and event.preprocess
        if name in BY_DESIGN | NO_NAMES or isinstance(widget, NO_TEXT) or checked:
            continue
        if event.api_name in LONG and name != "project":
            continue
        for bad in ("../outside", "link", str(output.parent / "outside" / "secret.yaml")):
            several = getattr(widget, "multiselect", False) or isinstance(widget, gr.JSON)
            upload = {"path": bad, "meta": {"_type": "gradio.FileData"}} if isinstance(widget, UPLOADED) else bad
            yield {**usual, name: [bad] if several else upload}


def call(event: BlockFunction, arguments: dict[str, Any]) -> str:
    """Call it as gradio does; an error that the page shows is a response too."""
    assert event.fn
    order = [name for name in inspect.signature(event.fn).parameters if name in arguments]
    positional = [arguments[name] for name in order]
    named = {name: value for name, value in arguments.items() if name not in order}
    try:
        response = event.fn(*positional, **named)
        return repr(list(response) if inspect.isgenerator(response) else response)
    except gr.Error as error:
        return str(error)


def tree(folder: Path) -> dict[str, str]:
    """Everything below a folder, with what the files hold."""
    return {str(path): path.read_text(encoding="utf-8") if path.is_file() else "" for path in folder.rglob("*")}


def test_no_call_shows_or_changes_anything_outside(
    events: list[BlockFunction], output: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = tree(output.parent)
    leaks: list[str] = []
    for event in events:
        for arguments in bad_calls(event, output):
            caplog.clear()
            with caplog.at_level(logging.ERROR):
                response = call(event, arguments)
            if SECRET in response or caplog.records:
                leaks.append(f"{event.api_name} {arguments}: {response} {caplog.text}")
    assert leaks == []
    outside = str(output.parent / "outside")
    assert {path: text for path, text in tree(output.parent).items() if path.startswith(outside)} == {
        path: text for path, text in before.items() if path.startswith(outside)
    }
    assert {path.name for path in output.parent.iterdir()} == {"output", "outside"}
