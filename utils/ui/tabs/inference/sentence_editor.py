"""One sentence of the chosen take: to be heard, changed, spoken again and put into the whole."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gradio as gr
import numpy as np

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError, ConfigError, RunError
from utils.media.encoding import to_pcm16
from utils.media.rates import OUTPUT_RATE
from utils.runs.tasks import Work
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS
from utils.ui.tabs.inference import render, speech_tasks
from utils.ui.tabs.inference.context import fault, news, settings
from utils.ui.tabs.inference.playback import Listener
from utils.ui.tabs.inference.speak import SPEAKING, visitor
from utils.ui.tabs.inference.take_render import TakeView, forget_files
from utils.ui.views import message_box, note
from utils.workspace import takes
from utils.workspace.takes import Said, Take

if TYPE_CHECKING:
    from gradio.blocks import Block


@dataclass(frozen=True)
class Redone:
    """Another sound for a sentence of a take, which may take its place."""

    take: str
    number: int
    said: tuple[Said, ...]


def build_again(view: TakeView) -> None:
    """Lay out one sentence: listen, edit, speak again, take over."""
    room = view.room
    with gr.Row():
        with gr.Column(min_width=280):
            old = gr.Audio(label=t("inference.this_sentence"), interactive=False, elem_id="sentence-sound", buttons=[])
            words = gr.Textbox(
                label=t("inference.sentence_text"),
                info=t("inference.sentence_text_hint"),
                lines=2,
                interactive=True,
                elem_id="sentence-text",
            )
        with gr.Column(min_width=280):
            new = gr.Audio(label=t("inference.new_version"), interactive=False, elem_id="again-sound", buttons=[])
            state = gr.HTML(elem_id="again-status")
    with gr.Row():
        again = gr.Button(t("inference.speak_again"), interactive=False, elem_id="again")
        accept = gr.Button(t("inference.replace_in_result"), interactive=False, elem_id="accept")
    reason = gr.HTML(elem_id="again-reason")
    _tie_choice(view, [old, words, new, state, again, accept, reason, view.redone])
    _tie_again(view, again, words, [new, state, accept, view.redone])

    def take_over(project: str, name: str | None, redone: Redone | None, language: str) -> tuple[Any, ...]:
        try:
            if redone is None or redone.take != name:
                raise ConfigError("No sentence was spoken again.", hint="Choose one and speak it again first.")
            place = room.open(project)
            forget_files(place, take := takes.replaced(place, takes.find(place, name), redone.number, redone.said))
        except AmharicTtsError as error:
            return fault(error, language), gr.skip(), *[gr.skip()] * 4
        done = message_box("success", t("inference.sentence_replaced", language))
        return done, gr.update(interactive=False), *view.show(project, take.name, language)

    accept.click(
        take_over,
        [room.page.project, view.chosen, view.redone, room.page.language],
        [state, accept, *view.outputs],
        api_visibility="private",
        **RAW_INPUTS,
    )


def _tie_choice(view: TakeView, outputs: list[Any]) -> None:
    def choose(project: str, name: str | None, number: int | None, language: str) -> tuple[Any, ...]:
        empty = (None, "", None, "", *[gr.update(interactive=False)] * 2)
        if number is None or not name:
            return *empty, note(t("inference.choose_sentence", language)) if name else "", None
        try:
            place = view.room.open(project)
            take = takes.find(place, name)
            if not 0 <= int(number) < len(take.pieces):
                raise RunError("This sentence is not there any longer.", hint="Choose another one.")
            one = takes.sounds(place, take)[int(number)]
        except AmharicTtsError as error:
            return *empty, fault(error, language), None
        able = take.kind != "subtitles"
        why = "" if able else note(t("inference.subtitles_fixed", language))
        why += message_box("warning", *(render.flag(text, language) for text in one.sentence.flags))
        text = one.sentence.reading.written
        button = gr.update(interactive=able)
        return heard([one]), text, None, "", button, gr.update(interactive=False), why, None

    view.sentences.change(
        choose,
        [view.room.page.project, view.chosen, view.sentences, view.room.page.language],
        outputs,
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )


def _tie_again(view: TakeView, button: gr.Button, words: gr.Textbox, outputs: list[Any]) -> None:
    """Speak one sentence again: with another seed, and with the words as they stand now."""
    room = view.room

    def speak_again(
        request: gr.Request,
        project: str,
        page_language: str,
        take: str | None,
        sentence: int | None,
        text: str | None,
        **values: object,
    ) -> Iterator[tuple[Any, ...]]:
        quiet = (gr.skip(), gr.update(interactive=False), None)
        try:
            place = room.open(project)
            known = takes.find(place, take)
            number = _number(known, sentence)
            config = next_config(known, number, settings(values))
            listener = Listener("speech", text or "", config)
            work = Work(lambda: speech_tasks.speak(room.studio, text or "", config))
            for item in news(room, visitor(request), SPEAKING, work):
                listener.hear(item)
                progress = listener.progress(work.seconds, page_language)
                yield quiet[0], progress, *quiet[1:]
            if work.stopped and (listener.begun is None or len(listener.told) < listener.begun.total):
                yield None, message_box("warning", t("inference.stopped", page_language)), *quiet[1:]
                return
            redone = Redone(known.name, number, tuple(listener.told))
            yield heard(listener.told), doubts(listener.told, page_language), gr.update(interactive=True), redone
        except Exception as error:  # noqa: BLE001  # it is shown in its place
            yield gr.skip(), fault(error, page_language), *quiet[1:]

    given: dict[str, Block] = {**room.given, "take": view.chosen, "sentence": view.sentences, "text": words}
    button.click(
        speak_again,
        inputs_kwargs=given,
        outputs=outputs,
        api_name="speak_again",
        show_progress="hidden",
        concurrency_limit=8,
        **RAW_INPUTS,
    )


def _number(take: Take, sentence: object) -> int:
    if not isinstance(sentence, int) or not 0 <= sentence < len(take.pieces):
        raise ConfigError("No sentence is chosen.", hint="Choose one in the list.")
    return sentence


def next_config(take: Take, number: int, config: SpeechConfig) -> SpeechConfig:
    """Return the settings with a seed that this sentence has not had, each time another one."""
    seed = take.pieces[number].seed
    while seed == take.pieces[number].seed:
        seed = secrets.randbelow(2**32)
    return config.model_copy(update={"seed": seed})


def doubts(said: list[Said], language: str) -> str:
    """Say what the guards found in a new sentence."""
    found = [render.flag(text, language) for one in said for text in one.sentence.flags]
    seed = f"{t('inference.seed', language)} {said[0].sentence.seed}" if said else ""
    return message_box("warning", *found) + note(seed)


def heard(said: list[Said]) -> tuple[int, Any]:
    """Return the sound of sentences as a player takes it: whole numbers, which it does not make louder."""
    _, samples = takes.joined(said)
    return OUTPUT_RATE, np.frombuffer(to_pcm16(samples), "<i2")
