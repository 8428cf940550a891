"""Several models on the same sentences: the evaluation in a child process, its report, and judging without names."""

import hashlib
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.config import SpeechConfig
from utils.config.flags import command_line
from utils.core.errors import ConfigError, DataError, TextError
from utils.core.paths import Project, resolve_inside, validate_name
from utils.core.storage import make_folder, make_unique_folder, timestamp_name, write_atomically
from utils.evaluation import blind_test
from utils.evaluation.blind_test import BlindPair, Choice, Tally
from utils.evaluation.report import JSON, EvaluationReport, load
from utils.runs import child_commands

FOLDER, SENTENCES, BLIND = "comparisons", "sentences.txt", "blind"
FEWEST, MOST = 2, 4  # models
MOST_SENTENCES = 50
STEP = re.compile(r"(\d+) of (\d+)  (.*)")


@dataclass(frozen=True)
class Step:
    """How far a comparison is."""

    step: int
    total: int
    stage: str


@dataclass(frozen=True)
class Compared:
    """A comparison that is over."""

    name: str


def compare(
    project: Project, models: Sequence[str], text: str, config: SpeechConfig, output: Path
) -> Iterator[Step | Compared]:
    """Have several models speak the same sentences, one model in memory at a time; a task for ``Work``."""
    folder = prepared(project, models, text)
    for line in child_commands.run(words(models, folder, config, output)):
        if found := STEP.match(line):
            yield Step(int(found[1]), int(found[2]), found[3].strip())
    yield Compared(folder.name)


def prepared(project: Project, models: Sequence[str], text: str) -> Path:
    """Make the folder of a comparison, with its sentences."""
    if not FEWEST <= len(set(models)) <= MOST:
        raise ConfigError(f"{len(set(models))} models are chosen.", hint=f"Choose {FEWEST} to {MOST} of them.")
    lines = list(dict.fromkeys(line.strip().lstrip("#") for line in text.splitlines() if line.strip(" #")))
    if not lines:
        raise TextError("There is no sentence to speak.", hint="Write one a line.")
    if len(lines) > MOST_SENTENCES:
        raise TextError(f"{len(lines)} sentences are too many to listen to.", hint=f"Leave {MOST_SENTENCES} of them.")
    folder = make_unique_folder(project.root / FOLDER / timestamp_name(time.time()))
    write_atomically(folder / SENTENCES, "\n".join(lines) + "\n")
    return folder


def words(models: Sequence[str], folder: Path, config: SpeechConfig, output: Path) -> list[str]:
    """Write the command that does it."""
    own = config.model_copy(update={"model": ""})  # named by --checkpoints
    flags = shlex.split(command_line("evaluate", own))[3:]
    named = ["--checkpoints", *dict.fromkeys(models)]
    places = ["--sentences", str(folder / SENTENCES), "--out", str(folder), "--output", str(output)]
    return [*flags, *named, *places]


def names(project: Project) -> list[str]:
    """List the comparisons that have a report, newest first."""
    folder = project.root / FOLDER
    return sorted((path.parent.name for path in folder.glob(f"[!.]*/{JSON}")), reverse=True) if folder.is_dir() else []


def report_of(project: Project, name: object) -> EvaluationReport:
    """Read the report of a comparison."""
    return load(_folder(project, name))


def next_pair(project: Project, name: object, voter: str) -> tuple[BlindPair | None, int, int]:
    """Return the next pair that somebody has not judged, how many are left, and how many there are."""
    folder = _folder(project, name)
    pairs = blind_test.blind_pairs(load(folder), _seed(folder))
    waiting = blind_test.remaining_pairs(pairs, blind_test.read_votes(folder / blind_test.FILE), voter)
    return (waiting[0] if waiting else None), len(waiting), len(pairs)


def neutral(project: Project, name: object, pair: BlindPair) -> tuple[Path, Path]:
    """Copy both sounds to names that tell nothing of the models."""
    folder = _folder(project, name) / BLIND
    make_folder(folder)
    targets = folder / f"{pair.token}-1.wav", folder / f"{pair.token}-2.wav"
    for source, target in zip((pair.left, pair.right), targets, strict=True):
        if not target.exists():
            shutil.copyfile(source, target)
    return targets


def vote(project: Project, name: object, token: str, choice: Choice, voter: str) -> None:
    """Keep what somebody preferred of a pair."""
    folder = _folder(project, name)
    pairs = {pair.token: pair for pair in blind_test.blind_pairs(load(folder), _seed(folder))}
    if token not in pairs:
        raise DataError("This pair is not there any longer.", hint="Begin the blind test again.")
    blind_test.save_vote(folder / blind_test.FILE, pairs[token], choice, voter)


def tally(project: Project, name: object) -> list[Tally]:
    """Count the votes of everybody."""
    return blind_test.tally(blind_test.read_votes(_folder(project, name) / blind_test.FILE))


def _folder(project: Project, name: object) -> Path:
    folder = resolve_inside(project.root / FOLDER, validate_name(name))
    if not (folder / JSON).is_file():
        raise DataError(f"There is no comparison {name}.", hint="Choose another one, or compare models first.")
    return folder


def _seed(folder: Path) -> int:
    """Return the same seed for the same comparison: an order, not a secret."""
    return int.from_bytes(hashlib.blake2b(folder.name.encode(), digest_size=4).digest())
