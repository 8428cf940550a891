"""What the checkpoints of a run will take of the disk: calculated from the sizes of the model, not measured."""

import functools
import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from utils.core.paths import Project
from utils.dataset import metadata
from utils.ui.i18n import t
from utils.xtts.files import TINY, TINY_RANDOM

HALF, WIDE = 2, 4  # bytes of a number in checkpoints, and in the state to go on from
PUBLISHED = 441_018_563  # parameters of XTTS v2's GPT
SMALL = {TINY: 9_118_662, TINY_RANDOM: 869_957}  # and of those that come with the program
MOMENTS = {"adamw": 2 * WIDE, "adamw_8bit": 2, "adafactor": 0}  # bytes a weight


@dataclass(frozen=True)
class Forecast:
    """What will be written.

    Attributes:
        updates: Of the whole run; 0 when the dataset is not known.
        saves: How often it is saved.
        checkpoint: Bytes of one.
        resume: Bytes of the state to go on from.
        most: Bytes on the disk when it is fullest.
        free: Bytes that are free now.
    """

    updates: int
    saves: int
    checkpoint: int
    resume: int
    most: int
    free: int


def forecast(values: Mapping[str, object], project: Project) -> Forecast:
    """Calculate from the values of the form; at most, since frozen weights and adapters take less."""
    number = functools.partial(_number, values)
    own = bool(values.get("custom_model"))
    parameters = PUBLISHED if own else SMALL.get(str(values.get("version")), PUBLISHED)
    listed = Path(str(values["train_csv"])) if values.get("train_csv") else project.dataset / metadata.FILES["train"]
    clips = count_clips(listed)
    updates = math.ceil(clips / (number("batch_size") * number("grad_acumm"))) * number("num_epochs")
    if most := number("max_steps", 0):
        updates = min(updates, most)
    saves = math.ceil(updates / number("save_step"))
    kept = min(number("save_n_checkpoints") + 1, max(1, saves)) + 1  # and the best one; one more while it is written
    averages = WIDE if values.get("enable_ema") else 0
    checkpoint = parameters * HALF
    resume = parameters * (WIDE + MOMENTS.get(str(values.get("optimizer")), 2 * WIDE) + averages)
    return Forecast(updates, saves, checkpoint, resume, kept * checkpoint + 2 * resume, free_at(project.root))


def count_clips(path: Path) -> int:
    """Count the lines below the header of a list; 0 when there is none."""
    try:
        return _counted(path, path.stat().st_mtime_ns)
    except OSError:
        return 0


@functools.lru_cache(maxsize=64)
def _counted(path: Path, _changed: int) -> int:
    with path.open("rb") as file:
        return max(0, sum(1 for line in file if line.strip()) - 1)


def free_at(folder: Path) -> int:
    """Return the free bytes of the disk that holds a folder, which need not be there yet."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free


def sentence(found: Forecast, language: str) -> str:
    """Say it in words, and what to do where there is too little room."""
    sizes = {name: gigabytes(getattr(found, name)) for name in ("checkpoint", "resume", "most", "free")}
    if not found.updates:
        told = t("training.disk_per_checkpoint", language, **sizes)
    else:
        told = t(
            "training.disk_needed",
            language,
            updates=found.updates,
            saves=found.saves,
            **sizes,
        )
    if found.most > found.free:
        told += " " + t("training.disk_full", language)
    return told


def gigabytes(size: int) -> str:
    """Write a size on a disk."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def _number(values: Mapping[str, object], name: str, least: int = 1) -> int:
    """Return a whole number of the form; what is none yet counts as the least."""
    value = values.get(name)
    return max(least, int(value)) if isinstance(value, int | float) and not isinstance(value, bool) else least
