"""Speak: the buttons, progress, audio while it is spoken, and the take that is saved."""

import base64
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from utils.config import SpeechConfig
from utils.core.paths import Project
from utils.media.encoding import to_pcm16
from utils.media.rates import OUTPUT_RATE
from utils.runs.background_jobs import JobProgress
from utils.speech import session
from utils.speech.session import SpeechRequest, Started
from utils.speech.types import Utterance
from utils.ui.i18n import labels, t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS
from utils.ui.tabs.inference.context import Context, progress_html, settings, shown_error, uploaded_file, visitor
from utils.ui.tabs.inference.takes import audio_path, take_choices
from utils.ui.views import message_box
from utils.workspace import batch_speech, takes
from utils.workspace.takes import RecordedTake

RESENT_CHUNKS = 6  # the browser may skip an update, so each one repeats the newest chunks

SILENCE = "() => { const state = window.amharicStream; state?.context?.close(); if (state) state.context = null; }"


@dataclass
class TakeRecorder:
    """Collects the events of one request: its progress, its newest audio, and the take that it becomes."""

    kind: str
    text: str
    config: SpeechConfig
    started: Started | None = None
    sentences: list[Utterance] = field(default_factory=list)  # complete ones
    subtitles: RecordedTake | None = None  # once they are complete
    done: int = 0  # sentences or cues
    chunks: int = 0  # of audio
    _newest: deque[str] = field(default_factory=lambda: deque(maxlen=RESENT_CHUNKS))
    _key: str = field(default_factory=lambda: str(time.time_ns()))  # tells the browser that this is another text
    _started_at: float = 0.0

    def add(self, event: object) -> None:
        match event:
            case Started():
                self.started, self._started_at = event, time.monotonic()
            case Utterance():
                self.sentences.append(event)
                self.done = len(self.sentences)
            case JobProgress():
                self.done = event.step
            case np.ndarray():
                if event.size:
                    self._newest.append(base64.b64encode(to_pcm16(event)).decode())
                    self.chunks += 1
            case RecordedTake():
                self.subtitles = event

    def player_json(self) -> str:
        if not self.chunks:
            return ""
        parts = list(self._newest)
        return json.dumps({"key": self._key, "first": self.chunks - len(parts), "parts": parts})

    def progress(self, seconds: float, stage: str, language: str) -> str:
        """Show how far it is; before it starts, the stage."""
        if self.started is None:
            return progress_html(f"{t(stage, language)} · {seconds:.0f} s")
        total = self.started.total
        sentence = t("inference.sentences_progress", language, step=self.done, total=total)
        return progress_html(f"{sentence} · {seconds:.0f} s", self.done, total)

    def take(self) -> RecordedTake | None:
        """Return the take; None when no sentence is complete."""
        took = time.monotonic() - self._started_at
        if self.subtitles:
            return self.subtitles._replace(take=replace(self.subtitles.take, took=took))
        if self.started is None or not self.sentences:
            return None
        return takes.new_take(self.kind, self.text, self.config, self.started, self.sentences, took)


@dataclass(frozen=True)
class SpeakWidgets:
    """The widgets of speaking, and the list of takes that it adds to."""

    speak: gr.Button
    stop: gr.Button
    stream: gr.Checkbox
    status: gr.HTML
    chunk: gr.Textbox
    audio: gr.Audio
    takes: gr.Radio

    @property
    def outputs(self) -> list[Any]:
        """What a request fills, in the order of ``_update``."""
        return [self.status, self.chunk, self.takes, self.audio, self.speak, self.stop]


def _update(status: str, chunk: object = None, choices: object = None, audio: object = None) -> tuple[Any, ...]:
    """Return updates for ``SpeakWidgets.outputs``; None leaves a widget alone."""
    optional = [gr.skip() if value is None else value for value in (chunk, choices, audio)]
    return status, *optional, gr.update(visible=False), gr.update(visible=True)


def build_speak(takes: gr.Radio) -> SpeakWidgets:
    with gr.Row():
        speak = gr.Button(t("inference.speak"), variant="primary", min_width=140, elem_id="speak")
        stop = gr.Button(t("inference.stop"), variant="stop", min_width=100, visible=False, elem_id="stop")
    stream = gr.Checkbox(elem_id="stream", **labels("inference.stream"))
    status = gr.HTML(elem_id="speak-status")
    texts = labels("inference.stream_player", "inference.player_hint")
    chunk = gr.Textbox(visible="hidden", elem_id="stream-chunk", **texts)
    audio = gr.Audio(
        label=t("inference.result"), type="filepath", interactive=False, elem_id="take-sound", buttons=["download"]
    )
    return SpeakWidgets(speak, stop, stream, status, chunk, audio, takes)


