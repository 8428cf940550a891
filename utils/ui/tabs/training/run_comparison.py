"""Several runs side by side: settings in which they differ, best losses, and their evaluations in one chart."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from utils.config import TrainConfig, read_yaml
from utils.core.errors import ConfigError
from utils.runs import Run
from utils.ui.i18n import field_title, t
from utils.ui.tabs.training.charts import Line, chart
from utils.ui.tabs.training.run_history import Story
from utils.ui.views import cell, note, table

MOST = 6  # colours of a chart
SAME_ANYWAY = {"output_path"}


@dataclass(frozen=True)
class Told:
    """A run with what it told and the settings that it had.

    Attributes:
        run: The run.
        story: What it told.
        settings: By name; only those that can be read.
    """

    run: Run
    story: Story
    settings: dict[str, object]


def settings_of(run: Run) -> dict[str, object]:
    """Read the settings of a run, of an older version too; none when the file is damaged."""
    try:
        return read_yaml(run.config)
    except ConfigError:
        return {}


def differing(runs: Sequence[Told]) -> dict[str, list[object]]:
    """Return the settings that are not the same in all runs, in the order of declaration."""
    defaults = TrainConfig().model_dump()
    rows = {name: [one.settings.get(name, default) for one in runs] for name, default in defaults.items()}
    return {name: row for name, row in rows.items() if name not in SAME_ANYWAY and len(set(map(str, row))) > 1}


def compared(runs: Sequence[Told], language: str) -> str:
    """Show what differs and how well each run did."""
    if len(runs) < 2:
        return note(t("training.choose_two_runs", language))
    titles = [t("training.setting", language), *(one.run.name for one in runs)]
    rows = [
        [cell(t("training.best_evaluation", language)), *(_strong(_best(one.story)) for one in runs)],
        [
            cell(t("training.at_step", language)),
            *(cell(str(one.story.best[1]) if one.story.best else "–") for one in runs),
        ],
        [cell(t("training.steps_done", language)), *(cell(str(one.story.step)) for one in runs)],
        [cell(t("training.clips_used", language)), *(cell(str(sum(one.story.used.values()) or "–")) for one in runs)],
    ]
    for name, values in differing(runs).items():
        title = field_title(TrainConfig, name, language)
        rows.append([cell(title), *(cell("–" if value == "" else str(value)) for value in values)])
    lines = [Line(one.run.name, one.story.points("eval"), dotted=True) for one in runs]
    return chart(t("training.evaluation_loss", language), lines, language) + table(titles, rows)


def _best(story: Story) -> str:
    return f"{story.best[0]:.4f}" if story.best else "–"


def _strong(text: str) -> str:
    return f"<td><b>{escape(text)}</b></td>"
