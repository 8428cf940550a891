"""Several runs side by side: the settings in which they differ, their best losses, and a chart."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from utils.config import TrainConfig, read_yaml
from utils.core.errors import ConfigError
from utils.runs import Run
from utils.ui.i18n import field_title, t
from utils.ui.tabs.training.render import ChartRow
from utils.ui.tabs.training.run_history import RunHistory
from utils.ui.views import cell, note, table

MAX_RUNS = 6
NOT_COMPARED = {"output_path"}


@dataclass(frozen=True)
class ComparedRun:
    """A run with its history and its settings by name, as far as they can be read."""

    run: Run
    history: RunHistory
    settings: dict[str, object]


def read_settings(run: Run) -> dict[str, object]:
    """Read the settings of a run, also of an older version; empty when the file is damaged."""
    try:
        return read_yaml(run.config)
    except ConfigError:
        return {}


def differences(runs: Sequence[ComparedRun]) -> dict[str, list[object]]:
    """Return the settings that differ between runs, in the order of declaration."""
    defaults = TrainConfig().model_dump()
    rows = {name: [run.settings.get(name, default) for run in runs] for name, default in defaults.items()}
    return {name: row for name, row in rows.items() if name not in NOT_COMPARED and len(set(map(str, row))) > 1}


def comparison_table(runs: Sequence[ComparedRun], language: str) -> str:
    """Return what differs between runs and how well each did."""
    if len(runs) < 2:
        return note(t("training.choose_two_runs", language))
    histories = [run.history for run in runs]
    best = [f"<td><b>{escape(f'{item.best[0]:.4f}' if item.best else '–')}</b></td>" for item in histories]
    rows = [
        [cell(t("training.best_evaluation", language)), *best],
        [cell(t("training.at_step", language)), *(cell(str(item.best[1]) if item.best else "–") for item in histories)],
        [cell(t("training.steps_done", language)), *(cell(str(item.step)) for item in histories)],
        [cell(t("training.clips_used", language)), *(cell(str(sum(item.used.values()) or "–")) for item in histories)],
    ]
    for name, values in differences(runs).items():
        title = field_title(TrainConfig, name, language)
        rows.append([cell(title), *(cell("–" if value == "" else str(value)) for value in values)])
    return table([t("training.setting", language), *(run.run.name for run in runs)], rows)


def evaluation_rows(runs: Sequence[ComparedRun]) -> list[ChartRow]:
    """Return the evaluation losses of runs as points of one chart."""
    return [(step, loss, run.run.name) for run in runs for step, loss in run.history.points("eval")]
