"""Settings of a training run: their order on the form, the presets, and what a start requires."""

import re
import time
from collections.abc import Mapping
from pathlib import Path

from utils import runs
from utils.config import TrainConfig
from utils.config.flags import command_line
from utils.core.errors import AmharicTtsError, ConfigError
from utils.core.paths import CONFIGS, UPLOADS, Project
from utils.core.storage import make_folder, write_atomically
from utils.dataset import metadata
from utils.ui.i18n import describe_problems, field_title, t
from utils.ui.views import error_box, message_list
from utils.xtts.files import BUILT_IN
from utils.xtts.licence import LICENCE, LicenceError, licence_accepted

VERB = "train"
SETTINGS = "settings"  # folder of saved settings, inside that of the uploads

PROJECT = ("output_path",)  # its widget is the project picker
MODEL = ("version", "custom_model", "language", "use_amharic_g2p")
LISTS = ("train_csv", "eval_csv")
BASIC = ("num_epochs", "batch_size", "grad_acumm", "max_audio_length", "learning_rate")
FIRST_SWITCHES = ("enable_grad_checkpoint", "enable_sdpa", "enable_mixed_precision")
SWITCHES = (
    *FIRST_SWITCHES,
    "enable_ema",
    "warmup_steps",
    "use_compile",
    "enable_tf32",
    "optimizer",
    "enable_lora",
    "freeze_first_n_gpt_layers",
    "freeze_conditioning",
    "enable_fused_optimizer",
    "enable_fused_gelu",
    "enable_byte_dropout",
    "offload_optimizer",
    "step_in_backward",
)
CHECKPOINTS = ("save_step", "save_n_checkpoints", "eval_step", "sample_texts", "tracker")
ADVANCED = {
    "training.advanced_optimizations": (
        "checkpoint_every",
        "attention_kernel",
        "max_mel_length",
        "ema_decay",
        "ema_device",
        "lora_rank",
        "lora_alpha",
        "lora_dropout",
        "lora_targets",
        "use_dora",
    ),
    "training.advanced_learning": (
        "max_steps",
        "lr_scheduler",
        "warmup_share",
        "embedding_warmup_steps",
        "weight_decay",
        "gradient_clip",
        "dropout",
        "label_smoothing",
        "text_loss_weight",
        "mask_reference",
        "early_stopping_patience",
        "seed",
    ),
    "training.advanced_batches": ("max_text_length", "batch_tokens", "num_workers"),
    "training.advanced_gpus": ("max_memory_fraction", "num_processes", "sharding"),
}
PATHS = {"custom_model", "train_csv", "eval_csv", *PROJECT}  # of this computer; no preset sets them
SHOWN = (
    *MODEL,
    *LISTS,
    *BASIC,
    *SWITCHES,
    *(name for names in ADVANCED.values() for name in names),
    *CHECKPOINTS,
)

TIERS = (
    "conservative",
    "balanced",
    "aggressive",
    "standard",
    "t4",
    "memory_optimized",
    "extreme_memory_optimized",
    "lora_6gb",
)
PRESETS = (*TIERS, "amharic", "amharic_200hr", "small_dataset", "tiny_cpu")  # files in configs/


def preset_choices(language: str) -> list[tuple[str, str]]:
    """Return the presets as (title, name)."""
    return [(preset_title(name, language), name) for name in PRESETS]


def preset_title(name: str, language: str) -> str:
    """Return the title of a preset."""
    return t(f"preset.{name}.title", language)


def preset_description(name: str, language: str) -> str:
    """Return the description of a preset."""
    return t(f"preset.{name}.about", language)


def load_preset(name: str) -> TrainConfig:
    """Read a preset."""
    if name not in PRESETS:
        raise ConfigError(f"There is no preset {name!r}.", hint=f"Available presets: {', '.join(PRESETS)}.")
    return TrainConfig.load(CONFIGS / f"{name}.yaml")


def read_settings(values: Mapping[str, object], project: Project) -> TrainConfig:
    """Return the settings of a run in a project; the error lists all invalid values."""
    return TrainConfig.parse({**values, "output_path": str(project.root.resolve())}, source="The form")


def command(config: TrainConfig) -> str:
    """Return the command that starts the same run."""
    return command_line(VERB, config)


def save_settings(config: TrainConfig, output: Path, project: str) -> Path:
    """Write settings to a file for download."""
    folder = output / UPLOADS.name / SETTINGS
    make_folder(folder)
    path = folder / f"{project}-train-{time.strftime('%Y%m%d-%H%M%S')}.yaml"
    write_atomically(path, f"# python -m utils train --config {path.name}\n{config.to_yaml()}")
    return path


def needs_licence(version: str, custom_model: str = "") -> bool:
    """Tell whether the licence of the published model still has to be accepted."""
    return version not in BUILT_IN and not custom_model.strip() and not licence_accepted()


def start(config: TrainConfig, project: Project) -> runs.Run:
    """Start a run, or return the active one."""
    if needs_licence(config.version, config.custom_model):
        raise LicenceError(
            f"The {LICENCE} of the base model has not been accepted yet.",
            hint="Accept it under Model and data, or choose the tiny base model.",
        )
    return runs.start(VERB, config, project)


def list_trainings(project: Project) -> list[runs.Run]:
    """Return the training runs of a project, newest first."""
    return runs.list_runs(project, VERB)


def start_blocked(project: Project, values: Mapping[str, str], language: str) -> str:
    """Return why no run can be started; empty when one can.

    Args:
        project: The open project.
        values: version, custom_model, train_csv and eval_csv of the form.
        language: Of the page.
    """
    if run := runs.active_run(project, VERB):
        return t("common.name_is_running", language, name=run.name)
    lists = {"train": values.get("train_csv"), "eval": values.get("eval_csv")}
    for split, name in metadata.FILES.items():
        path = Path(given) if (given := lists[split]) else project.dataset / name
        if not path.is_file():
            return t("training.dataset_missing", language, name=path)
    if needs_licence(values.get("version") or "", values.get("custom_model") or ""):
        return t("training.licence_needed", language)
    return ""


def settings_error(error: AmharicTtsError, language: str) -> str:
    """Return a box with an error: each problem of a form or a file on a line, under the title of its field."""
    if not isinstance(error, ConfigError):
        return error_box(error, language)
    problems = [_with_title(problem, language) for problem in describe_problems(error, language)]
    return message_list("error", t("training.invalid_settings", language), problems)


def _with_title(problem: str, language: str) -> str:
    name = re.split(r"\W", problem, maxsplit=1)[0]
    if name not in TrainConfig.model_fields:
        return problem
    return f"{field_title(TrainConfig, name, language)} ({name}){problem.removeprefix(name)}"
