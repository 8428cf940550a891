"""What lies behind the Inference tab: takes on disk, work that can be broken off, readings, and what is shown."""

import contextlib
import errno
import os
import re
import shutil
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import numpy as np
import pytest

from tests.ui import auditing, inside
from utils.config import SpeechConfig
from utils.core.errors import AudioError, ConfigError, DataError, RunBusyError, RunError, StorageError, TextError
from utils.core.paths import TINY_MODEL, Project
from utils.dataset.metadata import FILES, HEADER
from utils.media import audio
from utils.media.rates import OUTPUT_RATE
from utils.runs import child_commands
from utils.runs.background_jobs import Errands
from utils.runs.tasks import Turns, Work, ensure_going
from utils.speech.models import list_models
from utils.ui import app
from utils.ui.form import build_form
from utils.ui.i18n import t
from utils.ui.page import PageContext
from utils.ui.tabs.inference import model_choices, render, speech_tasks
from utils.ui.tabs.inference import tab as inference
from utils.ui.tabs.inference.batch import BATCH, batch_state
from utils.ui.tabs.inference.context import Room, Sight
from utils.ui.tabs.inference.export import pack_state
from utils.ui.tabs.inference.model import model_state
from utils.ui.tabs.inference.model_session import Studio
from utils.ui.tabs.inference.playback import Listener
from utils.ui.tabs.inference.pronunciation import Seen, look, read
from utils.ui.tabs.inference.sentence_editor import heard
from utils.ui.tabs.inference.speech_tasks import Begun, take_of
from utils.ui.tabs.inference.take_render import links
from utils.workspace import comparisons, reference_clips, takes
from utils.workspace.takes import Said, Sentence, Take
from utils.xtts.tokenizer import TokenizedText, Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> gr.Blocks:
    """The page with this tab alone."""
    with pytest.MonkeyPatch.context() as patch, inside.environment():
        patch.setattr(app, "TABS", (inference,))
        return app.build(tmp_path_factory.mktemp("page"))


def reading(text: str) -> TokenizedText:
    return TokenizedText(text, text, "səlam", "səlam", ("[am]", "s"), (1, 2), ())


def said(text: str, seconds: float = 0.5, seed: int = 0, pause: float = 0.25, flags: tuple[str, ...] = ()) -> Said:
    tone = np.sin(np.arange(round(seconds * OUTPUT_RATE)) * 0.05).astype(np.float32) * 0.5
    return Said(Sentence(reading(text), seed, flags, pause=pause), tone)


def make_take(project: Project, *texts: str, **more: object) -> Take:
    take, samples = take_of(
        Begun(len(texts), "m", "v"), [said(text) for text in texts], "speech", " ".join(texts), SpeechConfig(seed=5)
    )
    return takes.keep(project, replace(take, **more), samples)  # type: ignore[arg-type]


# --- takes ---


def test_a_take_is_read_as_it_was_kept(tmp_path: Path) -> None:
    kept = make_take(Project(tmp_path), "ሰላም።", "ዛሬ።")
    found = takes.find(Project(tmp_path), kept.name)
    assert found == kept
    assert [round(one.start, 2) for one in found.pieces] == [0.0, 0.75]
    assert found.settings["seed"] == 5
    assert SpeechConfig.parse(found.settings) == SpeechConfig(seed=5)


def test_a_sentence_can_take_the_place_of_another(tmp_path: Path) -> None:
    project = Project(tmp_path)
    kept = make_take(project, "ሰላም።", "ዛሬ።", "ነገ።")
    new = takes.replaced(project, kept, 1, [said("ትናንት።", 1.0, seed=9, pause=9.0)])
    assert [one.reading.written for one in new.pieces] == ["ሰላም።", "ትናንት።", "ነገ።"]
    assert new.text == "ሰላም። ትናንት። ነገ።"
    assert new.pieces[1].pause == 0.25  # the pause belongs to the place
    assert new.seconds == pytest.approx(kept.seconds + 0.5, abs=0.01)
    before, after = takes.sounds(project, kept), takes.sounds(project, takes.find(project, kept.name))
    assert np.abs(before[0].samples[200:-200] - after[0].samples[200:-200]).max() < 1e-3


