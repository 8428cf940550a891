"""What becomes of a text before the model reads it."""

import gradio as gr

from utils.ui.page import Page
from utils.ui.tabs.pronunciation import build_explanation


def build(page: Page) -> gr.Tab:
    """Lay out the tab."""
    tab = gr.Tab("Text", id="text")
    with tab:
        gr.Markdown("## What the model reads")
        build_explanation(page)
    return tab
