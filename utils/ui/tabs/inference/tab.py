"""The Inference tab: the text and its sound on the left, model and voice on the right, what takes longer below."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError
from utils.speech.session import Check, SpeechSession
from utils.studio import takes
from utils.studio.loading import chosen_voice
from utils.studio.models import list_models
from utils.ui.i18n import t
from utils.ui.page import PageContext, build_advanced, connect_live
from utils.ui.settings_form import SettingsForm, editable_dropdown
from utils.ui.tabs.inference.background import build_compare, build_export, build_file
from utils.ui.tabs.inference.model import build_card, build_model, build_voice, picker_state
from utils.ui.tabs.inference.shared import GROUPS, Context
from utils.ui.tabs.inference.speak import build_speak
from utils.ui.tabs.inference.takes import build_takes, sound_of
from utils.ui.tabs.inference.text import build_text

if TYPE_CHECKING:
    from utils.speech.synthesizer import Synthesizer

PARTS = {
    "inference.files": build_file,
    "inference.compare_models": build_compare,
    "inference.export": build_export,
}
MAX_WAITING = 24  # requests of all visitors


def build(page: PageContext) -> gr.Tab:
    tab = gr.Tab(t("inference.tab"), id="inference", elem_id="inference-tab")
    with tab:
        with gr.Row(elem_classes="speech"):
            main = gr.Column(min_width=0)
            with gr.Column(min_width=0, elem_classes="rail"):
                card = gr.Column(min_width=0)
                model = editable_dropdown(SpeechConfig, "model", [], None)
                reference = editable_dropdown(SpeechConfig, "reference", [(t("inference.model_voice"), "")], "")
                form = SettingsForm(SpeechConfig, GROUPS, "speech")
                build_advanced(page, "inference")
                side = gr.Column()
        context = Context(page, model, reference, form)
        with card:
            build_card(context)
        with side:
            build_model(context)
            build_voice(context)
        with main:
            text = build_text(context)
            widgets = build_speak(context, text)
            build_takes(context, text, widgets["chosen"], widgets["audio"])
        build_more(context)
        connect_live_widgets(context, {"model": model, "reference": reference, **widgets})
    return tab


def build_more(context: Context) -> None:
    """Lay out what takes longer."""
    with gr.Accordion(t("inference.more"), open=False):
        for title, build_part in PARTS.items():
            with gr.Accordion(t(title), open=False):
                build_part(context)


def new_session(output: Path) -> SpeechSession:
    def load(config: SpeechConfig, check: Check) -> "Synthesizer":
        return chosen_voice(config, output, check).warmed_up()

    return SpeechSession(load, max_waiting=MAX_WAITING)


def connect_live_widgets(context: Context, widgets: dict[str, Any]) -> None:
    """Update at each tick what is new to a visitor: models, voices, and a take that somebody else made."""

    def state(seen: dict[str, Any], project: str, model: str) -> dict[str, Any]:
        try:
            opened = context.page.open(project)
            newest = next(iter(takes.names(opened)), "")
            shown = picker_state(context, opened, list_models(context.page.output), model, seen)
        except AmharicTtsError:  # shown in the header
            return {"speak": {"visible": False}, "chosen": "", "audio": {"value": None}}
        return {**shown, "chosen": newest, "audio": {"value": sound_of(opened, newest)}}

    page = context.page
    inputs = [page.project, context.model]
    connect_live(page, "inference", state, inputs, widgets, [context.model.change])
