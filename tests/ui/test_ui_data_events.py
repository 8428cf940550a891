"""Whatever a browser or a program sends to the Data tab and to the projects: it gets a result or a readable error."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from gradio.block_function import BlockFunction
from gradio.state_holder import SessionState

from tests.ui import auditing, inside
from tests.ui.data_folders import add_run, many_clips
from utils.core.facts import to_json
from utils.dataset import editor
from utils.dataset.clip import Clip
from utils.dataset.facts import TextsFitOtherClips
from utils.dataset.list_check import as_listed
from utils.dataset.store import FINDING, Store, View, load_dataset
from utils.studio import projects
from utils.studio.paths import Project
from utils.ui import app, views
from utils.ui.i18n import t
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
def project(output: Path) -> Project:
    return Project(output / "voice")


@pytest.fixture
def clip(project: Project) -> Clip:
    return next(iter(load_dataset(project.dataset).kept))


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


def test_clips_stay_as_they_are_while_a_preparation_writes_them(
    blocks: gr.Blocks, project: Project, clip: Clip
) -> None:
    run = add_run(project, "20260101-000000-prepare")
    with pytest.raises(gr.Error, match=f"{run.name} is running in the project voice"):
        auditing.act(blocks, "review", "exclude", "voice", of=clip.id, why="noise")
    assert load_dataset(project.dataset).clips[clip.id].status == "kept"


def test_clips_are_reviewed_while_a_training_runs(blocks: gr.Blocks, project: Project, clip: Clip) -> None:
    add_run(project, "20260101-000000-train")
    auditing.act(blocks, "review", "exclude", "voice", of=clip.id, why="noise")
    assert load_dataset(project.dataset).clips[clip.id].reason == "noise"


def test_a_list_is_repaired_with_one_click_until_it_is_undone(blocks: gr.Blocks, project: Project) -> None:
    store = Store(project.dataset)
    fitting = store.read().kept
    pairs = [as_listed(clip, "ሌላ ጽሑፍ") for clip in fitting]
    found = TextsFitOtherClips(len(pairs), len(pairs), "mixed", 0, 0, 0, store.folder / "list_check.tsv")
    store.set_meta(FINDING, json.dumps(to_json(found)))
    store.put(clip for clip, _ in pairs)
    store.propose({clip.id: change for clip, change in pairs})
    auditing.act(blocks, "review", "repair_list", "voice", of=fitting[0].id)
    assert [clip.text for clip in store.read().kept] == [clip.text for clip in fitting]
    auditing.act(blocks, "review", "undo", "voice", of=fitting[0].id)
    assert store.read().kept == []


class Visitor:
    """One tab of the review, which sends the text of the open clip, and the one that it was edited on."""

    def __init__(self, blocks: gr.Blocks, clip: Clip) -> None:
        self.blocks, self.clip, self.state = blocks, clip, SessionState(blocks)

    def send(self, act: str, text: str, base: str, **fields: str) -> str:
        event = auditing.click_of(self.blocks, "review")
        typed = {"act": act, "clip": self.clip.id, "of": self.clip.id, "text": text, "textBase": base} | fields
        return str(auditing.respond(self.blocks, event, [None, "voice", "en"], self.state, **typed)[0])


@pytest.fixture
def visitors(blocks: gr.Blocks, clip: Clip) -> tuple[Visitor, Visitor]:
    return Visitor(blocks, clip), Visitor(blocks, clip)


def stored(visitor: Visitor, project: Project) -> str:
    return load_dataset(project.dataset).clips[visitor.clip.id].text


def test_a_text_that_another_tab_stored_meanwhile_is_not_replaced(
    visitors: tuple[Visitor, Visitor], project: Project
) -> None:
    (mine, other), before = visitors, visitors[0].clip.text
    assert "Keep my text" not in mine.send("draft", "የእኔ", before)
    other.send("save_text", "የሌላ", before)
    for action in ("save_text", "open", "approve", "exclude"):
        with pytest.raises(gr.Error, match="changed elsewhere while you were typing"):
            mine.send(action, "የእኔ", before)
    assert stored(mine, project) == "የሌላ"
    shown = mine.send("draft", "የእኔ ጽሑፍ", before)
    assert "Keep my text" in shown
    assert "<p>የሌላ</p>" in shown
    mine.send("save_text", "የእኔ ጽሑፍ", "የሌላ")
    assert stored(mine, project) == "የእኔ ጽሑፍ"


def test_a_box_that_nobody_typed_in_stores_nothing(visitors: tuple[Visitor, Visitor], project: Project) -> None:
    (mine, other), before = visitors, visitors[0].clip.text
    other.send("save_text", "የሌላ", before)
    mine.send("open", before, before)  # it was not refreshed yet
    assert stored(mine, project) == "የሌላ"


def test_what_this_tab_stored_itself_is_no_conflict(visitors: tuple[Visitor, Visitor], project: Project) -> None:
    mine, before = visitors[0], visitors[0].clip.text
    mine.send("save_text", "አንድ  ሁለት", before)
    shown = mine.send("save_text", "አንድ ሁለት ሦስት", before)  # typed before the answer arrived
    assert stored(mine, project) == "አንድ ሁለት ሦስት"
    assert "Keep my text" not in shown


def test_clips_with_the_same_text_are_each_corrected(visitors: tuple[Visitor, Visitor], project: Project) -> None:
    mine, folder = visitors[0], project.dataset
    second = [*load_dataset(folder).kept][1]
    for clip in (mine.clip, second):
        editor.set_text(folder, clip.id, "ስተት")
        mine.send("save_text", "ስህተት", "ስተት", clip=clip.id, of=clip.id)
        assert load_dataset(folder).clips[clip.id].text == "ስህተት"


def test_the_text_of_a_clip_that_is_gone_is_shown(visitors: tuple[Visitor, Visitor], project: Project) -> None:
    mine = visitors[0]
    store = Store(project.dataset)
    with store.transaction():
        store.delete([mine.clip.id])
    assert "<p>የእኔ</p>" in mine.send("draft", "የእኔ", mine.clip.text)


def test_a_note_of_a_run_that_another_tab_stored_meanwhile_is_not_replaced(blocks: gr.Blocks, project: Project) -> None:
    run = add_run(project, "20260101-000000-prepare")

    def note(text: str, base: str) -> str:
        typed = {"note": text, "noteBase": base, "run": run.name, "of": run.name}
        return str(auditing.act(blocks, "runs", "note", "voice", [run.name], **typed))

    note("የሌላ", "")
    shown = note("የእኔ", "")
    assert run.note == "የሌላ"
    assert "Keep my text" in shown
    note("የእኔ", "የሌላ")
    assert run.note == "የእኔ"


def test_my_note_can_be_kept_where_another_tab_emptied_it() -> None:
    assert 'data-note-base=""' in views.conflict("note", "", "note")


@pytest.mark.parametrize("status", ["", "unchecked", "approved", "all"])
def test_a_reason_shows_its_clips_whatever_list_was_open(blocks: gr.Blocks, status: str) -> None:
    shown = auditing.act(blocks, "review", "show", "voice", status=status, reason="noisy")
    assert t("data.page_of", number=1, pages=1, count=2) in str(shown)


def test_a_corrected_word_is_shown_at_once_where_its_clip_is_open(
    blocks: gr.Blocks, project: Project, clip: Clip
) -> None:
    word = clip.text.split()[0].strip("።፣")
    fix = {"written": word, "spoken": "ɡənːa", "pronunciation_note": "heard"}
    with pytest.raises(gr.Error, match="missing"):
        auditing.act(blocks, "review", "fix_pronunciation", "voice", clip=clip.id, written=word)
    shown = auditing.act(
        blocks, "review", "fix_pronunciation", "voice", clip=clip.id, of=clip.id, text=clip.text, **fix
    )
    assert "ɡənːa" in str(shown)
    assert overrides(project.pronunciations) == {word: "ɡənːa"}


def test_a_decision_sent_twice_does_not_return_to_its_clip(blocks: gr.Blocks, output: Path) -> None:
    second, third = (clip.id for clip in Store(output / "voice" / "dataset").page(View("unchecked"), 1).clips[1:3])
    event = auditing.click_of(blocks, "review")
    visitor = SessionState(blocks)
    for _ in range(2):
        typed = {"act": "exclude", "of": second, "why": "noise"}
        (shown,) = auditing.respond(blocks, event, [None, "voice", "en"], visitor, **typed)
        assert f'name="of" value="{third}"' in str(shown)


def test_runs_with_the_same_note_each_get_the_new_one(blocks: gr.Blocks, project: Project) -> None:
    event = auditing.click_of(blocks, "runs")
    visitor = SessionState(blocks)
    for name in ("20260101-000000-prepare", "20260102-000000-prepare"):
        run = add_run(project, name)
        typed = {"act": "note", "note": "good", "noteBase": "", "run": name, "of": name}
        auditing.respond(blocks, event, [None, "voice", "en", name], visitor, **typed)
        assert run.note == "good"