def test_a_deleted_take_comes_back_and_only_some_are_kept(tmp_path: Path) -> None:
    project = Project(tmp_path)
    kept = make_take(project, "ሰላም።")
    takes.delete(project, kept.name)
    assert takes.names(project) == []
    assert takes.restore(project) == kept.name
    assert takes.find(project, kept.name) == kept
    with pytest.raises(DataError, match="No deleted take"):
        takes.restore(project)


def test_the_newest_take_comes_first_and_a_damaged_one_hides_no_other(tmp_path: Path) -> None:
    project = Project(tmp_path)
    old, new = make_take(project, "ሰላም።", made=1000.0), make_take(project, "ዛሬ።", made=2000.0)
    assert [one.name for one in takes.newest(project)] == [new.name, old.name]
    (tmp_path / takes.FOLDER / new.name / takes.ABOUT).write_text("{", encoding="utf-8")
    assert [one.name for one in takes.newest(project)] == [old.name]


def test_takes_of_one_second_keep_their_order(tmp_path: Path) -> None:
    made = [make_take(Project(tmp_path), "ሰላም።", made=1000 + number / 100) for number in range(9)]
    assert takes.names(Project(tmp_path)) == [take.name for take in reversed(made)]


@pytest.mark.parametrize("name", ["../up", "", None, 5, "nothing-here"])
def test_no_take_outside_the_project_can_be_named(tmp_path: Path, name: object) -> None:
    with pytest.raises((StorageError, DataError)):
        takes.find(Project(tmp_path), name)


def test_silence_is_no_take(tmp_path: Path) -> None:
    take, samples = take_of(Begun(0, "m", "v"), [], "speech", "", SpeechConfig())
    with pytest.raises(AudioError, match="Nothing was spoken"):
        takes.keep(Project(tmp_path), take, samples)


def test_what_was_stopped_says_so() -> None:
    listener = Listener("speech", "ሰላም። ዛሬ።", SpeechConfig())
    assert listener.take() is None
    for item in (Begun(2, "m", "v"), said("ሰላም።")):
        listener.hear(item)
    made = listener.take()
    assert made is not None
    assert made[0].unfinished
    assert "stopped early" in render.take_facts(made[0], "en")


# --- work ---


def endless() -> Iterator[int]:
    yield 1
    while True:
        time.sleep(0.01)
        ensure_going()


def test_work_that_is_broken_off_ends_at_once() -> None:
    work = Work(endless)
    begun = time.monotonic()
    for item in work.news():
        if item == 1:
            work.break_off()
    assert work.wait(2)
    assert time.monotonic() - begun < 2


def test_whoever_stops_listening_breaks_the_work_off() -> None:
    work = Work(endless)
    news = work.news()
    next(news)
    news.close()  # type: ignore[attr-defined]
    assert work.wait(2)


def test_an_error_of_the_work_comes_out_where_somebody_listens() -> None:
    def fails() -> Iterator[int]:
        yield 1
        raise RunError("No.")

    with pytest.raises(RunError, match="No"):
        list(Work(fails).news())


def test_turns_come_in_the_order_in_which_they_were_asked() -> None:
    turns, order = Turns(), list[int]()

    def take(number: int) -> None:
        with turns.mine():
            order.append(number)

    with turns.mine():
        waiting = []
        for number in range(3):
            thread = threading.Thread(target=take, args=(number,))
            thread.start()
            waiting.append(thread)
            time.sleep(0.05)
    for thread in waiting:
        thread.join(2)
    assert order == [0, 1, 2]


def test_a_long_work_goes_on_alone_and_one_at_a_time() -> None:
    errands, gate = Errands(), threading.Event()

    def task() -> Iterator[str]:
        gate.wait(5)
        yield "done"

    errand = errands.begin("p", "pack", task)
    with pytest.raises(RunBusyError, match="already"):
        errands.begin("p", "pack", task)
    gate.set()
    errand._listener.join(10)
    assert errand.last == "done"
    errands.begin("p", "pack", task)


def test_a_long_work_is_stopped_by_whoever_wants() -> None:
    errands = Errands()
    errand = errands.begin("p", "compare", endless)
    assert errands.stop("p", "compare")
    errand._listener.join(10)
    assert not errands.stop("p", "compare")


