"""The dataset that came of it: what became of every second, its statistics, and merging with another project."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr
import numpy as np
import pandas as pd

from utils.core import paths
from utils.core.errors import AmharicTtsError, DataError
from utils.core.paths import Project
from utils.dataset import queries, statistics
from utils.dataset.bulk_edits import merge
from utils.dataset.metadata import read_language
from utils.dataset.statistics import Ledger, Statistics
from utils.dataset.store import Store
from utils.ui.i18n import describe_error, heading, labels, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, Advanced, PageContext, changed_updates, show_errors
from utils.ui.status_strip import next_button
from utils.ui.tabs.data import render
from utils.ui.tabs.data.clips import refuse_while_busy
from utils.ui.views import error_box, message_box, note

BINS = 30
DISTRIBUTIONS = ("data.clip_length", "data.speaking_rate", "data.snr")


class Counts(NamedTuple):
    """What takes too long to be counted while the page waits."""

    revision: int
    statistics: Statistics
    ledger: Ledger


class BackgroundCounts:
    """Counts datasets in the background, for every visitor of the page."""

    def __init__(self) -> None:
        self._counts: dict[Path, Counts] = {}
        self._running: set[Path] = set()
        self._lock = threading.Lock()

    def latest(self, store: Store) -> Counts | None:
        """Return the latest counts, and start to count again when they are out of date."""
        revision = store.meta("revision")
        with self._lock:
            counts = self._counts.get(store.folder)
            if (counts is None or counts.revision != revision) and store.folder not in self._running:
                self._running.add(store.folder)
                threading.Thread(target=self._count, args=(store.folder,), name="counts", daemon=True).start()
        return counts

    def _count(self, folder: Path) -> None:
        try:
            store = Store(folder)
            with store.reading():
                counted = statistics.count(store, read_language(folder))
                counts = Counts(store.meta("revision"), counted, statistics.account(store.read()))
            with self._lock:
                self._counts[folder] = counts
        finally:
            with self._lock:
                self._running.discard(folder)


def build_summary() -> tuple[gr.HTML, gr.HTML]:
    """Lay out the size of the dataset, and the way on."""
    with gr.Row(elem_classes="beside"):
        return gr.HTML(elem_id="summary"), gr.HTML(elem_id="next-training")


def build_result(page: PageContext, advanced: Advanced, review: gr.Tab, overview: tuple[gr.HTML, gr.HTML]) -> None:
    """Lay out where every second went; ``review`` is the tab that a project without clips lacks."""
    background = BackgroundCounts()
    with gr.Accordion(t("data.audio_usage"), open=False, elem_id="audio-usage"):
        ledger = gr.HTML(elem_id="ledger")
    with advanced.section(), gr.Column(visible=False) as statistics_box:
        gr.Markdown(heading("data.statistics", level=3))
        with gr.Row():
            options: dict[str, Any] = {"x_title": " ", "y_title": " ", "height": 200, "min_width": 240}
            empty = distribution([])
            charts: list[Any] = [gr.LinePlot(empty, "value", "clips", label=t(key), **options) for key in DISTRIBUTIONS]
        charts.append(gr.BarPlot(phoneme_table({}), "sound", "count", label=t("common.sounds"), sort="-y", height=220))
        statistics_html = gr.HTML(elem_id="statistics")
    seen, names = gr.State({}), ("summary", "ledger", "statistics", "next", "review", "box")

    def refresh(project: str, language: str, before: Mapping[str, Any]) -> list[Any]:
        """Show of the dataset what this visitor has not seen yet."""
        try:
            store = Store(page.open(project).dataset)
            counts = background.latest(store) if store.exists else None
            shown = _result(store, counts, language)
        except AmharicTtsError as error:  # runs on every tick, so it is shown here and not as a pop-up
            shown, counts = (note(describe_error(error, language)), "", ""), None
        version = [project, counts.revision] if counts else None
        charted: list[Any] = chart_values(counts.statistics if counts else None)
        if before.get("charts", [""]) == version:
            charted = [gr.skip()] * len(charted)
        has_clips = bool(shown[0] and shown[1])
        following = next_button("training-tab", "strip.next_train", language) if has_clips else ""
        values = (*shown, following, {"visible": has_clips}, {"visible": counts is not None})
        first, *updates = changed_updates(before, dict(zip(names, values, strict=True)), names)
        return [{**first, "charts": version}, *updates, *charted]

    inputs = [page.project, page.language, seen]
    summary, next_step = overview
    outputs = [seen, summary, ledger, statistics_html, next_step, review, statistics_box, *charts]
    gr.on(page.refresh, show_errors(refresh), inputs, outputs, **RAW_INPUTS, **PRIVATE_EVENT)


def _result(store: Store, counts: Counts | None, language: str) -> tuple[str, str, str]:
    if not store.exists:
        return "", "", ""
    summary = render.summary(queries.totals(store), queries.count_recordings(store), language)
    if counts is None:
        counting = note(t("data.counting", language))
        return summary, counting, counting
    return summary, render.ledger(counts.ledger, language), render.statistics(counts.statistics, language)


def distribution(values: Sequence[float]) -> pd.DataFrame:
    counts, edges = np.histogram(np.asarray(values, np.float64), BINS) if values else ([], np.zeros(1))
    return pd.DataFrame({"value": (edges[:-1] + edges[1:]) / 2, "clips": counts})


def phoneme_table(counts: Mapping[str, int]) -> pd.DataFrame:
    return pd.DataFrame({"sound": list(counts), "count": list(counts.values())})


def chart_values(counts: Statistics | None) -> list[pd.DataFrame]:
    if counts is None:
        return [*[distribution([])] * len(DISTRIBUTIONS), phoneme_table({})]
    return [*map(distribution, (counts.seconds, counts.pace, counts.snr)), phoneme_table(counts.phonemes)]


# --- merging ---


def build_merge(page: PageContext) -> None:
    """Add the dataset of another project to this one, with a preview of what would change."""
    source = gr.Dropdown([], interactive=True, elem_id="merge-other", **labels("data.project_to_merge"))
    with gr.Row():
        preview = gr.Button(t("data.preview"), elem_id="merge-ask", min_width=160)
        apply = gr.Button(t("data.merge_into_project"), variant="primary", elem_id="merge-do", min_width=160)
    message = gr.HTML(elem_id="merge-said")

    def offer_projects(project: str) -> dict[str, Any]:
        names = [name for name in paths.list_projects(page.output) if name != project]
        return gr.update(choices=[name for name in names if Store(Project(page.output / name).dataset).exists])

    def merge_from(*, dry_run: bool) -> Callable[..., str]:
        @show_errors
        def merged(project: str, name: str | None, language: str) -> str:
            try:
                if not name:
                    raise DataError("No source project is selected.", hint="Select the source project.")
                target = page.open(project)
                if not dry_run:
                    refuse_while_busy(target)
                plan = merge(target.dataset, page.open(name).dataset, dry_run=dry_run)
            except AmharicTtsError as error:
                return error_box(error, language)
            done = t("data.preview_only" if dry_run else "data.changes_applied", language)
            return message_box("success", *render.merge_summary(plan, language), done)

        return merged

    events: list[Any] = [page.blocks.load, page.project.change, source.focus]
    gr.on(events, offer_projects, page.project, source, **RAW_INPUTS, **PRIVATE_EVENT)
    inputs = [page.project, source, page.language]
    for button, dry_run, name in ((preview, True, "plan_merge"), (apply, False, "merge_datasets")):
        button.click(merge_from(dry_run=dry_run), inputs, message, api_name=name, **RAW_INPUTS)
