"""The disk space that the checkpoints of a run will need, calculated from the size of the model."""

import functools
import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.dataset import metadata
from utils.ui.i18n import describe_error, t
from utils.ui.page import QUIET_EVENT, RAW_INPUTS, show_errors
from utils.ui.tabs.training.settings_form import TrainForm
from utils.ui.views import note
from utils.xtts.files import TINY, TINY_RANDOM

HALF, WIDE = 2, 4  # bytes of a number in checkpoints and in the resume state
PUBLISHED = 441_018_563  # parameters of XTTS v2's GPT
SMALL = {TINY: 9_118_662, TINY_RANDOM: 869_957}  # of the built-in base models
MOMENTS = {"adamw": 2 * WIDE, "adamw_8bit": 2, "adafactor": 0}  # bytes per weight


@dataclass(frozen=True)
class Forecast:
    """What a run will write.

    Attributes:
        updates: Optimizer steps of the run; 0 when the dataset is not known.
        saves: Number of checkpoints.
        checkpoint: Bytes of a checkpoint.
        resume: Bytes of the resume state.
        most: Maximum bytes at a time.
        free: Free bytes now.
    """

    updates: int
    saves: int
    checkpoint: int
    resume: int
    most: int
    free: int


def forecast(values: Mapping[str, object], project: Project) -> Forecast:
    """Return an upper bound from the values of the form; frozen weights and adapters need less."""
    number = functools.partial(_number, values)
    own = bool(values.get("custom_model"))
    parameters = PUBLISHED if own else SMALL.get(str(values.get("version")), PUBLISHED)
    train_csv = values.get("train_csv") or project.dataset / metadata.FILES["train"]
    clips = count_clips(Path(str(train_csv)))
    updates = math.ceil(clips / (number("batch_size") * number("grad_acumm"))) * number("num_epochs")
    if limit := number("max_steps", 0):
        updates = min(updates, limit)
    saves = math.ceil(updates / number("save_step"))
    kept = min(number("save_n_checkpoints") + 1, max(1, saves)) + 1  # with the best, and one being written
    averages = WIDE if values.get("enable_ema") else 0
    checkpoint = parameters * HALF
    resume = parameters * (WIDE + MOMENTS.get(str(values.get("optimizer")), 2 * WIDE) + averages)
    return Forecast(updates, saves, checkpoint, resume, kept * checkpoint + 2 * resume, free_at(project.root))


def count_clips(path: Path) -> int:
    """Count the lines of a list below its header; 0 when it does not exist."""
    try:
        return _counted(path, path.stat().st_mtime_ns)
    except OSError:
        return 0


@functools.lru_cache(maxsize=64)
def _counted(path: Path, _changed: int) -> int:
    with path.open("rb") as file:
        return max(0, sum(1 for line in file if line.strip()) - 1)


def free_at(folder: Path) -> int:
    """Return the free bytes on the disk of a folder, which need not exist yet."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(existing).free


def summary(result: Forecast, language: str) -> str:
    """Return the forecast as text, with advice where the disk is too small."""
    sizes = {name: gigabytes(getattr(result, name)) for name in ("checkpoint", "resume", "most", "free")}
    key = "training.disk_needed" if result.updates else "training.disk_per_checkpoint"
    text = t(key, language, updates=result.updates, saves=result.saves, **sizes)
    return f"{text} {t('training.disk_full', language)}" if result.most > result.free else text


def gigabytes(size: int) -> str:
    """Return a size on disk."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def _number(values: Mapping[str, object], name: str, minimum: int = 1) -> int:
    """Return an integer of the form; an invalid one counts as the minimum."""
    value = values.get(name)
    return max(minimum, int(value)) if isinstance(value, int | float) and not isinstance(value, bool) else minimum


def build_forecast(form: TrainForm) -> None:
    """Show the forecast, updated at every change of the form."""
    page = form.page
    shown = gr.HTML(elem_id="disk-forecast")
    names = [
        *("version", "custom_model", "train_csv", "num_epochs", "batch_size", "grad_acumm", "max_steps"),
        *("save_step", "save_n_checkpoints", "enable_ema", "optimizer"),
    ]
    widgets = {name: form.widgets[name] for name in names}

    @show_errors
    def calculate(project: str, page_language: str, **values: object) -> str:
        try:
            result = forecast(values, page.open(project))
        except AmharicTtsError as error:  # shown in place: it is calculated at every change
            return note(describe_error(error, page_language))
        return note(summary(result, page_language))

    changes = [page.project.change, page.language.change, *(widget.change for widget in widgets.values())]  # type: ignore[attr-defined]
    gr.on(
        [page.blocks.load, *changes],
        calculate,
        inputs_kwargs={"project": page.project, "page_language": page.language, **widgets},
        outputs=shown,
        api_name="disk_forecast",
        trigger_mode="always_last",
        **RAW_INPUTS,
        **QUIET_EVENT,
    )
