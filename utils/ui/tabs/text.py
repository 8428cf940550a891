"""What becomes of a text before the model reads it."""

import gradio as gr

from utils.ui.i18n import heading, t
from utils.ui.page import PageContext
from utils.ui.tabs.pronunciation import build_explanation


def build(page: PageContext) -> gr.Tab:
    """Lay out the tab."""
    tab = gr.Tab(t("common.text"), id="text")
    with tab:
        gr.Markdown(heading("common.pronunciation_preview"))
        build_explanation(page)
    return tab
