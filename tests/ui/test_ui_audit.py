"""Nothing on the page is dead: events reach their handlers, widgets have an effect, words have a translation."""

import contextlib
import dataclasses
import re
from collections import Counter
from pathlib import Path

import gradio as gr
import pytest
from gradio.blocks import Block
from gradio.components import Component

from tests.ui import auditing
from utils.studio import downloads, paths, runs, sample_project
from utils.ui.i18n import Phrase

# events


def test_every_name_of_the_page_is_unique(blocks: gr.Blocks) -> None:
    ids = Counter(block.elem_id for block in blocks.blocks.values() if block.elem_id)
    assert [name for name, count in ids.items() if count > 1] == []
    names = [auditing.name_of(event) for event in blocks.fns.values() if event.api_visibility == "public"]
    assert len(names) == len(set(names))
    assert [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name) or "lambda" in name] == []


@pytest.mark.parametrize(
    "name", "disk_forecast load_settings prepare preset read_text speak stop train use_voice".split()
)
def test_a_program_can_still_call_the_page(name: str, blocks: gr.Blocks) -> None:
    assert name in {event.api_name for event in blocks.fns.values() if event.api_visibility == "public"}


def mark_stopped(run: runs.Run) -> None:
    """Stand in for the start of a child: the run is there, and over."""
    run.write_state(dataclasses.replace(run.read_state(), status="stopped"))


def start_nothing(*_: object, **__: object) -> None:
    raise OSError("This test starts no process.")


@pytest.fixture
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing that a handler does leaves this test: no child, no network, no consent."""
    monkeypatch.setattr("utils.studio.runs.launch", mark_stopped)
    monkeypatch.setattr("subprocess.Popen", start_nothing)
    monkeypatch.setattr(paths, "MODELS", tmp_path / "models")
    monkeypatch.setattr(paths, "LICENCE_CONSENT", tmp_path / "consent.json")
    monkeypatch.setattr(downloads, "needs_consent", lambda _: False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.slow
@pytest.mark.usefixtures("isolated")
@pytest.mark.filterwarnings("error:A function .* returned too many output values")
def test_every_handler_fits_its_components(blocks: gr.Blocks, output: Path) -> None:
    sample_project.create(output)
    for event in auditing.handlers(blocks):
        with contextlib.suppress(gr.Error):  # a handler may refuse
            auditing.respond(blocks, event)


# widgets


def interactive(blocks: gr.Blocks) -> list[Component]:
    """The widgets that a person can change or click; where it is not said, gradio lets inputs be changed."""
    outputs = {output for event in blocks.fns.values() for output in event.outputs}
    passive = gr.HTML | gr.Markdown | gr.State | gr.Timer | gr.JSON
    found = []
    for block in blocks.blocks.values():
        if isinstance(block, Component) and not isinstance(block, passive):
            is_interactive = getattr(block, "interactive", None)
            if is_interactive or (is_interactive is None and block not in outputs):
                found.append(block)
    return found


def describe(block: Block) -> str:
    words = getattr(block, "label", None) or getattr(block, "value", None)
    return f"{type(block).__name__} {words!r} #{block.elem_id or ''}"


def test_no_widget_is_without_effect(blocks: gr.Blocks) -> None:
    read = {block for event in blocks.fns.values() for block in event.inputs}
    observed = {target for event in blocks.fns.values() for target, _ in event.targets}
    dead = [block for block in interactive(blocks) if block not in read and block._id not in observed]
    for block in blocks.blocks.values():  # disabled buttons count too: they need an event once they are enabled
        is_link = getattr(block, "link", None) or isinstance(block, gr.DownloadButton)
        if isinstance(block, gr.Button) and not is_link and block._id not in observed:
            dead.append(block)
    assert sorted({describe(block) for block in dead}) == []


def test_a_dropdown_triggers_one_event_also_from_the_keyboard(blocks: gr.Blocks) -> None:
    """Of one choice, gradio tells ``input`` on blur too, when more was typed, and ``select`` after a click alone."""
    observed = {target for event in blocks.fns.values() if event.outputs for target in event.targets}
    wrong = [
        f"{describe(block)}: {kind}"
        for block in blocks.blocks.values()
        if isinstance(block, gr.Dropdown) and not auditing.is_many(block)
        for kind in ("select", *["input"] * (not block.allow_custom_value))
        if (block._id, kind) in observed
    ]
    assert wrong == []


def test_tabs_hold_nothing_but_tabs(blocks: gr.Blocks) -> None:
    """A browser takes whatever lies there for one, a State too, and shows the first tab in the place of the second."""
    bars = [block for block in blocks.blocks.values() if isinstance(block, gr.Tabs)]
    assert len(bars) > 1
    assert [describe(one) for bar in bars for one in bar.children if not isinstance(one, gr.Tab)] == []


def test_every_widget_has_a_label_and_every_field_a_sentence_of_help(blocks: gr.Blocks) -> None:
    silent = gr.HTML | gr.Markdown | gr.State | gr.Timer
    for block in blocks.blocks.values():
        if isinstance(block, Component) and not isinstance(block, silent):
            assert getattr(block, "value" if isinstance(block, gr.Button) else "label", None), describe(block)
    for block in interactive(blocks):
        if isinstance(block, gr.Textbox | gr.Number | gr.Slider | gr.Dropdown):
            assert getattr(block, "info", None), describe(block)


# words


def test_every_text_of_a_widget_follows_the_language(blocks: gr.Blocks) -> None:
    fixed = [
        (describe(block), name, text)
        for block in blocks.blocks.values()
        for name, text in block.constructor_args.items()
        if name in {"label", "info", "placeholder"} or (name == "value" and isinstance(block, gr.Button | gr.Markdown))
        if isinstance(text, str) and text and not isinstance(text, Phrase)
    ]
    assert fixed == []


def test_no_change_is_skipped_because_a_tick_is_being_answered(blocks: gr.Blocks) -> None:
    clocks = {number for number, block in blocks.blocks.items() if isinstance(block, gr.Timer)}
    skipped = [
        (auditing.name_of(event), trigger)
        for event in blocks.fns.values()
        if event.fn and event.trigger_mode == "once" and any(target in clocks for target, _ in event.targets)
        for trigger in event.targets
        if trigger[0] not in clocks
    ]
    assert skipped == []


def test_only_one_answer_to_an_event_waits_for_another(blocks: gr.Blocks) -> None:
    clocks = {number for number, block in blocks.blocks.items() if isinstance(block, gr.Timer)}
    waiting: Counter[tuple[int | None, str]] = Counter()
    for event in blocks.fns.values():
        if event.fn and event.trigger_mode == "always_last":
            waiting.update(trigger for trigger in event.targets if trigger[1] not in {"load", "then"})
    assert [trigger for trigger, count in waiting.items() if count > 1 or trigger[0] in clocks] == []
