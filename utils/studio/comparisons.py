"""Comparisons: several models speak the same sentences."""

import time
from collections.abc import Sequence
from pathlib import Path

from utils.config import SpeechConfig
from utils.config.flags import changed_flags
from utils.core.paths import resolve_inside, validate_name
from utils.core.storage import make_unique_folder, timestamp_name, write_atomically
from utils.evaluation.report import JSON, EvaluationReport, load
from utils.studio import paths
from utils.studio.facts import InputError
from utils.studio.paths import Project

FOLDER = "comparisons"
SENTENCES = "sentences.txt"
MIN_MODELS = 2
MAX_MODELS = 4
MAX_SENTENCES = 50


def create_comparison(project: Project, models: Sequence[str], text: str) -> Path:
    """Create the folder of a comparison and write its sentences."""
    if not MIN_MODELS <= len(set(models)) <= MAX_MODELS:
        raise InputError("number_of_models", str(len(set(models))), f"{MIN_MODELS}-{MAX_MODELS}")
    lines = list(dict.fromkeys(line.strip().lstrip("#") for line in text.splitlines() if line.strip(" #")))
    if not lines:
        raise InputError("no_sentences")
    if len(lines) > MAX_SENTENCES:
        raise InputError("many_sentences", str(len(lines)), str(MAX_SENTENCES))
    folder = make_unique_folder(project.root / FOLDER / timestamp_name(time.time()))
    write_atomically(folder / SENTENCES, "\n".join(lines) + "\n")
    return folder


def evaluate_arguments(models: Sequence[str], folder: Path, config: SpeechConfig, output: Path) -> list[str]:
    """Return the arguments of the command ``evaluate`` that makes the comparison."""
    flags = changed_flags(config.model_copy(update={"model": ""}))
    checkpoints = ["--checkpoints", *dict.fromkeys(models)]
    return [*flags, *checkpoints, "--sentences", str(folder / SENTENCES), "--out", str(folder), "--output", str(output)]


def names(project: Project) -> list[str]:
    """List the comparisons that have a report, newest first."""
    return paths.folders_with(project.root / FOLDER, JSON)


def load_report(project: Project, name: object) -> EvaluationReport:
    folder = resolve_inside(project.root / FOLDER, validate_name(name))
    if not (folder / JSON).is_file():
        raise InputError("no_comparison", folder.name)
    return load(folder)
