"""Takes: the selected one with its files and sentences, and the history."""

import time
from typing import Any

import gradio as gr

from utils.core import wording
from utils.core.wording import describe
from utils.media.encoding import AUDIO_FORMATS, Tags, write_audio
from utils.media.rates import OUTPUT_RATE
from utils.speech.facts import WordsFound
from utils.studio import takes
from utils.studio.facts import UsageError
from utils.studio.paths import Project
from utils.studio.takes import NewSentence, Take, TakeSentence
from utils.ui import views
from utils.ui.html import html
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, Action, Panel, PanelRequest, Updates
from utils.ui.run_panel import working
from utils.ui.tabs.inference.shared import Context, config
from utils.ui.views import cards, message_box, note

FORMATS = [".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a"]
# The browser fetches a file as soon as it was made.
DOWNLOAD = """let fetched = "";
element.refreshed = () => {
  const link = element.querySelector("a[data-made]");
  if (link && link.href !== fetched) { fetched = link.href; link.click(); }
};"""
MAX_TITLE = 60  # characters
MAX_SENTENCES = 50  # shown at a time


# Long because it lists what can be done with a take, and what that changes.
def build_takes(context: Context, text: gr.Textbox, chosen: gr.State, player: gr.Audio) -> None:
    """Lay out the selected take and the history, and show the sound of the take in the player."""

    def show(project: Project, name: str, said: str = "") -> Updates:
        """Select a take, or the newest if there is none of this name."""
        names = takes.names(project)
        selected = name if name in names else next(iter(names), "")
        fresh = {"sentence": "", "first": "", "made": "", "said": said}
        return {chosen: selected, player: sound_of(project, selected), **fresh}

    def delete(request: PanelRequest) -> Updates:
        return show(request.project, takes.delete(request.project, request.text("take")), "inference.take_deleted")

    def load_settings(project: str, name: str) -> tuple[Any, ...]:
        take = takes.load(context.page.open(project), name.partition(" ")[0])
        known = {name: value for name, value in take.settings.items() if name in context.form.fields}
        settings = context.form.value(config({})) | known
        return take.text, take.settings.get("model", ""), take.settings.get("reference", ""), settings

    actions: dict[str, Action] = {
        "choose": lambda request: show(request.project, request.text("take")),
        "convert": convert,
        "reuse": lambda request: {reused: f"{request.text('take')} {time.time()}", "said": "inference.take_reused"},
        "delete": delete,
        "undo": lambda request: show(request.project, takes.restore(request.project), "inference.take_restored"),
        **sentence_actions(context, player),
    }
    reused = gr.State("")  # take and time
    inputs, outputs = [context.page.project, reused], [text, *context.inputs.values()]
    context.page.on(reused.change, load_settings, inputs, outputs, **PRIVATE_EVENT)

    reads = {"take": chosen, **context.inputs}
    Panel(context.page, "takes", takes_html, actions, [chosen, player, reused], reads, DOWNLOAD)


def sound_of(project: Project, name: str) -> str | None:
    """Return the path of the sound of a take, if there is one of this name."""
    return str(takes.take_folder(project, name) / takes.AUDIO) if name in takes.names(project) else None


def convert(request: PanelRequest) -> Updates:
    """Write the audio of a take in another format, which the browser then fetches."""
    take, suffix = takes.load(request.project, request.text("take")), request.text("format")
    if suffix not in AUDIO_FORMATS:
        raise UsageError("unknown_format", suffix, ", ".join(FORMATS))
    path = (takes.take_folder(request.project, take.name) / takes.AUDIO).with_suffix(suffix)
    if suffix != ".wav":
        tags = Tags(take.text[:80], take.model, take.voice)
        write_audio(path, takes.load_audio(request.project, take), OUTPUT_RATE, tags=tags)
    return {"made": suffix}


def format_field(chosen: str) -> str:
    choices = [(suffix[1:].upper(), suffix) for suffix in FORMATS]
    return views.select_field("format", "inference.file_format", choices, chosen=chosen)