def bind_speak(context: Context, widgets: SpeakWidgets, text: gr.Textbox) -> None:
    def speak(
        request: gr.Request, text: str | None, stream: object, page_language: str, project: str, **values: object
    ) -> Iterator[tuple[Any, ...]]:
        def start(config: SpeechConfig) -> tuple[TakeRecorder, SpeechRequest[Any]]:
            function = session.stream if stream else session.speak
            recorder = TakeRecorder("stream" if stream else "speech", text or "", config)
            return recorder, context.submit(lambda model: function(model, text or "", config), config, visitor(request))

        yield from follow(context, project, page_language, values, start)

    def stop_speaking(request: gr.Request) -> None:
        context.session.cancel(visitor(request))

    inputs = {**context.inputs, "text": text, "stream": widgets.stream}
    _bind_request(widgets, widgets.speak, speak, inputs, "speak", trigger_mode="once")
    widgets.stop.click(stop_speaking, None, None, js=SILENCE, api_name="stop", **QUIET_EVENT)
    play = Path(__file__).with_name("stream.js").read_text(encoding="utf-8").replace("RATE", str(OUTPUT_RATE))
    widgets.chunk.change(None, widgets.chunk, None, js=play)


def build_subtitles(context: Context, widgets: SpeakWidgets) -> None:
    gr.Markdown(t("inference.subtitles_about"))
    types = [".srt", ".vtt", ".ass", ".ssa"]
    file = gr.File(label=t("common.subtitles"), file_types=types, file_count="single", height=120, elem_id="srt")
    button = gr.Button(t("inference.speak_subtitles"), elem_id="speak-subtitles")

    def speak_subtitles(
        request: gr.Request, file: object, page_language: str, project: str, **values: object
    ) -> Iterator[tuple[Any, ...]]:
        def start(config: SpeechConfig) -> tuple[TakeRecorder, SpeechRequest[Any]]:
            path = uploaded_file(context, file, t("inference.subtitles_missing", page_language))
            dub = context.submit(lambda model: batch_speech.dub(model, path, config), config, visitor(request))
            return TakeRecorder("subtitles", path.stem, config), dub

        yield from follow(context, project, page_language, values, start)

    _bind_request(widgets, button, speak_subtitles, {**context.inputs, "file": file}, "speak_subtitles")


def _bind_request(
    widgets: SpeakWidgets,
    button: gr.Button,
    handler: Callable[..., Iterator[tuple[Any, ...]]],
    inputs: dict[str, Any],
    name: str,
    **options: Any,  # noqa: ANN401  # of the event
) -> None:
    request = button.click(
        handler,
        inputs_kwargs=inputs,
        outputs=widgets.outputs,
        api_name=name,
        show_progress="hidden",
        concurrency_limit=8,
        **RAW_INPUTS,
        **options,
    )
    updates = [gr.update(visible=True), gr.update(visible=False)]
    # After the last update, not with it: gradio ignores clicks until the request has ended.
    request.then(lambda: updates, None, [widgets.speak, widgets.stop], **PRIVATE_EVENT)


def follow(
    context: Context,
    project: str,
    language: str,
    values: dict[str, Any],
    start: Callable[[SpeechConfig], tuple[TakeRecorder, SpeechRequest[Any]]],
) -> Iterator[tuple[Any, ...]]:
    """Follow a request until it ends or is stopped, and save what was spoken as a take."""
    # The take that was shown before gives way to the new one.
    nothing = gr.update(value=None)
    yield _update(progress_html(t("inference.waiting", language)), "", nothing, nothing)
    try:
        opened = context.page.open(project)
        recorder, request = start(settings(values))
        sent = 0
        for event in request.events():
            recorder.add(event)
            chunk = recorder.player_json() if recorder.chunks > sent else None
            sent = recorder.chunks
            stage = "inference.loading_model" if context.session.loading else "inference.waiting"
            yield _update(recorder.progress(request.seconds, stage, language), chunk)
        yield _save(opened, recorder, language)
    except Exception as error:  # noqa: BLE001  # shown
        yield _update(shown_error(error, language))


def _save(project: Project, recorder: TakeRecorder, language: str) -> tuple[Any, ...]:
    recorded = recorder.take()
    if recorded is None or not recorded.samples.size:
        return _update(message_box("warning", t("inference.stopped_empty", language)))
    take = takes.save(project, *recorded)
    sentence = t("inference.spoken", language, seconds=f"{take.seconds:.1f}", took=f"{take.took:.1f}")
    if take.unfinished:
        sentence = t("inference.stopped_kept", language)
    choices = gr.update(choices=take_choices(project, language), value=take.name)
    return _update(message_box("success", sentence), None, choices, str(audio_path(project, take)))
