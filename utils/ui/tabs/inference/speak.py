"""Speak: the buttons, progress, audio while it is spoken, and the take that is saved."""

import base64
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import gradio as gr
import numpy as np
from gradio.events import Dependency

from utils.config import SpeechConfig
from utils.core.paths import Project
from utils.media.encoding import to_pcm16
from utils.media.rates import OUTPUT_RATE
from utils.runs.background_jobs import JobProgress
from utils.speech import session
from utils.speech.session import SpeechRequest, Started
from utils.speech.types import Utterance
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS
from utils.ui.tabs.inference.context import Context, progress_html, settings, shown_error, uploaded_file, visitor
from utils.ui.tabs.inference.takes import audio_path, take_choices
from utils.ui.views import message_box
from utils.workspace import batch_speech, takes
from utils.workspace.takes import RecordedTake

RESENT_CHUNKS = 6  # the browser may skip an update, so each one repeats the newest chunks

PLAY = """chunk => {
  const state = window.amharicStream ??= { context: null, at: 0, key: "", played: -1 };
  if (!chunk) return;
  const { key, first, parts } = JSON.parse(chunk);
  if (state.key !== key) {
    state.context?.close();
    Object.assign(state, { context: new AudioContext({ sampleRate: RATE }), at: 0, key, played: -1, seconds: 0 });
  }
  parts.forEach((part, index) => {
    if (first + index <= state.played) return;
    state.played = first + index;
    const bytes = Uint8Array.from(atob(part), letter => letter.charCodeAt(0));
    const samples = new Int16Array(bytes.buffer);
    const buffer = state.context.createBuffer(1, samples.length, RATE);
    const channel = buffer.getChannelData(0);
    samples.forEach((value, position) => { channel[position] = value / 32768; });
    const source = state.context.createBufferSource();
    source.buffer = buffer;
    source.connect(state.context.destination);
    state.at = Math.max(state.at, state.context.currentTime + 0.05);
    source.start(state.at);
    state.at += buffer.duration;
    state.seconds += buffer.duration;
  });
}""".replace("RATE", str(OUTPUT_RATE))
SILENCE = """() => { const state = window.amharicStream; state?.context?.close(); if (state) state.context = null; }"""


@dataclass
class TakeRecorder:
    """Collects the events of one request: its progress, its newest audio, and the take that it becomes.

    Attributes:
        kind: The kind of the take.
        text: The text.
        config: The settings of speech.
        started: The first event.
        sentences: The sentences that are complete.
        subtitles: The take of subtitles, once it is complete.
        done: How many sentences or cues are complete.
        chunks: How many chunks of audio there were.
    """

    kind: str
    text: str
    config: SpeechConfig
    started: Started | None = None
    sentences: list[Utterance] = field(default_factory=list)
    subtitles: RecordedTake | None = None
    done: int = 0
    chunks: int = 0
    _newest: deque[str] = field(default_factory=lambda: deque(maxlen=RESENT_CHUNKS))
    _key: str = field(default_factory=lambda: str(time.time_ns()))  # tells the browser that this is another text
    _started_at: float = 0.0

    def add(self, event: object) -> None:
        """Add an event of the request."""
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
        """Return the newest chunks for the player in the browser."""
        if not self.chunks:
            return ""
        parts = list(self._newest)
        return json.dumps({"key": self._key, "first": self.chunks - len(parts), "parts": parts})

    def progress(self, seconds: float, stage: str, language: str) -> str:
        """Show how far it is; before it starts, the stage."""
        if self.started is None:
            return progress_html(f"{t(stage, language)} · {seconds:.0f} s")
        values = {"step": self.done, "total": self.started.total}
        sentence = t("inference.sentences_progress", language, **values)
        return progress_html(f"{sentence} · {seconds:.0f} s", self.done, self.started.total)

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
    """The widgets that a speaking request fills."""

    status: gr.HTML
    chunk: gr.Textbox
    takes: gr.Radio
    audio: gr.Audio
    speak: gr.Button
    stop: gr.Button

    @property
    def outputs(self) -> list[Any]:
        """Return them in the order of ``_update``."""
        return [self.status, self.chunk, self.takes, self.audio, self.speak, self.stop]

    def enable_after(self, event: Dependency) -> None:
        """Enable Speak after the last update, not with it: gradio ignores clicks until then."""
        event.then(
            lambda: [gr.update(interactive=True), gr.update(interactive=False)],
            None,
            [self.speak, self.stop],
            **PRIVATE_EVENT,
        )


def _update(status: str, chunk: object = None, choices: object = None, audio: object = None) -> tuple[Any, ...]:
    """Return updates for ``SpeakWidgets.outputs``; None leaves a widget alone."""
    optional = [gr.skip() if value is None else value for value in (chunk, choices, audio)]
    return status, *optional, gr.update(interactive=False), gr.update(interactive=True)


