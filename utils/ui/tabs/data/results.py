"""What came of it: the account of every second, the statistics, and merging with another project."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import pandas as pd

from utils.core import paths
from utils.core.errors import AmharicTtsError, DataError
from utils.core.paths import Project
from utils.dataset import queries, statistics
from utils.dataset.ledger import Ledger
from utils.dataset.merge import Plan, merge
from utils.dataset.metadata import read_language
from utils.dataset.statistics import Statistics
from utils.dataset.store import Store
from utils.ui.i18n import describe_error, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, changed_updates, show_errors
from utils.ui.tabs.data import render, start
from utils.ui.views import error_box, message_box, note

BINS = 30
DISTRIBUTIONS = ("data.clip_length", "data.speaking_rate", "data.snr")


@dataclass(frozen=True)
class Counts:
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
            counts = count_all(Store(folder))
            with self._lock:
                self._counts[folder] = counts
        finally:
            with self._lock:
                self._running.discard(folder)


def count_all(store: Store) -> Counts:
    """Count what a dataset holds, and where every second of its recordings went."""
    with store.reading():
        language = read_language(store.folder)
        return Counts(store.meta("revision"), statistics.count(store, language), statistics.account(store.read()))


def build_result(page: PageContext) -> None:
    """Lay out account and statistics; they follow the dataset."""
    background = BackgroundCounts()
    summary = gr.HTML(elem_id="summary")
    with gr.Accordion(t("data.audio_usage"), open=True):
        ledger = gr.HTML(elem_id="ledger")
    with gr.Accordion(t("data.statistics"), open=False):
        with gr.Row():
            charts: list[Any] = [distribution_plot(label) for label in DISTRIBUTIONS]
        charts.append(gr.BarPlot(phoneme_table({}), "sound", "count", label=t("common.sounds"), sort="-y", height=220))
        counted = gr.HTML(elem_id="statistics")
    seen, names = gr.State({}), ("summary", "ledger", "counted")

    def look(project: str, language: str, before: Mapping[str, Any]) -> list[Any]:
        """Show of the dataset what has changed since this visitor looked last."""
        try:
            store = Store(page.open(project).dataset)
            counts = background.latest(store) if store.exists else None
            shown = _result(store, counts, language)
        except AmharicTtsError as error:  # asked on every tick: it stays in its place
            shown, counts = (note(describe_error(error, language)), "", ""), None
        version = [project, counts.revision] if counts else None
        drawn = chart_values(counts.statistics if counts else None)
        charted = [gr.skip()] * len(drawn) if before.get("charts", [""]) == version else drawn
        first, *updates = changed_updates(before, dict(zip(names, shown, strict=True)), names)
        return [{**first, "charts": version}, *updates, *charted]

    gr.on(
        page.refresh,
        show_errors(look),
        [page.project, page.language, seen],
        [seen, summary, ledger, counted, *charts],
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )


def distribution_plot(label: str) -> gr.LinePlot:
    """Return an empty chart of how many clips have which value."""
    return gr.LinePlot(
        distribution([]), "value", "clips", label=t(label), x_title=" ", y_title=" ", height=200, min_width=240
    )


def distribution(values: Sequence[float]) -> pd.DataFrame:
    """Count values in bins, as points of a chart."""
    counts, edges = np.histogram(np.asarray(values, np.float64), BINS) if values else ([], np.zeros(1))
    return pd.DataFrame({"value": (edges[:-1] + edges[1:]) / 2, "clips": counts})


def phoneme_table(counts: Mapping[str, int]) -> pd.DataFrame:
    """Return the counts of sounds as bars of a chart."""
    return pd.DataFrame({"sound": list(counts), "count": list(counts.values())})


def chart_values(counts: Statistics | None) -> list[pd.DataFrame]:
    """Return the values of all charts."""
    if counts is None:
        return [*[distribution([])] * len(DISTRIBUTIONS), phoneme_table({})]
    return [*map(distribution, (counts.seconds, counts.pace, counts.snr)), phoneme_table(counts.phonemes)]


def _result(store: Store, found: Counts | None, language: str) -> tuple[str, str, str]:
    """Return summary, ledger and statistics."""
    if not store.exists:
        return note(t(render.NO_CLIPS, language)), "", ""
    summary = render.summary(queries.totals(store), queries.count_recordings(store), language)
    if found is None:
        counting = note(t("data.counting", language))
        return summary, counting, counting
    return summary, render.ledger(found.ledger, language), render.counted(found.statistics, language)


def build_merge(page: PageContext, around: gr.Accordion) -> None:
    """Add the dataset of another project to this one; what would happen is said first."""
    other = gr.Dropdown(
        [],
        label=t("data.project_to_merge"),
        info=t("data.project_to_merge_hint"),
        interactive=True,
        elem_id="merge-other",
    )
    with gr.Row():
        ask = gr.Button(t("data.preview"), elem_id="merge-ask", min_width=160)
        do = gr.Button(t("data.merge_into_project"), variant="primary", elem_id="merge-do", min_width=160)
    said = gr.HTML(elem_id="merge-said")

    def offer(project: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(choices=others(page.output, project))

    def merged(project: str, name: str | None, language: str, *, dry_run: bool) -> str:
        try:
            plan = add_dataset(page, project, name, dry_run=dry_run)
        except AmharicTtsError as error:
            return error_box(error, language)
        done = t("data.preview_only" if dry_run else "data.changes_applied", language)
        return message_box("success", *render.merged(counts(plan), language), done)

    @show_errors
    def ask_first(project: str, name: str | None, language: str) -> str:
        return merged(project, name, language, dry_run=True)

    @show_errors
    def join(project: str, name: str | None, language: str) -> str:
        return merged(project, name, language, dry_run=False)

    given = [page.project, other, page.language]
    gr.on(
        [page.blocks.load, page.project.change, around.expand],
        offer,
        page.project,
        other,
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )
    ask.click(ask_first, given, said, api_name="plan_merge", **RAW_INPUTS)
    do.click(join, given, said, api_name="merge_datasets", **RAW_INPUTS)


def add_dataset(page: PageContext, project: str, name: str | None, *, dry_run: bool) -> Plan:
    """Merge the dataset of another project into this one."""
    if not name:
        raise DataError("No source project is selected.", hint="Select the source project.")
    target, source = page.open(project), page.open(name)
    if not dry_run:
        start.refuse_while_busy(target)
    return merge(target.dataset, source.dataset, dry_run=dry_run)


def others(output: Path, project: str) -> list[str]:
    """List the other projects that hold clips."""
    names = paths.list_projects(output)
    return [name for name in names if name != project and Store(Project(output / name).dataset).exists]


def counts(plan: Plan) -> dict[str, int]:
    """Return the figures of a merge by their names."""
    return {
        "recordings": len(plan.recordings),
        "clips": sum(len(clips) for _, clips in plan.recordings),
        "known": plan.known,
        "duplicates": plan.duplicates,
        "missing": len(plan.missing),
    }
