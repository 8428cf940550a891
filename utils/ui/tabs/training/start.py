"""What a start needs: the settings of the form for the open project, the licence, and the reasons why it cannot be."""

import time
from collections.abc import Mapping
from pathlib import Path

from utils import runs
from utils.config import TrainConfig
from utils.config.flags import command_line
from utils.core.paths import UPLOADS, Project
from utils.core.storage import make_folder, write_atomically
from utils.dataset import metadata
from utils.ui.form import read_form
from utils.ui.i18n import t
from utils.xtts.files import BUILT_IN
from utils.xtts.licence import LICENCE, LicenceError, licence_accepted

VERB = "train"
SETTINGS = "settings"  # folder below that of the uploads


def complete(values: Mapping[str, object], project: Project) -> TrainConfig:
    """Make the settings of a run in this project; every fault is reported, not only the first."""
    return read_form({**values, "output_path": str(project.root.resolve())}, TrainConfig)


def command(config: TrainConfig) -> str:
    """Write the command that starts the same run."""
    return command_line(VERB, config)


def needs_licence(version: str, custom_model: str = "") -> bool:
    """Tell whether somebody still has to agree to the licence of the published model."""
    return version not in BUILT_IN and not custom_model.strip() and not licence_accepted()


def start(config: TrainConfig, project: Project) -> runs.Run:
    """Start the run, or return the one that is at work already."""
    if needs_licence(config.version, config.custom_model):
        raise LicenceError(
            f"The base version comes under the {LICENCE}, and nobody has agreed to it yet.",
            hint="Agree to it under Model and data, or choose the tiny base.",
        )
    return runs.start(VERB, config, project)


def obstacle(project: Project, values: Mapping[str, str], language: str) -> str:
    """Say why no run can be started now; empty when one can.

    Args:
        project: The open one.
        values: version, custom_model, train_csv and eval_csv of the form.
        language: Of the page.
    """
    if run := runs.active_run(project, VERB):
        return t("common.name_is_running", language, name=run.name)
    named = {"train": values.get("train_csv"), "eval": values.get("eval_csv")}
    for split, name in metadata.FILES.items():
        path = Path(given) if (given := named[split]) else project.dataset / name
        if not path.is_file():
            return t("training.dataset_missing", language, name=path)
    if needs_licence(values.get("version") or "", values.get("custom_model") or ""):
        return t("training.licence_needed", language)
    return ""


def trainings(project: Project) -> list[runs.Run]:
    """List the trainings of a project, newest first."""
    return runs.list_runs(project, VERB)


def save_settings(config: TrainConfig, output: Path, project: str) -> Path:
    """Write the settings to a file that can be downloaded."""
    folder = output / UPLOADS.name / SETTINGS
    make_folder(folder)
    path = folder / f"{project}-train-{time.strftime('%Y%m%d-%H%M%S')}.yaml"
    write_atomically(path, f"# python -m utils train --config {path.name}\n{config.to_yaml()}")
    return path
