"""Speaking: the button, what is going on, and sound while it comes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr
from gradio.events import Dependency

from utils.config import SpeechConfig
from utils.core.paths import Project
from utils.media.rates import OUTPUT_RATE
from utils.runs.tasks import Work
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS
from utils.ui.tabs.inference import render, speech_tasks
from utils.ui.tabs.inference.context import Room, fault, news, settings
from utils.ui.tabs.inference.playback import Listener
from utils.ui.tabs.inference.speech_tasks import News
from utils.ui.views import message_box
from utils.workspace import takes
from utils.workspace.takes import Take

if TYPE_CHECKING:
    from gradio.blocks import Block

SPEAKING = "speak"

PLAY = """chunk => {
  const state = window.amharicStream ??= { context: null, at: 0, key: "", played: -1 };
  if (!chunk) return;
  const { key, first, parts } = JSON.parse(chunk);
  if (state.key !== key) {
    state.context?.close();
    Object.assign(state, { context: new AudioContext({ sampleRate: RATE }), at: 0, key, played: -1, seconds: 0 });
  }
  parts.forEach((part, place) => {
    if (first + place <= state.played) return;
    state.played = first + place;
    const bytes = Uint8Array.from(atob(part), letter => letter.charCodeAt(0));
    const whole = new Int16Array(bytes.buffer);
    const sound = state.context.createBuffer(1, whole.length, RATE);
    const room = sound.getChannelData(0);
    whole.forEach((value, index) => { room[index] = value / 32768; });
    const source = state.context.createBufferSource();
    source.buffer = sound;
    source.connect(state.context.destination);
    state.at = Math.max(state.at, state.context.currentTime + 0.05);
    source.start(state.at);
    state.at += sound.duration;
    state.seconds += sound.duration;
  });
}""".replace("RATE", str(OUTPUT_RATE))
HUSH = """() => { const state = window.amharicStream; state?.context?.close(); if (state) state.context = null; }"""


@dataclass(frozen=True)
class Player:
    """The widgets that speaking fills: what goes on, the newest sound, the takes, the whole."""

    status: gr.HTML
    chunk: gr.Textbox
    takes: gr.Radio
    sound: gr.Audio
    speak: gr.Button
    stop: gr.Button

    @property
    def outputs(self) -> list[Any]:
        """Return them in the order in which handlers fill them."""
        return [self.status, self.chunk, self.takes, self.sound, self.speak, self.stop]

    def free_after(self, spoken: Dependency) -> None:
        """Unlock speaking when it is over; not with its last news, for gradio ignores a click until then."""

        def free() -> list[Any]:
            return [gr.update(interactive=True), gr.update(interactive=False)]

        spoken.then(free, None, [self.speak, self.stop], **PRIVATE_EVENT)


def shown(status: str, chunk: object = None, found: object = None, sound: object = None) -> Any:  # noqa: ANN401  # what gradio takes
    """Return what a handler that speaks fills; what is None is left alone."""
    left = [gr.skip() if one is None else one for one in (chunk, found, sound)]
    return status, *left, gr.update(interactive=False), gr.update(interactive=True)


def build_buttons() -> tuple[gr.Button, gr.Button, gr.Checkbox]:
    """Lay out the buttons."""
    with gr.Row():
        speak = gr.Button(t("inference.speak"), variant="primary", min_width=140, elem_id="speak")
        stop = gr.Button(t("inference.stop"), variant="stop", min_width=100, interactive=False, elem_id="stop")
    stream = gr.Checkbox(
        label=t("inference.stream"),
        info=t("inference.stream_hint"),
        elem_id="stream",
    )
    return speak, stop, stream


def build_status() -> tuple[gr.HTML, gr.Textbox, gr.Audio]:
    """Lay out progress and player."""
    status = gr.HTML(elem_id="speak-status")
    chunk = gr.Textbox(
        visible="hidden",
        elem_id="stream-chunk",
        label=t("inference.stream_player"),
        info=t("inference.player_hint"),
    )
    sound = gr.Audio(
        label=t("inference.result"), type="filepath", interactive=False, elem_id="take-sound", buttons=["download"]
    )
    return status, chunk, sound


def tie_speak(room: Room, player: Player, text: gr.Textbox, stream: gr.Checkbox) -> None:
    """Speak the text on a click, and stop at once on another."""

    def speak(
        request: gr.Request, text: str | None, stream: object, page_language: str, project: str, **values: object
    ) -> Iterator[tuple[Any, ...]]:
        def begin(_: Project, config: SpeechConfig) -> tuple[Listener, Work[News]]:
            task = speech_tasks.stream if stream else speech_tasks.speak
            listener = Listener("stream" if stream else "speech", text or "", config)
            return listener, Work(lambda: task(room.studio, text or "", config))

        yield from followed(room, request, project, page_language, values, begin)

    given: dict[str, Block] = {**room.given, "text": text, "stream": stream}
    spoken = player.speak.click(
        speak,
        inputs_kwargs=given,
        outputs=player.outputs,
        api_name="speak",
        show_progress="hidden",
        concurrency_limit=8,
        trigger_mode="once",
        **RAW_INPUTS,
    )
    player.free_after(spoken)

    def stop_speaking(request: gr.Request) -> None:
        room.studio.stop(f"{visitor(request)} {SPEAKING}")

    player.stop.click(stop_speaking, None, None, js=HUSH, api_name="stop", **QUIET_EVENT)
    player.chunk.change(None, player.chunk, None, js=PLAY)


Begin = Callable[[Project, SpeechConfig], tuple[Listener, Work[News]]]


def followed(
    room: Room, request: gr.Request, project: str, language: str, values: dict[str, Any], begin: Begin
) -> Iterator[tuple[Any, ...]]:
    """Follow a speaking until its end or until it is stopped, and keep what was spoken as a take."""
    yield shown(render.working(t("inference.getting_ready", language)), "")
    try:
        place, config = room.open(project), settings(values)
        listener, work = begin(place, config)
        count = 0
        for item in news(room, visitor(request), SPEAKING, work):
            listener.hear(item)
            chunk = listener.chunk() if listener.count > count else None
            count = listener.count
            yield shown(listener.progress(work.seconds, language), chunk)
        yield kept(place, listener, language)
    except Exception as error:  # noqa: BLE001  # it is shown in its place
        yield shown(fault(error, language))


def kept(place: Project, listener: Listener, language: str) -> Any:  # noqa: ANN401  # what gradio takes
    """Keep what was spoken and show it."""
    made = listener.take()
    if made is None:
        sentence = t("inference.stopped_empty", language)
        return shown(message_box("warning", sentence))
    take = takes.keep(place, *made)
    sentence = t("inference.spoken", language, **figures(take))
    if take.unfinished:
        sentence = t("inference.stopped_kept", language)
    found = takes.newest(place)
    choices = gr.update(choices=[(render.take_title(one, language), one.name) for one in found], value=take.name)
    return shown(message_box("success", sentence), None, choices, str(sound_of(place, take)))


def figures(take: Take) -> dict[str, str]:
    """Return how long a take is and how long it took."""
    return {"seconds": f"{take.seconds:.1f}", "took": f"{take.took:.1f}"}


def sound_of(place: Project, take: Take) -> Path:
    """Return the file of a take."""
    return takes.folder_of(place, take.name) / takes.SOUND


def visitor(request: gr.Request | None) -> str:
    """Tell visitors apart."""
    return str(request.session_hash) if request is not None and request.session_hash else "program"