def takes_html(request: PanelRequest) -> str:
    return take_html(request) + history_html(request)


def take_html(request: PanelRequest) -> str:
    """Show the selected take: facts, files, and its sentences."""
    name = request.text("take")
    known = takes.names(request.project)
    if known and not name:  # nothing is chosen while the program speaks
        return ""
    if name not in known:
        return html("page.html", "empty", "waiting", "inference.no_take", "inference.no_take_text")
    take = takes.load(request.project, name)
    first = int(request.text("first")) if request.text("first").isdecimal() else 0
    first = first if first < len(take.pieces) else 0  # it is that of a longer take
    turns = {"data.previous_page": first - MAX_SENTENCES, "data.next_page": first + MAX_SENTENCES}
    pages = [
        views.button("sentence", key, first=start) for key, start in turns.items() if 0 <= start < len(take.pieces)
    ]
    return facts_html(take) + _downloads(request, take) + _sentences(request, take, first) + views.row(*pages)


def _sentences(request: PanelRequest, take: Take, first: int) -> str:
    """List sentences of a take, with an editor in the one that is open."""
    opened, can_edit = request.text("sentence"), take.kind != "subtitles"
    shown, editors = [], {}
    for number, piece in [*enumerate(take.pieces)][first : first + MAX_SENTENCES]:
        facts = _facts("", piece.tries, piece.seconds, piece.seed)
        shown.append((number, piece, facts, [flag.text() for flag in piece.flags]))
        if can_edit and str(number) == opened:
            editors[number] = _editor(request, take, number, piece)
    sound = views.file_url(takes.take_folder(request.project, take.name) / takes.AUDIO)
    return html("speech.html", "sentences", take.name, shown, sound, opened, editors, can_edit)


def _downloads(request: PanelRequest, take: Take) -> str:
    """Offer the files of a take in one menu; those in other formats are made when they are asked for."""
    files = {path: views.file_url(path) for path in takes.files(request.project, take)}
    known = {path.suffix for path in files}
    missing = (
        views.button("convert", suffix[1:].upper(), "quiet", take=take.name, format=suffix)
        for suffix in FORMATS
        if suffix not in known
    )
    return html("speech.html", "downloads", files, "".join(missing), request.text("made"))


def facts_html(take: Take) -> str:
    rows = {
        "inference.model": take.model,
        "inference.voice": take.voice if take.settings.get("reference") else t("inference.model_voice"),
        "inference.seed": str(take.settings.get("seed", 0)),
        "common.length": wording.time(take.seconds),
        "inference.real_time_factor": f"{take.real_time_factor:.2f}",
    }
    shown = cards(rows)
    if take.unfinished:
        shown += message_box("warning", "inference.stopped_early_note")
    if not take.flags and take.kind == "speech" and not take.unfinished:
        shown += message_box("success", "inference.checks_passed", aloud=False)
    checked = WordsFound.of(take.pieces)
    notes = [*take.notes, checked] if checked.total else take.notes
    return shown + "".join(note(describe(each)) for each in notes)


def history_html(request: PanelRequest) -> str:
    """Show the list of takes, newest first, and what can be done with the selected one."""
    listed = takes.newest(request.project)
    can_undo, selected = bool(takes.deleted(request.project)), request.text("take")
    if not listed and not can_undo:
        return ""
    choices = [(_take_title(take), take.name) for take in listed]
    size = min(8, len(choices) + 1)
    chooser = views.select_field(
        "take", "inference.takes_newest_first", choices, chosen=selected, size=size, data_act="choose"
    )
    buttons = ""
    if any(take.name == selected for take in listed):
        buttons += views.button("reuse", "inference.reuse", take=selected)
        buttons += views.button("delete", "inference.delete_take", take=selected)
    if can_undo:
        buttons += views.button("undo", "inference.undo_deletion")
    said = views.element("div", message_box("success", request.text("said")), id="takes-status")
    return said + views.details("inference.takes", (chooser if listed else "") + views.row(buttons), "history")