def room(output: Path) -> Room:
    """A room without its widgets."""
    return Room(SimpleNamespace(open=lambda name: Project(output / name)), None, Errands())  # type: ignore[arg-type]


def unreadable() -> Any:
    """A studio whose model can read nothing."""

    def plan(*_: object) -> None:
        raise TextError("Nobody reads this.")

    named = SimpleNamespace(name="m")
    model = SimpleNamespace(model=named, voice=lambda _: named, plan=plan)
    return SimpleNamespace(card=None, load=lambda *_: None, using=lambda: contextlib.nullcontext(model), turns=Turns())


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_batch_is_offered_once_it_is_packed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, offered = Project(tmp_path / "p"), list[str]()

    def look_and_fail(*_: object) -> None:
        offered.append(batch_state(room(tmp_path), Sight("p", project, [], "en"))["batch"])
        full()

    def batch() -> Iterator[object]:
        return speech_tasks.batch(unreadable(), project, ["ሰላም", "ዛሬ"], ".wav", SpeechConfig())

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "write", look_and_fail)
        with pytest.raises(StorageError, match="No space left"):
            list(batch())
    assert offered == [""]
    assert list((project.root / speech_tasks.BATCHES).iterdir()) == []
    *_, packed = batch()
    assert isinstance(packed, speech_tasks.Packed)
    with zipfile.ZipFile(packed.archive) as archive:
        assert archive.namelist() == ["list.csv"]
        assert archive.read("list.csv").decode("utf-8-sig").count("Nobody reads this.") == 2


def test_a_stopped_batch_promises_nothing(tmp_path: Path) -> None:
    here = room(tmp_path)
    errand = here.errands.begin("p", BATCH, endless)
    errand.stop()
    errand._listener.join(10)
    shown = batch_state(here, Sight("p", Project(tmp_path / "p"), [], "en"))["batch"]
    assert re.sub("<[^>]*>", "", shown) == "Stopped."


def test_an_archive_that_is_deleted_meanwhile_hides_no_other(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    project.exports.mkdir(parents=True)
    (project.exports / "there.zip").write_bytes(b"x" * 2_000_000)
    (project.exports / "gone.zip").symlink_to(tmp_path / "nothing")
    shown = pack_state(room(tmp_path), Sight("p", project, [], "en"))["pack"]
    assert "there.zip (2.0 MB)" in shown
    assert "gone.zip" not in shown
    assert "?v=" not in render.link(project.exports / "gone.zip", "gone")


def test_subtitles_that_the_disk_has_no_room_for_are_one_sentence(small_disk: Path) -> None:
    project = Project(small_disk)
    take = make_take(project, "ሰላም።")
    with contextlib.suppress(OSError):
        (small_disk / "ballast").write_bytes(b"x" * 1_000_000)
    with pytest.raises(StorageError, match="No space left"):
        links(project, take)
    assert not list(small_disk.rglob("take.srt"))


@pytest.mark.parametrize(
    ("name", "given"),
    [("show_take", ("default", "a", "en")), ("look", ({}, "default", None, None, None, "en"))],
)
def test_a_fault_of_ours_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, built: gr.Blocks, name: str, given: tuple[object, ...]
) -> None:
    for of_takes in ("find", "newest"):
        monkeypatch.setattr(takes, of_takes, full)
    events = (event for event in built.fns.values() if len(event.inputs) == len(given))
    event = next(event for event in events if name in (event.api_name, event.name))
    with pytest.raises(gr.Error, match="fault of the program"):
        auditing.function_of(event)(*given)


@pytest.mark.parametrize(("loud", "written"), [(0.5, 16384), (-0.5, -16384), (2.0, 32767), (-2.0, -32768)])
def test_the_player_gets_whole_numbers_within_their_limits(loud: float, written: int) -> None:
    rate, found = heard([Said(Sentence(reading("x")), np.full(5000, loud, np.float32))])
    assert (rate, found[2500]) == (OUTPUT_RATE, written)


def test_a_sound_that_is_broken_goes_to_no_player() -> None:
    with pytest.raises(AudioError, match="invalid sample"):
        heard([Said(Sentence(reading("x")), np.full(5000, np.nan, np.float32))])


