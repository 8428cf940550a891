"""Speaking, in the order in which a person works: model, voice, text, settings, sound, takes, comparison, files."""

from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.runs.background_jobs import Errands
from utils.speech.models import list_models
from utils.ui.i18n import heading, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, changed_updates, show_errors
from utils.ui.tabs.inference import render
from utils.ui.tabs.inference.batch import batch_state, build_batch, build_subtitles
from utils.ui.tabs.inference.compare import build_compare, compare_state
from utils.ui.tabs.inference.context import Room, Sight
from utils.ui.tabs.inference.export import build_downloads, pack_state
from utils.ui.tabs.inference.model import build_model, model_state, nothing_open
from utils.ui.tabs.inference.model_session import Studio
from utils.ui.tabs.inference.speak import Player, build_buttons, build_status, tie_speak
from utils.ui.tabs.inference.takes import build_history, build_sound_and_sentences, listed, tie_history
from utils.ui.tabs.inference.text_input import build_settings, build_text
from utils.ui.tabs.inference.voice import build_voice


def build(page: PageContext) -> gr.Tab:
    """Lay out the tab."""
    tab = gr.Tab(t("inference.tab"), id="inference", elem_id="inference-tab")
    with tab:
        room = Room(page, Studio(page.output), Errands())
        gr.HTML(f"<style>{render.CSS}</style>")
        gr.Markdown(heading("inference.model"))
        widgets = build_model(room)
        gr.Markdown(heading("inference.voice"))
        widgets["reference"] = build_voice(room)
        gr.Markdown(heading("common.text"))
        text = build_text(room)
        gr.Markdown(heading("inference.voice_settings"))
        build_settings(room)
        player, history = build_speaking(room, text)
        widgets |= {"speak": player.speak, **history, **build_more(room, player)}
        tie_clock(room, widgets)
    return tab


def build_speaking(room: Room, text: gr.Textbox) -> tuple[Player, dict[str, Any]]:
    """Lay out buttons, progress, the chosen take and all takes; return what the clock fills too."""
    gr.Markdown(heading("inference.speak"))
    speak, stop, stream = build_buttons()
    status, chunk, sound = build_status()
    facts = gr.Column()
    gr.Markdown(heading("inference.takes"))
    history = gr.HTML(elem_id="takes-status")
    chosen, actions = build_history()
    with facts:
        view = build_sound_and_sentences(room, chosen, sound)
    player = Player(status, chunk, chosen, sound, speak, stop)
    tie_speak(room, player, text, stream)
    tie_history(view, text, actions, history)
    return player, {"chosen": chosen, **actions}


def build_more(room: Room, player: Player) -> dict[str, Any]:
    """Lay out what takes longer, unfolded when it is wanted; return what the clock fills."""
    with gr.Accordion(t("common.subtitles"), open=False):
        build_subtitles(room, player)
    widgets: dict[str, Any] = {}
    with gr.Accordion(t("inference.batch"), open=False):
        widgets |= build_batch(room)
    with gr.Accordion(t("inference.compare_models"), open=False):
        widgets |= build_compare(room)
    with gr.Accordion(t("inference.export"), open=False):
        widgets |= build_downloads(room)
    return widgets


def tie_clock(room: Room, widgets: dict[str, Any]) -> None:
    """Show on every tick what is new to a visitor: of models, memory, voices, takes and long works."""

    @show_errors
    def look(
        seen: dict[str, Any], project: str, model: str | None, take: str | None, comparison: str | None, language: str
    ) -> list[Any]:
        try:
            sight = Sight(project, room.open(project), list_models(room.page.output), language)
            made = {
                **model_state(room, sight, model or "", seen),
                **listed(sight.place, take, language),
                **batch_state(room, sight),
                **compare_state(room, sight, comparison),
                **pack_state(room, sight),
            }
        except AmharicTtsError as error:
            made = nothing_open(room, error, language)
        return changed_updates(seen, made, widgets)

    seen, page = gr.State({}), room.page
    chosen = [widgets[name] for name in ("model", "chosen", "comparisons")]
    gr.on(
        [*page.refresh, widgets["model"].change],
        look,
        [seen, page.project, *chosen, page.language],
        [seen, *widgets.values()],
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )
