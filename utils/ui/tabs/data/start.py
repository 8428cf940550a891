"""What a preparation needs: the settings of the form for the open project, and the reasons why it cannot be."""

from collections.abc import Mapping

from utils import runs
from utils.config import SEPARATOR, DatasetConfig
from utils.config.flags import command_line
from utils.core.errors import AmharicTtsError, RunBusyError
from utils.core.paths import Project
from utils.ui.form import read_form
from utils.ui.i18n import t
from utils.workspace import uploads

VERB = "prepare"
WRITERS = ("prepare", "features", "train")  # runs that read or write the clips while they are at work


def complete(values: Mapping[str, object], project: Project) -> DatasetConfig:
    """Make the settings of a run in this project; every fault is reported, not only the first."""
    named = uploads.split_inputs(str(values.get("inputs") or ""))
    inputs = SEPARATOR.join(uploads.absolute_input(project, place) for place in named)
    return read_form({**values, "inputs": inputs}, DatasetConfig)


def command(config: DatasetConfig, project: Project) -> str:
    """Write the command that starts the same run."""
    return f"{command_line(VERB, config)} --project {project.root.name}"


def start(config: DatasetConfig, project: Project) -> runs.Run:
    """Start the run, or return the one that is at work already."""
    return runs.start(VERB, config, project)


def preparations(project: Project) -> list[runs.Run]:
    """List the preparations of a project, newest first."""
    return runs.list_runs(project, VERB)


def at_work(project: Project) -> runs.Run | None:
    """Return a run that is at work on the clips, if there is one."""
    return runs.active_run(project, *WRITERS)


def obstacle(project: Project, inputs: str, language: str) -> str:
    """Say why no preparation can be started now; empty when one can."""
    if run := runs.active_run(project, VERB):
        return t("common.name_is_running", language, name=run.name)
    if not inputs.strip():
        return t("data.add_recordings_first", language)
    return ""


def refuse_while_busy(project: Project) -> None:
    """Refuse a change of the clips while a run reads or writes them."""
    if run := at_work(project):
        raise RunBusyError(
            f"{run.name} is at work, so no clip can be changed now.", hint="Stop it first, or wait until it ends."
        )


def last_settings(project: Project) -> DatasetConfig:
    """Return the settings of the newest preparation, or the defaults."""
    for run in preparations(project):
        try:
            return DatasetConfig.load(run.config)
        except AmharicTtsError:  # of an older version, or damaged: the form begins with the defaults then
            break
    return DatasetConfig()
