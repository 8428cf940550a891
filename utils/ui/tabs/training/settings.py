"""The settings of a training: the form, presets, the licence, files of settings, and the start."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import TrainConfig
from utils.config.facts import InvalidSettingsError, SettingProblem
from utils.core import monitor
from utils.core.errors import AmharicTtsError, ConfigError
from utils.dataset import metadata
from utils.studio import runs, training_checks
from utils.studio.downloads import needs_consent
from utils.studio.facts import UsageError
from utils.studio.paths import CONFIGS, Project
from utils.studio.run_history import HistoryCache
from utils.studio.training_checks import forecast_disk
from utils.training.advice import TIERS, Advice, advise, training_data
from utils.ui.html import html
from utils.ui.i18n import choices, describe, field_title, labels, t
from utils.ui.page import PRIVATE_EVENT, PageContext
from utils.ui.settings_form import PRESET, SettingsForm, Values, values_of
from utils.ui.tabs.training import render
from utils.ui.views import error_box, message_box, note
from utils.xtts.facts import LicenceError
from utils.xtts.files import TINY
from utils.xtts.hub import LICENCE, VARIABLE

VERB = "train"
SETTINGS = "settings"  # folder of saved settings, inside that of the uploads

BOXES = ("enable_grad_checkpoint", "enable_sdpa", "enable_mixed_precision", "use_amharic_g2p")
MORE_SWITCHES = (
    "enable_ema warmup_steps use_compile enable_tf32 optimizer enable_lora freeze_first_n_gpt_layers "
    "freeze_conditioning enable_fused_optimizer enable_fused_gelu enable_byte_dropout offload_optimizer "
    "deterministic"
).split()
SWITCHES = (*BOXES, *MORE_SWITCHES)  # whose effect a run reports
FREQUENCY = "save_step"
GROUPS = {
    "": ["version", "num_epochs", FREQUENCY, *BOXES],
    "training.model_and_data": (
        "custom_model language text_mode g2p_backend train_csv eval_csv replay_data replay_share"
    ).split(),
    "training.advanced_learning": (
        "batch_size grad_acumm max_audio_length learning_rate max_steps lr_scheduler warmup_share "
        "embedding_warmup_steps weight_decay gradient_clip dropout label_smoothing text_loss_weight reference "
        "mask_reference early_stopping_patience seed"
    ).split(),
    "training.optimizations": MORE_SWITCHES,
    "training.advanced_optimizations": (
        "checkpoint_every max_mel_length ema_decay ema_device lora_rank lora_alpha lora_dropout lora_targets use_dora"
    ).split(),
    "training.checkpoints_and_memory": (
        "save_minutes save_n_checkpoints eval_step sample_texts score_sentences score_model tracker"
    ).split(),
    "training.advanced_batches": "max_text_length batch_tokens find_batch_size num_workers".split(),
    "training.advanced_gpus": "max_memory_fraction num_processes".split(),
}
SLIDERS = {FREQUENCY: 5000}  # a number beside it, a file or a program may set more
PATHS = ("custom_model", "train_csv", "eval_csv", "replay_data")  # of this computer; no preset sets them
UNTOUCHED = ("num_epochs", "batch_size", "learning_rate", FREQUENCY)  # that tell whether somebody has set up a run
PRESETS = (*TIERS, "lora_6gb", "small_dataset", "tiny_cpu")  # files in configs/


def load_preset(name: str) -> TrainConfig:
    if name not in PRESETS:
        raise UsageError("no_preset", name, ", ".join(PRESETS))
    return TrainConfig.load(CONFIGS / f"{name}.yaml")


def advice_for(project: Project) -> Advice:
    """Return advice for the data of a project on this computer."""
    gib = monitor.read_once(project.root).gpu_memory_total_gib
    return advise(training_data(project.dataset, gib, TrainConfig().version))


def read_settings(values: object, project: Project) -> TrainConfig:
    """Return the settings of a run in a project; the error lists all invalid values."""
    return TrainConfig.parse({**values_of(values), "output_path": str(project.root.resolve())}, source="The form")


def settings_error(error: AmharicTtsError) -> str:
    """Return a box with an error: each problem of a form or a file on a line, whose field the browser marks."""
    if not isinstance(error, InvalidSettingsError):
        return error_box(error)
    items = [_problem_item(problem) for problem in error.problems]
    return html("run.html", "problems", items)


def _problem_item(problem: SettingProblem) -> tuple[str, str]:
    """Return a problem with the names of its field, which is marked, and of the one that it needs."""
    needed = problem.bound.partition(" ")[0] if problem.rule == "needs" else ""
    names = [name for name in (problem.setting, needed) if name in TrainConfig.model_fields]
    titles = {name: f"{field_title(TrainConfig, name)} ({name})" for name in names}
    setting = titles.get(problem.setting, problem.setting)
    bound = problem.bound.replace(needed, titles[needed], 1) if needed in titles else problem.bound
    shown = describe(SettingProblem(problem.rule, setting, problem.value, bound))
    return " ".join(names), shown


def needs_licence(values: Values) -> bool:
    """Tell whether the licence of the published model still has to be accepted."""
    is_published = values.get("version") != TINY and not str(values.get("custom_model") or "").strip()
    return is_published and needs_consent()


def start(config: TrainConfig, project: Project, before: Callable[[], object]) -> runs.Start:
    """Start a run, or queue it behind the active one."""
    if needs_licence(config.model_dump()):
        raise LicenceError(LICENCE, VARIABLE)
    return runs.start(VERB, config, project, before=before)


def list_trainings(project: Project) -> list[runs.Run]:
    return runs.list_runs(project, VERB)


def start_blocked(project: Project, values: Values) -> str:
    """Return why no run can be started with the values of the form, or nothing."""
    for split, name in metadata.FILES.items():
        own = values.get(f"{split}_csv")
        if not Path(str(own or project.dataset / name)).is_file():
            return t("training.dataset_missing", name=own or name)
    return t("training.licence_needed") if needs_licence(values) else ""


def build_form() -> tuple[SettingsForm, gr.Dropdown, gr.HTML]:
    """Lay out the preset, its description, and all settings."""
    titles = choices({"": "preset.none", **{name: f"preset.{name}.title" for name in PRESETS}})
    preset = gr.Dropdown(
        titles, value="", interactive=True, elem_id="preset", elem_classes="more", **labels("training.preset")
    )
    about = gr.HTML(elem_id="preset-about")
    return SettingsForm(TrainConfig, GROUPS, "training", sliders=SLIDERS, fixed=PATHS), preset, about


def connect_form(  # noqa: PLR0913, PLR0917  # the widgets of one form
    page: PageContext,
    form: SettingsForm,
    preset: gr.Dropdown,
    about: gr.HTML,
    forecast: gr.HTML,
    message: gr.HTML,
    histories: HistoryCache,
    selected: Any,  # noqa: ANN401  # the event of the tab, before which clips may have been made
) -> None:
    """Check the settings at every change, and fill them from presets and runs."""

    def check(project: str, settings: Values | None, preset: str | None) -> tuple[Any, ...]:
        values = values_of(settings)
        try:
            opened = page.open(project)
            config = read_settings(values, opened)
            result = forecast_disk(config, opened)
        except AmharicTtsError as error:  # marked at the field; nothing is calculated
            shown = "", settings_error(error)
        else:
            seconds = training_seconds(config, result.updates, opened, histories)
            is_own = config.train_csv or not result.updates
            amount = "" if is_own else note(render.amount(opened, seconds))
            shown = amount + note(render.disk_forecast(result)), ""
        suited = suited_preset(values, preset)
        return *shown, suited or gr.skip(), filled(suited, settings) if suited else gr.skip()

    def filled(name: str, settings: Values | None) -> dict[str, object]:
        """Return what the form shows of a preset; what was edited since ``settings`` stays."""
        paths = {path: values_of(settings).get(path, "") for path in PATHS}
        return form.value(load_preset(name), settings or {}) | paths | {PRESET: name}

    def describe(project: str, name: str) -> str:
        return describe_preset(name, page.open(project))

    def choose(project: str, name: str, settings: Values | None) -> tuple[Any, ...]:
        is_shown = not name or (settings or {}).get(PRESET) == name  # proposed by the page, which has filled the form
        about = describe_preset(name, page.open(project))
        return about, gr.skip() if is_shown else filled(name, settings)

    def restore(project: str, settings: Values) -> tuple[Any, ...]:
        """Fill the form from the newest run of the open project, or from the preset for this computer."""
        opened = page.open(project)
        name, config = "", None
        with contextlib.suppress(AmharicTtsError):  # its settings are damaged
            run = next(iter(list_trainings(opened)), None)
            config = run and TrainConfig.load_own(run.config)
        if not config:
            name = advice_for(opened).preset
            config = load_preset(name)
        return form.value(config, settings) | {PRESET: name}, name, describe_preset(name, opened)

    inputs = [page.project, form.widget, preset]
    events = [selected, page.blocks.load, page.project.change, page.language.change, form.widget.change]
    outputs = [forecast, message, preset, form.widget]
    page.on_latest(events, check, inputs, outputs, api_name="disk_forecast", api_visibility="public")
    # "input" fires again on blur, which would discard later edits; "select" is for the mouse only.
    inputs, outputs = [page.project, preset, form.widget], [about, form.widget]
    page.on(preset.change, choose, inputs, outputs, api_name="preset", show_progress_on=about)
    page.on(page.language.change, describe, [page.project, preset], about, **PRIVATE_EVENT)
    form.connect(page, restore, [preset, about])


def training_seconds(config: TrainConfig, updates: int, project: Project, histories: HistoryCache) -> float | None:
    """Return how long a training will take, at the speed of the newest run with the same model."""
    model = {"version": config.version, "custom_model": config.custom_model}
    same = (run for run in list_trainings(project) if model.items() <= training_checks.read_settings(run).items())
    run = next(same, None)
    if run is None:
        return None
    speeds = [speed for _, speed in histories.read(run).points("speed")]
    return updates * config.batch_size * config.grad_acumm * len(speeds) / sum(speeds) if sum(speeds) > 0 else None


def suited_preset(values: Values, preset: str | None) -> str:
    """Return the preset of the tiny model when that is chosen on an untouched form, else nothing."""
    config = load_preset(preset) if preset in PRESETS else TrainConfig()
    is_untouched = all(values.get(name) == getattr(config, name) for name in UNTOUCHED)
    return "tiny_cpu" if values.get("version") == TINY and preset != "tiny_cpu" and is_untouched else ""


def describe_preset(name: str, project: Project) -> str:
    """Return what a preset is for, and why, if it is the one for this data and computer."""
    if name not in PRESETS:  # the settings are those of a run
        return note("training.settings_of_run")
    description, advice = f"{t(f'preset.{name}.about')} (configs/{name}.yaml)", advice_for(project)
    if name != advice.preset:
        return note(description)
    device = monitor.read_once(project.root).gpu_name or t("training.no_gpu")
    why = t(f"Advice.{next(iter(advice.gaps), advice.promise)}")
    return note(f"{t('training.recommended', device=device)} {description} {why}")


def build_upload(page: PageContext, form: SettingsForm, message: gr.HTML) -> None:
    """Load settings from a file."""
    load = gr.UploadButton(
        t("training.load_settings"),
        file_types=[".yaml", ".yml"],
        elem_id="load-settings",
        elem_classes="more",
        size="sm",
        scale=0,
    )

    def read_file(path: str) -> tuple[Any, ...]:
        try:
            config = TrainConfig.load(Path(path))
        except ConfigError as error:
            return settings_error(error), gr.skip()
        done = message_box("success", t("training.settings_file_loaded", name=Path(path).name))
        return done, form.value(config)

    options: dict[str, Any] = {"api_name": "load_settings", "show_progress_on": message, "preprocess": True}
    page.on(load.upload, read_file, [load], [message, form.widget], **options)
