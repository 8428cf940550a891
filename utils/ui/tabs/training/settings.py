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
from utils.core.wording import describe
from utils.dataset import metadata
from utils.studio import runs, training_checks
from utils.studio.downloads import needs_consent
from utils.studio.facts import UsageError
from utils.studio.paths import CONFIGS, Project
from utils.studio.run_history import HistoryCache
from utils.studio.training_checks import forecast_disk
from utils.training.advice import TIERS, Advice, advise, training_data
from utils.ui.html import html
from utils.ui.i18n import choices, field_title, labels, t
from utils.ui.page import PRIVATE_EVENT, PageContext
from utils.ui.settings_form import PRESET, SettingsForm, Values, values_of
from utils.ui.tabs.training import render
from utils.ui.views import error_box, message_box, note
from utils.xtts.files import TINY

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
    "training.advanced_gpus": "device max_memory_fraction num_processes".split(),
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
    return " ".join(names), describe(SettingProblem(problem.rule, setting, problem.value, bound))


def needs_licence(values: Values) -> bool:
    """Return whether the licence of the chosen model still has to be accepted."""
    return needs_consent(str(values.get("version")), str(values.get("custom_model") or ""))


def start(project: Project, values: Values, before: Callable[[], object]) -> runs.Start:
    """Start a run, or queue it behind the active one."""
    config = read_settings(values, project)
    training_checks.require_ready(config)
    return runs.start(VERB, config, project, before=before)


def start_blocked(project: Project, values: Values) -> str:
    """Return why no run can be started with the values of the form, or nothing."""
    for split, name in metadata.FILES.items():
        own = values.get(f"{split}_csv")
        if not Path(str(own or project.dataset / name)).is_file():
            return t("training.dataset_missing", name=own or name)
    return t("training.licence_needed") if needs_licence(values) else ""


class TrainingForm(SettingsForm):
    """All settings below a preset and its description, filled from presets and runs."""

    def __init__(self, page: PageContext, histories: HistoryCache) -> None:
        self.page, self.histories = page, histories
        titles = choices({"": "preset.none", **{name: f"preset.{name}.title" for name in PRESETS}})
        self.preset = gr.Dropdown(
            titles, value="", interactive=True, elem_id="preset", elem_classes="more", **labels("training.preset")
        )
        self.about = gr.HTML(elem_id="preset-about")
        super().__init__(TrainConfig, GROUPS, "training", sliders=SLIDERS, fixed=PATHS)

    def connect_checks(
        self,
        forecast: gr.HTML,
        message: gr.HTML,
        selected: Any,  # noqa: ANN401  # the event of the tab, before which clips may have been made
    ) -> None:
        """Check the settings at every change, and fill them from presets and runs."""
        page = self.page
        preset = self.preset
        about = self.about
        events = [selected, page.blocks.load, page.project.change, page.language.change, self.widget.change]
        inputs, outputs = [page.project, self.widget, preset], [forecast, message, preset, self.widget]
        page.on_latest(events, self._check, inputs, outputs, api_name="disk_forecast", api_visibility="public")
        # "input" fires again on blur, which would discard later edits; "select" is for the mouse only.
        inputs, outputs = [page.project, preset, self.widget], [about, self.widget]
        page.on(preset.change, self._choose, inputs, outputs, api_name="preset", show_progress="hidden")
        page.on(page.language.change, self._describe, [page.project, preset], about, **PRIVATE_EVENT)
        self.connect(page, self._restore, [preset, about])

    def _check(self, project: str, settings: Values, preset: str) -> tuple[Any, ...]:
        values = values_of(settings)
        forecast = ""
        problems = ""
        try:
            forecast = self._forecast(values, self.page.open(project))
        except AmharicTtsError as error:  # marked at the field; nothing is calculated
            problems = settings_error(error)
        if suited := suited_preset(values, preset):
            return forecast, problems, suited, self._filled(suited, settings)
        return forecast, problems, gr.skip(), gr.skip()

    def _forecast(self, values: Values, project: Project) -> str:
        """Return how much there is to train on, how long it takes, and the disk space that it needs."""
        config = read_settings(values, project)
        result = forecast_disk(config, project)
        seconds = training_seconds(config, result.updates, project, self.histories)
        is_own = config.train_csv or not result.updates
        return ("" if is_own else note(render.amount(project, seconds))) + note(render.disk_forecast(result))

    def _filled(self, name: str, settings: Values) -> dict[str, object]:
        """Return what the form shows of a preset; what was edited since ``settings`` stays."""
        paths = {path: values_of(settings).get(path, "") for path in PATHS}
        return self.value(load_preset(name), settings) | paths | {PRESET: name}

    def _describe(self, project: str, name: str) -> str:
        return describe_preset(name, self.page.look(project))

    def _choose(self, project: str, name: str, settings: Values) -> tuple[Any, ...]:
        is_shown = not name or (settings or {}).get(PRESET) == name  # proposed by the page, which has filled the form
        return self._describe(project, name), gr.skip() if is_shown else self._filled(name, settings)

    def _restore(self, project: str, settings: Values) -> tuple[Any, ...]:
        """Fill the form from the newest run of the open project, or from the preset for this computer."""
        opened = self.page.look(project)
        name, config = "", None
        with contextlib.suppress(AmharicTtsError):  # its settings are damaged
            run = runs.newest_run(opened, VERB)
            config = run and TrainConfig.load_own(run.config)
        if not config:
            name = advice_for(opened).preset
            config = load_preset(name)
        return self.value(config, settings) | {PRESET: name}, name, describe_preset(name, opened)

    def build_upload(self, message: gr.HTML) -> None:
        """Load settings from a file."""
        load = gr.UploadButton(
            t("training.load_settings"),
            file_types=[".yaml", ".yml"],
            elem_id="load-settings",
            elem_classes="more",
            size="sm",
            scale=0,
        )
        self.page.on(
            load.upload,
            self._read_file,
            [load],
            [message, self.widget],
            api_name="load_settings",
            show_progress="hidden",
            preprocess=True,
        )

    def _read_file(self, path: str) -> tuple[Any, ...]:
        try:
            config = TrainConfig.load(Path(path))
        except ConfigError as error:
            return settings_error(error), gr.skip()
        done = message_box("success", t("training.settings_file_loaded", name=Path(path).name))
        return done, self.value(config)


def training_seconds(config: TrainConfig, updates: int, project: Project, histories: HistoryCache) -> float | None:
    """Return how long a training will take, at the speed of the newest run with the same model."""
    model = {"version": config.version, "custom_model": config.custom_model}
    trainings = runs.list_runs(project, VERB)
    same = (run for run in trainings if model.items() <= training_checks.read_settings(run).items())
    run = next(same, None)
    if run is None:
        return None
    speeds = [speed for _, speed in histories.read(run).points("speed")]
    return updates * config.batch_size * config.grad_acumm * len(speeds) / sum(speeds) if sum(speeds) > 0 else None


def suited_preset(values: Values, preset: str) -> str:
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