def test_the_studio_says_what_is_missing(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    with pytest.raises(RunError, match="No model is chosen"):
        studio.load(" ")
    with pytest.raises(RunError, match="Load a model first"), studio.using():
        pass
    studio.unload()  # nothing to do is no error
    assert not studio.stop("nobody")


def test_a_child_that_fails_says_why() -> None:
    with pytest.raises(RunError, match="no-such-verb"):
        list(child_commands.run(["no-such-verb"]))


# --- readings ---


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    import json

    letters = "abcdefghijklmnopqrstuvwxyzəɨʼ’'čšžǧñṭṣäïāēōū.,!?;:-"
    folder = tmp_path_factory.mktemp("vocabulary")
    tokens = {name: number for number, name in enumerate(["[STOP]", "[UNK]", "[SPACE]", "[en]", "[START]", *letters])}
    model = {"type": "BPE", "unk_token": "[UNK]", "vocab": tokens, "merges": []}
    special = [{"id": tokens[name], "content": name, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for name in ("[STOP]", "[UNK]", "[SPACE]", "[en]", "[START]")]  # fmt: skip  # noqa: E501
    path = folder / "vocab.json"
    told = {"version": "1.0", "model": model, "added_tokens": special, "pre_tokenizer": {"type": "Whitespace"}}
    path.write_text(json.dumps(told), encoding="utf-8")
    return prepare_tokenizer(Vocabulary.load(path), "am")


def test_a_text_is_read_sentence_by_sentence(tokenizer: Tokenizer) -> None:
    seen = read("ሰላም። ዛሬ ነው።", tokenizer, "am")
    assert [one.written for one in seen.readings] == ["ሰላም።", "ዛሬ ነው።"]
    assert seen.longest > 3
    assert seen.error is None
    assert "2 sentences" in render.counter(seen, 1.5, "en")


def test_what_cannot_be_read_is_marked(tokenizer: Tokenizer) -> None:
    seen = read("ሰላም Ω።", tokenizer, "am")
    assert seen.unreadable == ("Ω",)
    assert seen.error
    assert "<mark>Ω</mark>" in render.counter(seen, None, "en")
    assert "<mark>Ω</mark>" in render.readings(seen, "en")


def test_a_model_whose_vocabulary_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    assert "not known" in str(look("ሰላም", str(tmp_path), "am").error)
    assert "No model is chosen" in str(look("ሰላም", "", "am").error)


def test_nothing_that_a_person_wrote_becomes_html() -> None:
    one = reading(NASTY)
    take = Take("speech", NASTY, NASTY, NASTY, {"seed": 1}, (Sentence(one, flags=(NASTY,)),), (NASTY,))
    shown = render.readings(Seen((one,)), "en") + render.take_facts(take, "en")
    assert "<img" not in shown


@pytest.mark.parametrize("kind", list(render.FLAGS))
def test_every_flag_is_said_in_plain_words_in_both_languages(kind: str) -> None:
    assert "12" in render.flag(f"{kind}: 12 codes", "en")
    assert render.flag(f"{kind}: 12 codes", "am") == t(render.FLAGS[kind], "am")


# --- the form, voices, models, comparisons ---


def test_the_tab_has_every_setting_once_and_asks_once_at_each_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks: list[PageContext] = []

    def build(page: PageContext) -> gr.Tab:
        clocks.append(page)
        return inference.build(page)

    monkeypatch.setattr(app, "TABS", (SimpleNamespace(build=build),))
    with inside.environment():
        blocks = app.build(tmp_path)
    speak = next(event for event in blocks.fns.values() if event.api_name == "speak")
    assert set(SpeechConfig.model_fields) <= set(speak.input_keyword_names)
    labels = [getattr(block, "label", None) for block in blocks.blocks.values()]
    for name, widget in build_form(SpeechConfig).items():
        if name not in {"model", "reference", "language"}:
            assert labels.count(widget.label) == 1, name
    (clock,) = [tab.clock for tab in clocks]
    assert len([event for event in blocks.fns.values() if (clock._id, "tick") in event.targets]) == 1


def test_a_voice_is_kept_once_and_no_sound_is_refused(tmp_path: Path) -> None:
    project, clip = Project(tmp_path / "p"), tmp_path / "እኔ ነኝ.wav"
    audio.save(clip, said("x").samples, OUTPUT_RATE)
    kept = reference_clips.keep(project, clip)
    assert kept == reference_clips.keep(project, clip)
    assert kept.name.startswith("እኔ_ነኝ-")
    assert reference_clips.choices(project, ["default"]) == [("default", "default"), (kept.name, str(kept))]
    (tmp_path / "no.wav").write_text("no", encoding="utf-8")
    with pytest.raises(AudioError):
        reference_clips.keep(project, tmp_path / "no.wav")


def test_a_voice_that_was_cut_off_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:100])
        full()

    project, clip = Project(tmp_path / "p"), tmp_path / "me.wav"
    audio.save(clip, said("x").samples, OUTPUT_RATE)
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        for copy in ("copyfile", "copy2"):
            patch.setattr(shutil, copy, half)
        with pytest.raises(StorageError, match="No space left"):
            reference_clips.keep(project, clip)
    assert reference_clips.kept(project) == []
    assert reference_clips.keep(project, clip).read_bytes() == clip.read_bytes()


