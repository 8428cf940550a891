"""Takes: the selected one with its files and sentences, and the history."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from utils.core.errors import ConfigError, RunError
from utils.core.paths import Project
from utils.core.storage import write_atomically
from utils.media.encoding import AUDIO_FORMATS, Tags, to_pcm16, write_audio
from utils.media.rates import OUTPUT_RATE
from utils.speech import session
from utils.speech.subtitles import captions, srt, vtt
from utils.speech.types import Speech, Utterance, join, silence
from utils.ui.i18n import labels, t, translate
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS, show_errors
from utils.ui.tabs.inference.context import Context, downloads, flag_text, progress_html, settings, shown_error, visitor
from utils.ui.views import cards, message_box, note
from utils.workspace import takes
from utils.workspace.takes import Take, TakeSentence

FORMATS = [".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a"]
CAPTIONS = {".srt": srt, ".vtt": vtt}
MAX_TITLE = 60  # characters
MAX_WARNINGS = 20


NewSentence = tuple[str, int, tuple[Utterance, ...]]  # take, number of the sentence, and what was spoken again


@dataclass(frozen=True)
class TakeWidgets:
    """The widgets that show the selected take."""

    context: Context
    chosen: gr.Radio
    audio: gr.Audio
    box: gr.Column  # of everything below the audio; hidden without a take
    facts: gr.HTML
    sentences: gr.Radio
    files: gr.HTML

    @property
    def inputs(self) -> list[Any]:
        """What every handler reads: project, take, language."""
        return [self.context.page.project, self.chosen, self.context.page.language]

    @property
    def outputs(self) -> list[Any]:
        """What ``show`` fills, in its order."""
        return [self.audio, self.box, self.facts, self.sentences, self.files]

    def show(self, project: str, name: str | None, language: str) -> tuple[Any, ...]:
        """Show a take."""
        opened = self.context.page.open(project)
        if not name:
            return None, gr.update(visible=False), "", gr.update(choices=[], value=None), ""
        take = takes.load(opened, name)
        choices = [(_sentence_title(number, one, language), number) for number, one in enumerate(take.pieces)]
        sentences = gr.update(choices=choices, value=None)
        shown = take_html(take, language), sentences, files_html(opened, take)
        return str(audio_path(opened, take)), gr.update(visible=True), *shown


def build_take(context: Context, chosen: gr.Radio, audio: gr.Audio) -> TakeWidgets:
    with gr.Column(visible=False) as box:
        facts = gr.HTML(elem_id="take-facts")
        with gr.Row(elem_classes="beside"):
            suffix = format_picker(".mp3", "format")
            convert = gr.Button(t("inference.convert"), min_width=120, elem_id="make-file")
        files = gr.HTML(elem_id="take-files")
        with gr.Accordion(t("inference.sentences"), open=False, elem_id="take-sentences"):
            options: dict[str, Any] = {"elem_id": "sentences", "elem_classes": "long-list", "interactive": True}
            sentences = gr.Radio([], label=t("inference.take_sentences"), **options)
            widgets = TakeWidgets(context, chosen, audio, box, facts, sentences, files)
            _build_sentence(widgets)

    @show_errors
    def make_file(project: str, name: str | None, suffix: str, language: str) -> str:  # noqa: ARG001  # of its errors
        opened = context.page.open(project)
        take = takes.load(opened, name)
        if suffix not in AUDIO_FORMATS:
            raise ConfigError(f"Unknown audio format {suffix}.", hint=f"Choose {', '.join(FORMATS)}.")
        if suffix != ".wav":
            path, tags = audio_path(opened, take).with_suffix(suffix), Tags(take.text[:80], take.model, take.voice)
            write_audio(path, takes.load_audio(opened, take), OUTPUT_RATE, tags=tags)
        return files_html(opened, take)

    page, quiet = context.page, RAW_INPUTS | QUIET_EVENT
    convert.click(make_file, [page.project, chosen, suffix, page.language], files, api_name="make_file", **RAW_INPUTS)
    events: list[Any] = [chosen.change, page.language.change]
    gr.on(events, show_errors(widgets.show), widgets.inputs, widgets.outputs, api_name="show_take", **quiet)
    return widgets


def format_picker(value: str, elem_id: str) -> gr.Dropdown:
    texts = labels("inference.file_format")
    return gr.Dropdown(FORMATS, value=value, interactive=True, elem_id=elem_id, min_width=160, **texts)


def audio_path(project: Project, take: Take) -> Path:
    return takes.take_folder(project, take.name) / takes.AUDIO


def files_html(project: Project, take: Take) -> str:
    """Offer the audio of a take, its subtitles, and its other formats; write subtitles that are missing."""
    folder = takes.take_folder(project, take.name)
    for suffix, render in CAPTIONS.items():
        path = folder / f"take{suffix}"
        if not path.exists() and any(piece.reading.written for piece in take.pieces):
            speech = Speech(tuple(takes.load_sentences(project, take)), silence(0), take.voice, 0)
            write_atomically(path, render(captions(speech)))
    offered = {*AUDIO_FORMATS, *CAPTIONS}
    paths = sorted(path for path in folder.iterdir() if path.stem == "take" and path.suffix in offered)
    return downloads((path, path.suffix.removeprefix(".").upper()) for path in paths)


def take_html(take: Take, language: str) -> str:
    rows = {
        "inference.model": take.model,
        "inference.voice": take.voice,
        "inference.seed": str(take.settings.get("seed", 0)),
        "common.length": f"{take.seconds:.1f} s",
        "inference.real_time_factor": f"{take.real_time_factor:.2f}",
    }
    warnings = [f"{number}: {flag_text(flag, language)}" for number, flag in take.flags]
    hidden = [f"… + {len(warnings) - MAX_WARNINGS}"] if len(warnings) > MAX_WARNINGS else []
    html = cards(rows, language)
    if take.unfinished:
        html += message_box("warning", t("inference.stopped_early_note", language))
    html += message_box("warning", *warnings[:MAX_WARNINGS], *hidden)
    if not warnings and take.kind == "speech" and not take.unfinished:
        html += message_box("success", t("inference.checks_passed", language))
    return html + "".join(note(translate(text, language)) for text in take.notes)


def _sentence_title(number: int, sentence: TakeSentence, language: str) -> str:
    tries = t("inference.tries", language, count=sentence.tries) if sentence.tries > 1 else ""
    parts = f"{number + 1} · {_shorten(sentence.reading.written)}", tries
    return _title(*parts, sentence.seconds, sentence.seed, sentence.flags, language)


def _take_title(take: Take, language: str) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(take.made))
    stopped = t("inference.stopped_early", language) if take.unfinished else ""
    parts = f"{when} · {_shorten(take.text)}", stopped
    return _title(*parts, take.seconds, take.settings.get("seed", 0), take.flags, language)


def _title(text: str, remark: str, seconds: float, seed: object, flags: Sequence[object], language: str) -> str:
    warnings = f"! {t('inference.warnings', language, count=len(flags))}" if flags else ""
    parts = (text, f"{seconds:.1f} s", f"{t('inference.seed', language)} {seed}", remark, warnings)
    return " · ".join(part for part in parts if part)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_TITLE else f"{line[:MAX_TITLE]}…"


# --- the history ---


def build_take_list() -> gr.Radio:
    """Return the list of takes; it is rendered in the history, below the take."""
    options: dict[str, Any] = {"elem_id": "takes", "elem_classes": "long-list", "render": False}
    return gr.Radio([], label=t("inference.takes_newest_first"), interactive=True, **options)


def build_history(widgets: TakeWidgets, text: gr.Textbox) -> dict[str, Any]:
    """Lay out the list of takes, and the buttons that delete, restore and reuse them."""
    context, form = widgets.context, widgets.context.form
    with gr.Accordion(t("inference.takes"), open=False, visible=False, elem_id="history") as box:
        status = gr.HTML(elem_id="takes-status")
        widgets.chosen.render()  # type: ignore[no-untyped-call]  # gradio's
        with gr.Row():
            buttons = {
                "restore": gr.Button(t("inference.reuse"), elem_id="restore-settings", visible=False),
                "delete": gr.Button(t("inference.delete_take"), elem_id="delete-take", visible=False),
                "undo": gr.Button(t("inference.undo_deletion"), visible=False, elem_id="undo-delete"),
            }

    def change(action: Callable[[Project, str | None], str], sentence: str) -> Callable[..., Any]:
        def changed(project: str, name: str | None, language: str) -> tuple[Any, Any]:
            opened = context.page.open(project)
            changed_name = action(opened, name)
            choices = take_choices(opened, language)
            value = changed_name if changed_name != name else next((value for _, value in choices), None)
            return message_box("success", t(sentence, language)), gr.update(choices=choices, value=value)

        return show_errors(changed)

    @show_errors
    def reuse(project: str, name: str | None, language: str) -> list[Any]:
        take = takes.load(context.page.open(project), name)
        done = message_box("success", t("inference.take_reused", language))
        return [done, take.text, *(take.settings.get(field, gr.skip()) for field in form)]

    delete = change(takes.delete, "inference.take_deleted")
    undo = change(lambda opened, _: takes.restore(opened), "inference.take_restored")
    inputs, outputs, options = widgets.inputs, [status, widgets.chosen], RAW_INPUTS | QUIET_EVENT
    buttons["delete"].click(delete, inputs, outputs, api_name="delete_take", **options)
    buttons["undo"].click(undo, inputs, outputs, api_name="undo_delete_take", **options)
    buttons["restore"].click(reuse, inputs, [status, text, *form.values()], api_name="restore_take", **options)
    return {"history": box, **buttons}


def take_choices(project: Project, language: str) -> list[tuple[str, str]]:
    return [(_take_title(take, language), take.name) for take in takes.newest(project)]


def history_state(project: Project, name: str | None, language: str) -> dict[str, Any]:
    """Return updates for the history; a selected take that still exists stays selected."""
    choices = take_choices(project, language)
    chosen: dict[str, Any] = {"choices": choices}
    if name not in [value for _, value in choices]:
        chosen["value"] = choices[0][1] if choices else None
    able, can_undo = bool(choices), bool(takes.deleted(project))
    buttons = {"restore": {"visible": able}, "delete": {"visible": able}, "undo": {"visible": can_undo}}
    return {"history": {"visible": able or can_undo}, "chosen": chosen, **buttons}


# --- one sentence ---


def _build_sentence(widgets: TakeWidgets) -> None:
    """Lay out one sentence: listen, edit, speak again, replace."""
    with gr.Row():
        with gr.Column(min_width=280):
            old = gr.Audio(label=t("inference.this_sentence"), interactive=False, elem_id="sentence-sound", buttons=[])
            text = gr.Textbox(lines=2, interactive=True, elem_id="sentence-text", **labels("inference.sentence_text"))
        with gr.Column(min_width=280):
            new = gr.Audio(label=t("inference.new_version"), interactive=False, elem_id="again-sound", buttons=[])
            status = gr.HTML(elem_id="again-status")
    with gr.Row():
        again = gr.Button(t("inference.speak_again"), visible=False, elem_id="again")
        accept = gr.Button(t("inference.replace_in_result"), visible=False, elem_id="accept")
    reason, spoken = gr.HTML(elem_id="again-reason"), gr.State(None)
    context = widgets.context

    @show_errors
    def choose(project: str, name: str | None, number: int | None, language: str) -> tuple[Any, ...]:
        if number is None or not name:
            hint = note(t("inference.choose_sentence", language)) if name else ""
            return None, "", None, "", *[gr.update(visible=False)] * 2, hint, None
        opened = context.page.open(project)
        take = takes.load(opened, name)
        sentence = takes.load_sentences(opened, take)[_sentence_number(take, number)]
        can_repeat = take.kind != "subtitles"
        hint = "" if can_repeat else note(t("inference.subtitles_fixed", language))
        hint += message_box("warning", *(flag_text(flag, language) for flag in sentence.flags))
        buttons = [gr.update(visible=can_repeat), gr.update(visible=False)]
        return player_audio([sentence]), sentence.sentence.text, None, "", *buttons, hint, None

    @show_errors
    def replace_sentence(project: str, name: str | None, new: NewSentence | None, language: str) -> tuple[Any, ...]:
        if new is None or new[0] != name:
            raise ConfigError("No sentence has been spoken again yet.", hint="Select one and speak it again first.")
        opened = context.page.open(project)
        take = takes.replace_sentence(opened, takes.load(opened, name), *new[1:])
        for path in takes.take_folder(opened, take.name).iterdir():  # made from the old audio
            if path.name not in (takes.AUDIO, takes.METADATA):
                path.unlink(missing_ok=True)
        done = message_box("success", t("inference.sentence_replaced", language))
        return done, gr.update(visible=False), *widgets.show(project, take.name, language)

    project, chosen, language = widgets.inputs
    inputs = [project, chosen, widgets.sentences, language]
    shown = [old, text, new, status, again, accept, reason, spoken]
    widgets.sentences.change(choose, inputs, shown, **RAW_INPUTS, **PRIVATE_EVENT)
    again.click(
        _speak_again(context),
        inputs_kwargs={**context.inputs, "take": chosen, "sentence": widgets.sentences, "text": text},
        outputs=[new, status, accept, spoken],
        api_name="speak_again",
        show_progress="hidden",
        concurrency_limit=8,
        **RAW_INPUTS,
    )
    inputs, outputs = [project, chosen, spoken, language], [status, accept, *widgets.outputs]
    accept.click(replace_sentence, inputs, outputs, api_visibility="private", **RAW_INPUTS)


def _speak_again(context: Context) -> Callable[..., Iterator[tuple[Any, ...]]]:
    """Return the handler that speaks one sentence again, with another seed and its text as edited."""

    def speak_again(
        request: gr.Request,
        project: str,
        page_language: str,
        take: str | None,
        sentence: int | None,
        text: str | None,
        **values: object,
    ) -> Iterator[tuple[Any, ...]]:
        unchanged = (gr.update(visible=False), None)
        try:
            old = takes.load(context.page.open(project), take)
            number = _sentence_number(old, sentence)
            seed = (old.pieces[number].seed + 1 + secrets.randbelow(2**32 - 1)) % 2**32  # any other than before
            config = settings(values).model_copy(update={"seed": seed})
            speech = context.submit(lambda model: session.speak(model, text or "", config), config, visitor(request))
            total, spoken = 1, list[Utterance]()
            for event in speech.events():
                total = event.total if isinstance(event, session.Started) else total
                spoken += [event] if isinstance(event, Utterance) else []
                progress = progress_html(f"{t('inference.getting_ready', page_language)} · {speech.seconds:.0f} s")
                yield gr.skip(), progress, *unchanged
            if len(spoken) < total:
                yield None, message_box("warning", t("inference.stopped", page_language)), *unchanged
                return
            flags = [flag_text(flag, page_language) for one in spoken for flag in one.flags]
            status = message_box("warning", *flags) + note(f"{t('inference.seed', page_language)} {config.seed}")
            yield player_audio(spoken), status, gr.update(visible=True), (old.name, number, tuple(spoken))
        except Exception as error:  # noqa: BLE001  # shown
            yield gr.skip(), shown_error(error, page_language), *unchanged

    return speak_again


def _sentence_number(take: Take, number: object) -> int:
    if not isinstance(number, int) or not 0 <= number < len(take.pieces):
        raise RunError("No sentence is selected.", hint="Select one in the list.")
    return number


def player_audio(sentences: Sequence[Utterance]) -> tuple[int, Any]:
    """Return the audio of sentences as 16-bit integers, which the player does not normalise."""
    return OUTPUT_RATE, np.frombuffer(to_pcm16(join(sentences)), "<i2")
