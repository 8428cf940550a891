"""Takes: the selected one with its files and sentences, and the history."""

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from utils.config import SpeechConfig
from utils.core.errors import ConfigError, RunError
from utils.core.paths import Project
from utils.core.storage import write_atomically
from utils.media.encoding import AUDIO_FORMATS, Tags, to_pcm16, write_audio
from utils.media.rates import OUTPUT_RATE
from utils.speech import session
from utils.speech.captions import captions, srt, vtt
from utils.speech.types import Speech, Utterance, join, silence
from utils.ui.i18n import t, translate
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS, show_errors
from utils.ui.tabs.inference.context import Context, downloads, flag_text, progress_html, settings, shown_error, visitor
from utils.ui.views import cards, message_box, note
from utils.workspace import takes
from utils.workspace.takes import Take, TakeSentence

FORMATS = [".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a"]
CAPTIONS = {".srt": srt, ".vtt": vtt}
TITLE_LETTERS = 60
MAX_WARNINGS = 20


@dataclass(frozen=True)
class NewSentence:
    """A sentence of a take that was spoken again and may replace the old one."""

    take: str
    number: int
    spoken: tuple[Utterance, ...]


@dataclass(frozen=True)
class TakeWidgets:
    """The widgets that show the selected take."""

    context: Context
    chosen: gr.Radio
    audio: gr.Audio
    facts: gr.HTML
    sentences: gr.Radio
    files: gr.HTML
    new_sentence: gr.State

    @property
    def outputs(self) -> list[Any]:
        """Return what ``show`` fills, in its order."""
        return [self.audio, self.facts, self.sentences, self.files]

    @property
    def inputs(self) -> list[Any]:
        """Return what every handler reads: project, take, language."""
        return [self.context.page.project, self.chosen, self.context.page.language]

    def show(self, project: str, name: str | None, language: str) -> tuple[Any, ...]:
        """Show a take."""
        place = self.context.project(project)
        if not name:
            return None, note(t("inference.no_takes", language)), gr.update(choices=[], value=None), ""
        take = takes.load(place, name)
        choices = [(_sentence_title(number, one, language), number) for number, one in enumerate(take.pieces)]
        sentences = gr.update(choices=choices, value=None)
        return str(audio_path(place, take)), take_html(take, language), sentences, files_html(place, take)


def build_take(context: Context, chosen: gr.Radio, audio: gr.Audio) -> TakeWidgets:
    """Lay out the facts, files and sentences of the selected take."""
    facts = gr.HTML(elem_id="take-facts")
    with gr.Row():
        suffix = format_picker(".mp3", "format")
        convert = gr.Button(t("inference.convert"), min_width=140, elem_id="make-file")
    files = gr.HTML(elem_id="take-files")
    with gr.Accordion(t("inference.sentences"), open=True):
        sentences = gr.Radio(
            [], label=t("inference.take_sentences"), interactive=True, elem_id="sentences", elem_classes="long-list"
        )
        widgets = TakeWidgets(context, chosen, audio, facts, sentences, files, gr.State(None))
        _build_sentence(widgets)

    @show_errors
    def make_file(project: str, name: str | None, suffix: str, language: str) -> str:  # noqa: ARG001  # of its errors
        place = context.project(project)
        take = takes.load(place, name)
        convert_take(place, take, suffix)
        return files_html(place, take)

    inputs = [context.page.project, chosen, suffix, context.page.language]
    convert.click(make_file, inputs, files, api_name="make_file", **RAW_INPUTS)
    events: list[Any] = [chosen.change, context.page.language.change]
    gr.on(
        events,
        show_errors(widgets.show),
        widgets.inputs,
        widgets.outputs,
        api_name="show_take",
        **RAW_INPUTS,
        **QUIET_EVENT,
    )
    return widgets


def format_picker(value: str, name: str) -> gr.Dropdown:
    """Make the picker of an audio format."""
    info = t("inference.file_format_hint")
    return gr.Dropdown(
        FORMATS, value=value, label=t("inference.file_format"), info=info, interactive=True, elem_id=name, min_width=160
    )


def audio_path(project: Project, take: Take) -> Path:
    """Return the audio file of a take."""
    return takes.take_folder(project, take.name) / takes.AUDIO


def convert_take(project: Project, take: Take, suffix: str) -> None:
    """Write a take in another format beside it."""
    if suffix not in AUDIO_FORMATS:
        raise ConfigError(f"Unknown audio format {suffix}.", hint=f"Choose {', '.join(FORMATS)}.")
    if suffix != ".wav":
        path = audio_path(project, take).with_suffix(suffix)
        tags = Tags(take.text[:80], take.model, take.voice)
        write_audio(path, takes.load_audio(project, take), OUTPUT_RATE, tags=tags)


