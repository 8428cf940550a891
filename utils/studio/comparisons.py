"""Comparisons: several models speak the same sentences in a child process; then people judge them blindly."""

import hashlib
import re
import shlex
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from utils.config import SpeechConfig
from utils.config.flags import command_line
from utils.core.errors import ConfigError, DataError, TextError
from utils.core.paths import Project, resolve_inside, validate_name
from utils.core.processes import read_lines
from utils.core.storage import make_folder, make_unique_folder, timestamp_name, write_atomically
from utils.evaluation import blind_test
from utils.evaluation.blind_test import BlindPair, Choice, Tally
from utils.evaluation.report import JSON, EvaluationReport, load
from utils.studio.background_jobs import BackgroundJob

FOLDER, SENTENCES, BLIND = "comparisons", "sentences.txt", "blind"
MIN_MODELS, MAX_MODELS = 2, 4
MAX_SENTENCES = 50
PROGRESS_LINE = re.compile(r"(.+?) (\d+)/(\d+)(?: · .*)?")  # as evaluate prints it


def compare(
    job: BackgroundJob, project: Project, models: Sequence[str], text: str, config: SpeechConfig, output: Path
) -> str:
    """Let several models speak the same sentences, one model in memory at a time; return the comparison's name."""
    folder = create_comparison(project, models, text)
    arguments = evaluate_arguments(models, folder, config, output)
    for line in read_lines(["-m", "utils", *arguments], check=job.check):
        if match := PROGRESS_LINE.fullmatch(line):
            job.report(int(match[2]), int(match[3]), match[1])
    return folder.name


def create_comparison(project: Project, models: Sequence[str], text: str) -> Path:
    """Create the folder of a comparison and write its sentences."""
    if not MIN_MODELS <= len(set(models)) <= MAX_MODELS:
        hint = f"Choose {MIN_MODELS} to {MAX_MODELS} models."
        raise ConfigError(f"{len(set(models))} models are selected.", hint=hint)
    lines = list(dict.fromkeys(line.strip().lstrip("#") for line in text.splitlines() if line.strip(" #")))
    if not lines:
        raise TextError("There are no sentences to speak.", hint="Write one per line.")
    if len(lines) > MAX_SENTENCES:
        raise TextError(f"{len(lines)} sentences are too many.", hint=f"Use at most {MAX_SENTENCES}.")
    folder = make_unique_folder(project.root / FOLDER / timestamp_name(time.time()))
    write_atomically(folder / SENTENCES, "\n".join(lines) + "\n")
    return folder


def evaluate_arguments(models: Sequence[str], folder: Path, config: SpeechConfig, output: Path) -> list[str]:
    """Return the arguments of the command that makes the comparison."""
    flags = shlex.split(command_line("evaluate", config.model_copy(update={"model": ""})))[3:]
    checkpoints = ["--checkpoints", *dict.fromkeys(models)]
    return [*flags, *checkpoints, "--sentences", str(folder / SENTENCES), "--out", str(folder), "--output", str(output)]


def names(project: Project) -> list[str]:
    """List the comparisons that have a report, newest first."""
    return sorted((path.parent.name for path in (project.root / FOLDER).glob(f"[!.]*/{JSON}")), reverse=True)


def load_report(project: Project, name: object) -> EvaluationReport:
    return load(_folder(project, name))


def next_pair(project: Project, name: object, voter: str) -> tuple[BlindPair | None, int, int]:
    """Return the next pair that a voter has not judged, how many remain, and how many there are."""
    folder = _folder(project, name)
    pairs = _blind_pairs(folder)
    remaining = blind_test.remaining_pairs(pairs, blind_test.read_votes(folder / blind_test.FILE), voter)
    return (remaining[0] if remaining else None), len(remaining), len(pairs)


def anonymous_files(project: Project, name: object, pair: BlindPair) -> tuple[Path, Path]:
    """Copy both recordings of a pair to file names that do not reveal the models."""
    folder = _folder(project, name) / BLIND
    make_folder(folder)
    targets = folder / f"{pair.token}-1.wav", folder / f"{pair.token}-2.wav"
    for source, target in zip((pair.left, pair.right), targets, strict=True):
        if not target.exists():
            shutil.copyfile(source, target)
    return targets


def save_vote(project: Project, name: object, token: str, choice: Choice, voter: str) -> None:
    """Save which recording of a pair a voter prefers."""
    folder = _folder(project, name)
    pairs = {pair.token: pair for pair in _blind_pairs(folder)}
    if token not in pairs:
        raise DataError("This pair no longer exists.", hint="Start the blind test again.")
    blind_test.save_vote(folder / blind_test.FILE, pairs[token], choice, voter)


def tally(project: Project, name: object) -> list[Tally]:
    """Count the votes of everybody."""
    return blind_test.tally(blind_test.read_votes(_folder(project, name) / blind_test.FILE))


def _folder(project: Project, name: object) -> Path:
    folder = resolve_inside(project.root / FOLDER, validate_name(name))
    if not (folder / JSON).is_file():
        raise DataError(f"There is no comparison {name}.", hint="Choose another one, or compare models first.")
    return folder


def _blind_pairs(folder: Path) -> list[BlindPair]:
    """Return the pairs in the same order for the same comparison."""
    digest = hashlib.blake2b(folder.name.encode(), digest_size=4).digest()
    return blind_test.blind_pairs(load(folder), int.from_bytes(digest))
