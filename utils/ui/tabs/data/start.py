"""Start a preparation from the form, and tell why it cannot be started."""

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
WRITERS = ("prepare", "features", "train")  # runs during which clips must not change


def complete(values: Mapping[str, object], project: Project) -> DatasetConfig:
    """Return the settings of a run in this project; the error names every invalid field."""
    names = uploads.split_inputs(str(values.get("inputs") or ""))
    inputs = SEPARATOR.join(uploads.absolute_input(project, name) for name in names)
    return read_form({**values, "inputs": inputs}, DatasetConfig)


def command(config: DatasetConfig, project: Project) -> str:
    """Return the command that starts the same run."""
    return f"{command_line(VERB, config)} --project {project.root.name}"


def start(config: DatasetConfig, project: Project) -> runs.Run:
    """Start the run, or return the active one."""
    return runs.start(VERB, config, project)


def preparations(project: Project) -> list[runs.Run]:
    """Return the preparations of a project, newest first."""
    return runs.list_runs(project, VERB)


def at_work(project: Project) -> runs.Run | None:
    """Return an active run that uses the clips, if there is one."""
    return runs.active_run(project, *WRITERS)


def obstacle(project: Project, inputs: str, language: str) -> str:
    """Return why no preparation can be started now; empty if one can."""
    if run := runs.active_run(project, VERB):
        return t("common.name_is_running", language, name=run.name)
    if not inputs.strip():
        return t("data.add_recordings_first", language)
    return ""


def refuse_while_busy(project: Project) -> None:
    """Raise if an active run uses the clips."""
    if run := at_work(project):
        raise RunBusyError(
            f"{run.name} is running, so clips cannot be changed now.", hint="Stop it first, or wait until it ends."
        )


def last_settings(project: Project) -> DatasetConfig:
    """Return the settings of the newest preparation, or the defaults."""
    for run in preparations(project):
        try:
            return DatasetConfig.load(run.config)
        except AmharicTtsError:  # of an older version, or damaged
            break
    return DatasetConfig()