def files_html(project: Project, take: Take) -> str:
    """Offer the audio of a take, its subtitles, and its other formats; write subtitles that are missing."""
    folder = takes.take_folder(project, take.name)
    for suffix, render in CAPTIONS.items():
        path = folder / f"take{suffix}"
        if not path.exists() and any(piece.reading.written for piece in take.pieces):
            speech = Speech(tuple(takes.load_sentences(project, take)), silence(0), take.voice, 0)
            write_atomically(path, render(captions(speech)))
    paths = sorted(
        path for path in folder.iterdir() if path.stem == "take" and path.suffix in {*AUDIO_FORMATS, *CAPTIONS}
    )
    return downloads((path, path.suffix.removeprefix(".").upper()) for path in paths)


def take_html(take: Take, language: str) -> str:
    """Show how a take was made and what the guards found."""
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
    text, seed = _shorten(sentence.reading.written), f"{t('inference.seed', language)} {sentence.seed}"
    parts = [f"{number + 1} · {text}", f"{sentence.seconds:.1f} s", seed]
    if sentence.tries > 1:
        parts.append(t("inference.tries", language, count=sentence.tries))
    return " · ".join([*parts, *_warning_count(sentence.flags, language)])


def _take_title(take: Take, language: str) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(take.made))
    seed = f"{t('inference.seed', language)} {take.settings.get('seed', 0)}"
    parts = [when, _shorten(take.text), f"{take.seconds:.1f} s", seed]
    parts += [t("inference.stopped_early", language)] if take.unfinished else []
    return " · ".join([*parts, *_warning_count(take.flags, language)])


def _warning_count(flags: tuple[object, ...], language: str) -> list[str]:
    return [f"! {t('inference.warnings', language, count=len(flags))}"] if flags else []


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_LETTERS else f"{line[:TITLE_LETTERS]}…"


# --- the history ---


def build_history() -> tuple[gr.Radio, dict[str, gr.Button]]:
    """Lay out the list of takes and its buttons."""
    chosen = gr.Radio(
        [], label=t("inference.takes_newest_first"), interactive=True, elem_id="takes", elem_classes="long-list"
    )
    with gr.Row():
        buttons = {
            "restore": gr.Button(t("inference.reuse"), elem_id="restore-settings"),
            "delete": gr.Button(t("inference.delete_take"), elem_id="delete-take"),
            "undo": gr.Button(t("inference.undo_deletion"), interactive=False, elem_id="undo-delete"),
        }
    return chosen, buttons


def bind_history(widgets: TakeWidgets, text: gr.Textbox, buttons: dict[str, gr.Button], status: gr.HTML) -> None:
    """Delete, restore and reuse takes."""
    context, form = widgets.context, widgets.context.form

    def change(action: Callable[[Project, str | None], str], sentence: str) -> Callable[..., Any]:
        def changed(project: str, name: str | None, language: str) -> tuple[Any, Any]:
            place = context.project(project)
            changed_name = action(place, name)
            choices = take_choices(place, language)
            value = changed_name if changed_name != name else next((value for _, value in choices), None)
            return message_box("success", t(sentence, language)), gr.update(choices=choices, value=value)

        return show_errors(changed)

    delete = change(takes.delete, "inference.take_deleted")
    undo = change(lambda place, _: takes.restore(place), "inference.take_restored")
    outputs = [status, widgets.chosen]
    buttons["delete"].click(delete, widgets.inputs, outputs, api_name="delete_take", **RAW_INPUTS, **QUIET_EVENT)
    buttons["undo"].click(undo, widgets.inputs, outputs, api_name="undo_delete_take", **RAW_INPUTS, **QUIET_EVENT)

    @show_errors
    def reuse(project: str, name: str | None, language: str) -> list[Any]:
        take = takes.load(context.project(project), name)
        done = message_box("success", t("inference.take_reused", language))
        return [done, take.text, *(take.settings.get(field, gr.skip()) for field in form)]

    outputs = [status, text, *form.values()]
    buttons["restore"].click(reuse, widgets.inputs, outputs, api_name="restore_take", **RAW_INPUTS, **QUIET_EVENT)


def take_choices(project: Project, language: str) -> list[tuple[str, str]]:
    """List the takes as (label, name)."""
    return [(_take_title(take, language), take.name) for take in takes.newest(project)]


def history_state(project: Project, name: str | None, language: str) -> dict[str, Any]:
    """Return updates for the history; a selected take that still exists stays selected."""
    choices = take_choices(project, language)
    chosen: dict[str, Any] = {"choices": choices}
    if name not in [value for _, value in choices]:
        chosen["value"] = choices[0][1] if choices else None
    able = {"interactive": bool(choices)}
    return {"chosen": chosen, "restore": able, "delete": able, "undo": {"interactive": bool(takes.deleted(project))}}


# --- one sentence ---


