"""Speak: the buttons, progress, audio while it is spoken, and the take that is saved."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from utils.media.rates import OUTPUT_RATE
from utils.speech import tasks
from utils.studio import reference_clips, takes
from utils.studio.paths import Project
from utils.studio.takes import TakeRecorder
from utils.ui import views
from utils.ui.i18n import labels, t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT
from utils.ui.settings_form import Values
from utils.ui.tabs.inference.shared import Context, config, shown_error, visitor
from utils.ui.views import message_box

SILENCE = "(...values) => { window.stopStream?.(); return values; }"  # also of the audio that was spoken before


def progress(recorder: TakeRecorder, seconds: float, loading: str) -> str:
    """Show how far a request is; before it starts, what it waits for."""
    if recorder.started is None:
        return views.timed_progress(t("inference.loading_model" if loading else "inference.waiting"), seconds)
    done, total = len(recorder.sentences), recorder.started.total
    sentence = t("inference.sentences_progress", step=done, total=total)
    return views.timed_progress(sentence, recorder.took, done, total)


# Long because it lists the controls of a request, and what each update changes.
def build_speak(context: Context, text: gr.Textbox) -> dict[str, Any]:
    """Lay out the buttons and the player; return the button, the name of the shown take, and its player."""
    with gr.Row():
        speak = gr.Button(t("inference.speak"), variant="primary", min_width=140, elem_id="speak")
        stop = gr.Button(t("inference.stop"), variant="stop", min_width=100, visible=False, elem_id="stop")
        stream = gr.Checkbox(elem_id="stream", elem_classes="more", container=False, **labels("inference.stream"))
    status = gr.HTML(elem_id="speak-status")
    play = Path(__file__).with_name("stream.js").read_text(encoding="utf-8").replace("RATE", str(OUTPUT_RATE))
    shown = views.element("audio", controls=True, hidden=True, aria_label="${label}")
    chunk = gr.HTML(
        "", label=t("inference.stream_player"), html_template=shown, js_on_load=play, elem_id="stream-player"
    )
    chosen = gr.State("")
    audio = gr.Audio(label=t("inference.result"), type="filepath", interactive=False, buttons=[], elem_id="take-sound")

    def say(  # the names of the fields in the API
        request: gr.Request,
        text: str,
        stream: object,
        model: str,
        reference: str,
        settings: Values,
        project: str,
    ) -> Iterator[tuple[Any, ...]]:
        values = {"model": model, "reference": reference, "settings": settings}
        yield from follow(context, visitor(request), project, text, values, is_streamed=bool(stream))

    def stop_speaking(request: gr.Request) -> None:
        context.session.cancel(visitor(request))

    inputs = [text, stream, *context.inputs.values(), context.page.project]
    outputs = [status, chunk, chosen, audio, speak, stop]
    spoken = context.page.on(
        speak.click,
        say,
        inputs,
        outputs,
        js=SILENCE,
        api_name="speak",
        show_progress="hidden",
        concurrency_limit=8,
        trigger_mode="once",
    )
    updates = [gr.update(visible=True), gr.update(visible=False), ""]
    # After the last update, not with it: gradio ignores clicks until the request has ended.
    spoken.then(lambda: updates, None, [speak, stop, chunk], **PRIVATE_EVENT)
    stop.click(stop_speaking, None, None, js=SILENCE, api_name="stop", **QUIET_EVENT)
    return {"speak": speak, "chosen": chosen, "audio": audio}


def _update(status: str, chunk: object = None, chosen: object = None, audio: object = None) -> tuple[Any, ...]:
    """Return updates for the outputs of a request; None leaves a widget alone."""
    optional = [gr.skip() if value is None else value for value in (chunk, chosen, audio)]
    return status, *optional, gr.update(visible=False), gr.update(visible=True)


def follow(
    context: Context, owner: str, project: str, text: str, values: dict[str, Any], *, is_streamed: bool
) -> Iterator[tuple[Any, ...]]:
    """Speak a text until it ends or is stopped, and save what was spoken as a take."""
    # The take that was shown before gives way to the new one.
    yield _update(views.progress("inference.waiting"), "", "", gr.update(value=None))
    try:
        settings, voices = config(values), reference_clips.project_voices(context.page.open(project))
        kind, function = ("stream", tasks.stream) if is_streamed else ("speech", tasks.speak_each)
        recorder = TakeRecorder(kind, text, settings)
        request = context.submit(lambda model: function(model, text, settings, voices), settings, owner)
        sent = 0
        for event in request.events():
            recorder.add(event)
            chunk = recorder.player_json() if recorder.chunks > sent else None
            sent = recorder.chunks
            yield _update(progress(recorder, request.seconds, context.session.loading), chunk)
        yield _save(context.page.open(project), recorder)  # it may be gone
    except Exception as error:  # noqa: BLE001  # shown
        yield _update(shown_error(error))


def _save(project: Project, recorder: TakeRecorder) -> tuple[Any, ...]:
    recorded = recorder.take()
    if recorded is None or not recorded.samples.size:
        return _update(message_box("warning", "inference.stopped_empty"))
    take = takes.save(project, *recorded)
    sentence = t("inference.spoken", seconds=f"{take.seconds:.1f}", took=f"{take.took:.1f}")
    if take.unfinished:
        sentence = t("inference.stopped_kept")
    path = takes.take_folder(project, take.name) / takes.AUDIO
    return _update(message_box("success", sentence), None, take.name, str(path))
