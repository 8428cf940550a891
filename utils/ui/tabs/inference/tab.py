"""The Inference tab: the text and its sound on the left, model and voice on the right, what takes longer below."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError
from utils.core.paths import OUTPUT, VOICES
from utils.runs.background_jobs import BackgroundJobs
from utils.speech.models import list_models
from utils.speech.session import Check, SpeechSession
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, Advanced, PageContext, changed_updates, show_errors
from utils.ui.tabs.inference.background import (
    batch_state,
    build_batch,
    build_compare,
    build_export,
    compare_state,
    export_state,
)
from utils.ui.tabs.inference.context import Context, Snapshot
from utils.ui.tabs.inference.model import build_model, build_voice, model_state, no_project_state
from utils.ui.tabs.inference.speak import bind_speak, build_speak, build_subtitles
from utils.ui.tabs.inference.takes import build_history, build_take, build_take_list, history_state
from utils.ui.tabs.inference.text import build_settings, build_text

if TYPE_CHECKING:
    from utils.speech.synthesizer import Synthesizer

CSS = Path(__file__).with_name("tab.css")
MAX_ACTIVE, MAX_WAITING = 8, 24  # requests of all visitors


def build(page: PageContext) -> gr.Tab:
    tab = gr.Tab(t("inference.tab"), id="inference", elem_id="inference-tab")
    with tab:
        context = Context(page, new_session(page.output), BackgroundJobs())
        gr.HTML(f"<style>{CSS.read_text(encoding='utf-8')}</style>")
        advanced = Advanced(page, "inference")
        with gr.Row():
            main = gr.Column(scale=3, min_width=340)
            with gr.Column(scale=2, min_width=300):
                widgets = build_model(context, advanced)
                widgets["reference"] = build_voice(context)
                context.build_fields("speed")
                advanced.place()
        more = advanced.section()
        with more:
            build_settings(context)
        with main:  # reads all settings
            text = build_text(context, advanced)
            chosen = build_take_list()
            speak = build_speak(chosen)
            bind_speak(context, speak, text)
            take = build_take(context, chosen, speak.audio)
            widgets |= {"speak": speak.speak, "chosen": chosen, **build_history(take, text)}
        with more:
            with gr.Accordion(t("common.subtitles"), open=False):
                build_subtitles(context, speak)
            with gr.Accordion(t("inference.batch"), open=False):
                widgets |= build_batch(context)
            with gr.Accordion(t("inference.compare_models"), open=False):
                widgets |= build_compare(context)
            with gr.Accordion(t("inference.export"), open=False):
                widgets |= build_export(context)
        advanced.connect()
        _bind_timer(context, widgets)
    return tab


def new_session(output: Path) -> SpeechSession:
    def load(config: SpeechConfig, check: Check) -> "Synthesizer":
        from utils.speech.synthesizer import Synthesizer

        voices = output / VOICES.relative_to(OUTPUT)
        return Synthesizer.load(
            config.model, config.device, config.precision, cache=voices, output=output, on_step=check
        )

    return SpeechSession(load, MAX_ACTIVE, MAX_WAITING)


def _bind_timer(context: Context, widgets: dict[str, Any]) -> None:
    """Update at each tick what is new to a visitor: models, memory, voices, takes and jobs."""

    @show_errors
    def refresh(
        seen: dict[str, Any], project: str, model: str | None, take: str | None, comparison: str | None, language: str
    ) -> list[Any]:
        try:
            snapshot = Snapshot(project, context.page.open(project), list_models(context.page.output), language)
            state = {
                **model_state(context, snapshot, model or "", seen),
                **history_state(snapshot.project, take, language),
                **batch_state(context, snapshot),
                **compare_state(context, snapshot, comparison),
                **export_state(context, snapshot),
            }
        except AmharicTtsError as error:
            state = no_project_state(context, error, language)
        return changed_updates(seen, state, widgets)

    seen, page = gr.State({}), context.page
    inputs = [seen, page.project, widgets["model"], widgets["chosen"], widgets["comparisons"], page.language]
    events = [*page.refresh, widgets["model"].change]
    gr.on(events, refresh, inputs, [seen, *widgets.values()], **RAW_INPUTS, **PRIVATE_EVENT)
