"""The dataset that came of it: its size, what became of every second, and its statistics."""

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr
import numpy as np
import pandas as pd

from utils.core.errors import AmharicTtsError
from utils.dataset import queries
from utils.dataset.queries import BackgroundCounts, Counts
from utils.dataset.store import Store
from utils.ui import views
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, Panel, PanelRequest, show_errors
from utils.ui.status_strip import next_button
from utils.ui.tabs.data import render
from utils.ui.views import note

BINS = 30
DISTRIBUTIONS = ("data.clip_length", "data.speaking_rate", "data.snr")


def build_summary(page: PageContext, background: BackgroundCounts) -> None:
    """Lay out the size of the dataset, the way on, and where every second went."""

    def show(request: PanelRequest) -> str:
        store, language = Store(request.project.dataset), request.language
        if not store.exists:
            return ""
        summary = render.summary(queries.totals(store), queries.count_recordings(store), language)
        following = next_button("training-tab", "strip.next_train", language)
        counts = background.latest(store)
        usage = render.ledger(counts.ledger, language) if counts else note(t("data.counting", language))
        found = render.statistics(counts.statistics, language) if counts else ""
        return (
            f'<div class="summary">{summary}<span id="next-training">{following}</span></div>'
            + views.details(t("data.audio_usage", language), usage, "audio-usage")
            + (views.details(t("data.statistics", language), found, "statistics") if found else "")
        )

    Panel(page, "summary", show, {})


def build_charts(page: PageContext, background: BackgroundCounts) -> None:
    with gr.Column(visible=False) as box, gr.Row():
        options: dict[str, Any] = {"x_title": " ", "y_title": " ", "height": 200, "min_width": 240}
        empty = distribution([])
        charts: list[Any] = [gr.LinePlot(empty, "value", "clips", label=t(key), **options) for key in DISTRIBUTIONS]
        charts.append(gr.BarPlot(phoneme_table({}), "sound", "count", label=t("common.sounds"), sort="-y", height=220))
    seen = gr.State(None)

    @show_errors
    def refresh(before: object, project: str) -> list[Any]:
        """Draw what has changed since this visitor saw it."""
        try:
            store = Store(page.open(project).dataset)
            counts = background.latest(store) if store.exists else None
        except AmharicTtsError:  # shown in the header
            counts = None
        version = [project, counts.revision] if counts else None
        if version == before:
            return [gr.skip()] * (2 + len(charts))
        return [version, gr.update(visible=counts is not None), *chart_values(counts)]

    gr.on(page.refresh, refresh, [seen, page.project], [seen, box, *charts], **RAW_INPUTS, **PRIVATE_EVENT)


def distribution(values: Sequence[float]) -> pd.DataFrame:
    counts, edges = np.histogram(np.asarray(values, np.float64), BINS) if values else ([], np.zeros(1))
    return pd.DataFrame({"value": (edges[:-1] + edges[1:]) / 2, "clips": counts})


def phoneme_table(counts: Mapping[str, int]) -> pd.DataFrame:
    return pd.DataFrame({"sound": list(counts), "count": list(counts.values())})


def chart_values(counts: Counts | None) -> list[pd.DataFrame]:
    if counts is None:
        return [*[distribution([])] * len(DISTRIBUTIONS), phoneme_table({})]
    found = counts.statistics
    return [*map(distribution, (found.seconds, found.pace, found.snr)), phoneme_table(found.phonemes)]