def build_speak() -> tuple[gr.Button, gr.Button, gr.Checkbox, gr.HTML, gr.Textbox, gr.Audio]:
    """Lay out the buttons, progress and player."""
    with gr.Row():
        speak = gr.Button(t("inference.speak"), variant="primary", min_width=140, elem_id="speak")
        stop = gr.Button(t("inference.stop"), variant="stop", min_width=100, interactive=False, elem_id="stop")
    stream = gr.Checkbox(
        label=t("inference.stream"),
        info=t("inference.stream_hint"),
        elem_id="stream",
    )
    status = gr.HTML(elem_id="speak-status")
    chunk = gr.Textbox(
        visible="hidden", elem_id="stream-chunk", label=t("inference.stream_player"), info=t("inference.player_hint")
    )
    audio = gr.Audio(
        label=t("inference.result"), type="filepath", interactive=False, elem_id="take-sound", buttons=["download"]
    )
    return speak, stop, stream, status, chunk, audio


def bind_speak(context: Context, widgets: SpeakWidgets, text: gr.Textbox, stream: gr.Checkbox) -> None:
    """Speak the text on a click, and stop on another."""

    def speak(
        request: gr.Request, text: str | None, stream: object, page_language: str, project: str, **values: object
    ) -> Iterator[tuple[Any, ...]]:
        def start(config: SpeechConfig) -> tuple[TakeRecorder, SpeechRequest[Any]]:
            function = session.stream if stream else session.speak
            recorder = TakeRecorder("stream" if stream else "speech", text or "", config)
            return recorder, context.submit(lambda model: function(model, text or "", config), config, visitor(request))

        yield from follow(context, project, page_language, values, start)

    spoken = widgets.speak.click(
        speak,
        inputs_kwargs={**context.inputs, "text": text, "stream": stream},
        outputs=widgets.outputs,
        api_name="speak",
        show_progress="hidden",
        concurrency_limit=8,
        trigger_mode="once",
        **RAW_INPUTS,
    )
    widgets.enable_after(spoken)

    def stop_speaking(request: gr.Request) -> None:
        context.session.cancel(visitor(request))

    widgets.stop.click(stop_speaking, None, None, js=SILENCE, api_name="stop", **QUIET_EVENT)
    widgets.chunk.change(None, widgets.chunk, None, js=PLAY)


def build_subtitles(context: Context, widgets: SpeakWidgets) -> None:
    """Lay out the file and the button for subtitles."""
    gr.Markdown(t("inference.subtitles_about"))
    types = [".srt", ".vtt", ".ass", ".ssa"]
    file = gr.File(label=t("common.subtitles"), file_types=types, file_count="single", height=120, elem_id="srt")
    button = gr.Button(t("inference.speak_subtitles"), elem_id="speak-subtitles")

    def speak_subtitles(
        request: gr.Request, file: object, page_language: str, project: str, **values: object
    ) -> Iterator[tuple[Any, ...]]:
        def start(config: SpeechConfig) -> tuple[TakeRecorder, SpeechRequest[Any]]:
            path = uploaded_file(context, file, t("inference.subtitles_missing", page_language))
            recorder = TakeRecorder("subtitles", path.stem, config)
            return recorder, context.submit(
                lambda model: batch_speech.dub(model, path, config), config, visitor(request)
            )

        yield from follow(context, project, page_language, values, start)

    spoken = button.click(
        speak_subtitles,
        inputs_kwargs={**context.inputs, "file": file},
        outputs=widgets.outputs,
        api_name="speak_subtitles",
        show_progress="hidden",
        concurrency_limit=8,
        **RAW_INPUTS,
    )
    widgets.enable_after(spoken)


def follow(
    context: Context,
    project: str,
    language: str,
    values: dict[str, Any],
    start: Callable[[SpeechConfig], tuple[TakeRecorder, SpeechRequest[Any]]],
) -> Iterator[tuple[Any, ...]]:
    """Follow a request until it ends or is stopped, and save what was spoken as a take."""
    yield _update(progress_html(t("inference.waiting", language)), "")
    try:
        place = context.project(project)
        recorder, request = start(settings(values))
        sent = 0
        for event in request.events():
            recorder.add(event)
            chunk = recorder.player_json() if recorder.chunks > sent else None
            sent = recorder.chunks
            yield _update(recorder.progress(request.seconds, stage(context), language), chunk)
        yield _save(place, recorder, language)
    except Exception as error:  # noqa: BLE001  # shown
        yield _update(shown_error(error, language))


def stage(context: Context) -> str:
    """Return what happens before a text is started."""
    return "inference.loading_model" if context.session.loading else "inference.waiting"


def _save(project: Project, recorder: TakeRecorder, language: str) -> tuple[Any, ...]:
    """Save what was spoken and show it."""
    recorded = recorder.take()
    if recorded is None or not recorded.samples.size:
        return _update(message_box("warning", t("inference.stopped_empty", language)))
    take = takes.save(project, *recorded)
    figures = {"seconds": f"{take.seconds:.1f}", "took": f"{take.took:.1f}"}
    sentence = t("inference.spoken", language, **figures)
    if take.unfinished:
        sentence = t("inference.stopped_kept", language)
    choices = gr.update(choices=take_choices(project, language), value=take.name)
    return _update(message_box("success", sentence), None, choices, str(audio_path(project, take)))