def test_clips_of_the_dataset_that_are_long_enough_are_candidates(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.dataset / "wavs").mkdir(parents=True)
    with pytest.raises(DataError, match="no dataset"):
        reference_clips.candidates(project)
    for name, seconds in (("short", 1.0), ("good", 4.0)):
        audio.save(project.dataset / "wavs" / f"{name}.wav", said("x", seconds).samples, OUTPUT_RATE)
    rows = [HEADER, "wavs/short.wav|አጭር|s", "wavs/good.wav|ጥሩ|s"]
    (project.dataset / FILES["train"]).write_text("\n".join(rows), encoding="utf-8")
    assert [text for _, text in reference_clips.candidates(project)] == ["ጥሩ"]


@pytest.mark.parametrize(
    ("models", "text", "error"),
    [(["a"], "ሰላም", ConfigError), (["a", "b", "c", "d", "e"], "ሰላም", ConfigError), (["a", "b"], " # ", TextError)],
)
def test_a_comparison_that_cannot_be_is_refused(
    tmp_path: Path, models: list[str], text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        comparisons.prepared(Project(tmp_path), models, text)


def test_two_comparisons_of_one_moment_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    one, other = (comparisons.prepared(Project(tmp_path), ["a", "b"], text) for text in ("ሰላም።", "ዛሬ።"))
    assert [(folder / comparisons.SENTENCES).read_text(encoding="utf-8") for folder in (one, other)] == [
        "ሰላም።\n",
        "ዛሬ።\n",
    ]


def test_a_comparison_is_the_command_that_a_person_would_type(tmp_path: Path) -> None:
    config = SpeechConfig(model="x", seed=3, reference="me.wav")
    words = comparisons.words(["a", "b"], tmp_path, config, tmp_path)
    assert words[:5] == ["evaluate", "--reference", "me.wav", "--seed", "3"]
    assert words[5:8] == ["--checkpoints", "a", "b"]


@pytest.mark.slow
def test_the_model_of_the_open_project_is_chosen_first(tmp_path: Path) -> None:
    from utils.xtts import random_model

    random_model.build(tmp_path / ".models" / "v2.0.3")
    random_model.build(tmp_path / "p" / "ready")
    (tmp_path / "damaged" / "ready").mkdir(parents=True)
    found = list_models(tmp_path)
    assert [(one.name, one.kind) for one in found] == [("p", "ready"), ("v2.0.3", "base"), ("tiny", "base")]
    assert model_choices.preferred(found, tmp_path / "p") == str(tmp_path / "p" / "ready")


@pytest.mark.slow
def test_a_projects_own_model_takes_the_place_of_what_the_page_had_chosen(tmp_path: Path) -> None:
    from utils.xtts import random_model

    project = Project(tmp_path / "p")
    here = replace(room(tmp_path), studio=Studio(tmp_path))

    def chosen(model: str, seen: dict[str, Any]) -> str | None:
        sight = Sight("p", project, list_models(tmp_path), "en")
        found: str | None = model_state(here, sight, model, seen)["model"].get("value")
        return found

    first = chosen("", {})
    assert first == str(TINY_MODEL)
    own = str(random_model.build(project.ready))
    assert chosen(first, {"model": {"value": first}}) == own
    assert chosen(own, {"model": {"value": own}}) == own
    assert chosen(first, {"model": {"value": own}}) is None  # somebody went back to it