def _take_title(take: Take) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(take.made))
    stopped = t("inference.stopped_early") if take.unfinished else ""
    facts = _facts(stopped, 1, take.seconds, take.settings.get("seed", 0))
    warnings = f"! {t('inference.warnings', count=len(take.flags))}" if take.flags else ""
    return views.joined(when, _shorten(take.text), facts, warnings)


def _facts(remark: str, tries: int, seconds: float, seed: object) -> str:
    tried = t("inference.tries", count=tries) if tries > 1 else ""
    return views.joined(wording.time(seconds), f"{t('inference.seed')} {seed}", remark, tried)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_TITLE else f"{line[:MAX_TITLE]}…"


# --- one sentence ---


def sentence_actions(context: Context, player: gr.Audio) -> dict[str, Action]:
    """Return the actions that speak a sentence again and replace it."""

    def again(request: PanelRequest) -> Updates:
        take, text = takes.load(request.project, request.text("take")), request.text("words")
        number, settings = _sentence_number(take, request.text("sentence")), config(request.fields)
        return {"_new": NewSentence(context.session, request.project, take, number, text, settings)}

    def accept(request: PanelRequest) -> Updates:
        new = _new_sentence(request, request.text("take"), request.text("sentence"))
        if new is None or new.file is None:
            raise UsageError("no_new_sentence")
        _replace(request.project, new)
        return {player: sound_of(request.project, new.take), "said": "inference.sentence_replaced"}

    return {"again": again, "stop": stop_sentence, "accept": accept}


def stop_sentence(request: PanelRequest) -> None:
    if isinstance(new := request.fields.get("_new"), NewSentence):
        new.request.cancel()


def _replace(project: Project, new: NewSentence) -> None:
    """Put a sentence into its take, and remove the files that were made from the old audio."""
    take = takes.replace_sentence(project, takes.load(project, new.take), new.number, new.spoken)
    for path in takes.take_folder(project, take.name).iterdir():
        if path.name not in (takes.AUDIO, takes.METADATA):
            path.unlink(missing_ok=True)


def _editor(request: PanelRequest, take: Take, number: int, piece: TakeSentence) -> str:
    """Show the text of a sentence to edit, and the newest attempt at it."""
    written, of = piece.reading.written, f"{take.name} {number}"
    text = views.element("textarea", text=written, value=written, data_of=of, name="words", rows=2)
    shown = views.field("inference.sentence_text", text, "inference.sentence_text_hint")
    shown += views.row(views.button("again", "inference.speak_again", take=take.name, sentence=number))
    new = _new_sentence(request, take.name, number)
    return shown + (_attempt(new, piece) if new else "")


def _attempt(new: NewSentence, piece: TakeSentence) -> str:
    """Show how far a new version of a sentence is; once it is spoken, the way to accept it."""
    if new.is_running:
        return working(t("inference.getting_ready"), new.request.seconds)
    if new.error:
        return views.error_box(new.error)
    if new.file is None or new.spoken[0].sentence.seed == piece.seed:  # stopped, or replaced already
        return ""
    flags = [flag.text() for one in new.spoken for flag in one.flags]
    player = views.hear(new.file, "inference.new_version", "inference.new_version")
    accept = views.button("accept", "inference.replace_in_result", "primary", take=new.take)
    return message_box("warning", *flags) + views.row(player, accept)


def _new_sentence(request: PanelRequest, take: str, number: object) -> NewSentence | None:
    """Return the sentence that is spoken again, if it is this one."""
    new = request.fields.get("_new")
    return new if isinstance(new, NewSentence) and (new.take, str(new.number)) == (take, str(number)) else None


def _sentence_number(take: Take, number: str) -> int:
    if not number.isdecimal() or int(number) >= len(take.pieces):
        raise UsageError("no_sentence")
    return int(number)