def _build_sentence(widgets: TakeWidgets) -> None:
    """Lay out one sentence: listen, edit, speak again, replace."""
    with gr.Row():
        with gr.Column(min_width=280):
            old = gr.Audio(label=t("inference.this_sentence"), interactive=False, elem_id="sentence-sound", buttons=[])
            text = gr.Textbox(
                label=t("inference.sentence_text"),
                info=t("inference.sentence_text_hint"),
                lines=2,
                interactive=True,
                elem_id="sentence-text",
            )
        with gr.Column(min_width=280):
            new = gr.Audio(label=t("inference.new_version"), interactive=False, elem_id="again-sound", buttons=[])
            status = gr.HTML(elem_id="again-status")
    with gr.Row():
        again = gr.Button(t("inference.speak_again"), interactive=False, elem_id="again")
        accept = gr.Button(t("inference.replace_in_result"), interactive=False, elem_id="accept")
    reason = gr.HTML(elem_id="again-reason")
    _bind_choice(widgets, [old, text, new, status, again, accept, reason, widgets.new_sentence])
    _bind_again(widgets, again, text, [new, status, accept, widgets.new_sentence])
    _bind_accept(widgets, accept, status)


def _bind_choice(widgets: TakeWidgets, outputs: list[Any]) -> None:
    @show_errors
    def choose(project: str, name: str | None, number: int | None, language: str) -> tuple[Any, ...]:
        if number is None or not name:
            hint = note(t("inference.choose_sentence", language)) if name else ""
            return None, "", None, "", *[gr.update(interactive=False)] * 2, hint, None
        place = widgets.context.project(project)
        take = takes.load(place, name)
        sentence = takes.load_sentences(place, take)[_sentence_number(take, number)]
        can_repeat = take.kind != "subtitles"
        reason = "" if can_repeat else note(t("inference.subtitles_fixed", language))
        reason += message_box("warning", *(flag_text(flag, language) for flag in sentence.flags))
        buttons = [gr.update(interactive=can_repeat), gr.update(interactive=False)]
        return player_audio([sentence]), sentence.sentence.text, None, "", *buttons, reason, None

    inputs = [widgets.context.page.project, widgets.chosen, widgets.sentences, widgets.context.page.language]
    widgets.sentences.change(choose, inputs, outputs, **RAW_INPUTS, **PRIVATE_EVENT)


def _bind_again(widgets: TakeWidgets, button: gr.Button, text: gr.Textbox, outputs: list[Any]) -> None:
    """Speak one sentence again, with another seed and its text as edited."""
    context = widgets.context

    def speak_again(
        request: gr.Request,
        project: str,
        page_language: str,
        take: str | None,
        sentence: int | None,
        text: str | None,
        **values: object,
    ) -> Iterator[tuple[Any, ...]]:
        unchanged = (gr.update(interactive=False), None)
        try:
            old = takes.load(context.project(project), take)
            number = _sentence_number(old, sentence)
            config = with_new_seed(settings(values), old.pieces[number].seed)
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
            new = NewSentence(old.name, number, tuple(spoken))
            yield player_audio(spoken), status, gr.update(interactive=True), new
        except Exception as error:  # noqa: BLE001  # shown
            yield gr.skip(), shown_error(error, page_language), *unchanged

    button.click(
        speak_again,
        inputs_kwargs={**context.inputs, "take": widgets.chosen, "sentence": widgets.sentences, "text": text},
        outputs=outputs,
        api_name="speak_again",
        show_progress="hidden",
        concurrency_limit=8,
        **RAW_INPUTS,
    )


def _bind_accept(widgets: TakeWidgets, accept: gr.Button, status: gr.HTML) -> None:
    """Replace the sentence in the take."""

    @show_errors
    def replace_sentence(project: str, name: str | None, new: NewSentence | None, language: str) -> tuple[Any, ...]:
        if new is None or new.take != name:
            raise ConfigError("No sentence has been spoken again yet.", hint="Select one and speak it again first.")
        place = widgets.context.project(project)
        take = takes.replace_sentence(place, takes.load(place, name), new.number, new.spoken)
        for path in takes.take_folder(place, take.name).iterdir():  # made from the old audio
            if path.name not in (takes.AUDIO, takes.METADATA):
                path.unlink(missing_ok=True)
        done = message_box("success", t("inference.sentence_replaced", language))
        return done, gr.update(interactive=False), *widgets.show(project, take.name, language)

    inputs = [widgets.context.page.project, widgets.chosen, widgets.new_sentence, widgets.context.page.language]
    outputs = [status, accept, *widgets.outputs]
    accept.click(replace_sentence, inputs, outputs, api_visibility="private", **RAW_INPUTS)


def _sentence_number(take: Take, number: object) -> int:
    if not isinstance(number, int) or not 0 <= number < len(take.pieces):
        raise RunError("No sentence is selected.", hint="Select one in the list.")
    return number


def with_new_seed(config: SpeechConfig, old: int) -> SpeechConfig:
    """Return the settings with a random seed that differs from the old one."""
    seed = old
    while seed == old:
        seed = secrets.randbelow(2**32)
    return config.model_copy(update={"seed": seed})


def player_audio(sentences: list[Utterance]) -> tuple[int, Any]:
    """Return the audio of sentences as 16-bit integers, which the player does not normalise."""
    return OUTPUT_RATE, np.frombuffer(to_pcm16(join(sentences)), "<i2")
