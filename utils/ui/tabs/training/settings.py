"""The settings of a training run: the form, presets, files, and what a start requires."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
from utils.config import TrainConfig
from utils.config.flags import command_line
from utils.core.errors import AmharicTtsError, ConfigError
from utils.core.paths import CONFIGS, UPLOADS, Project
from utils.core.storage import make_folder, write_atomically
from utils.dataset import metadata
from utils.runs import monitor
from utils.ui.form import build_field, info
from utils.ui.i18n import choices, describe_problems, field_title, heading, labels, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, notify, show_errors
from utils.ui.run_panel import command_box
from utils.ui.views import error_box, message_box, note
from utils.xtts.files import TINY
from utils.xtts.hub import LICENCE, LicenceError, accept_licence, licence_accepted

VERB = "train"
SETTINGS = "settings"  # folder of saved settings, inside that of the uploads

PROJECT = ("output_path",)  # its widget is the project picker
MAIN = ("version", "num_epochs")
BOXES = ("enable_grad_checkpoint", "enable_sdpa", "enable_mixed_precision", "use_amharic_g2p")
MORE_SWITCHES = (
    *("enable_ema", "warmup_steps", "use_compile", "enable_tf32", "optimizer", "enable_lora"),
    *("freeze_first_n_gpt_layers", "freeze_conditioning", "enable_fused_optimizer", "enable_fused_gelu"),
    *("enable_byte_dropout", "offload_optimizer", "step_in_backward"),
)
SWITCHES = (*BOXES[:-1], *MORE_SWITCHES)  # whose effect a run reports
FREQUENCY = "save_step"
MAX_FREQUENCY = 5000  # of the slider; a file or a program may set more
ADVANCED = {
    "training.model_and_data": ("custom_model", "language", "text_mode", "g2p_backend", "train_csv", "eval_csv"),
    "training.advanced_learning": (
        *("batch_size", "grad_acumm", "max_audio_length", "learning_rate", "max_steps", "lr_scheduler"),
        *("warmup_share", "embedding_warmup_steps", "weight_decay", "gradient_clip", "dropout", "label_smoothing"),
        *("text_loss_weight", "reference", "mask_reference", "early_stopping_patience", "seed"),
    ),
    "training.optimizations": MORE_SWITCHES,
    "training.advanced_optimizations": (
        *("checkpoint_every", "attention_kernel", "max_mel_length", "ema_decay", "ema_device"),
        *("lora_rank", "lora_alpha", "lora_dropout", "lora_targets", "use_dora"),
    ),
    "training.checkpoints_and_memory": (
        "save_minutes",
        "save_n_checkpoints",
        "eval_step",
        "sample_texts",
        "score_sentences",
        "score_model",
        "tracker",
    ),
    "training.advanced_batches": ("max_text_length", "batch_tokens", "find_batch_size", "num_workers"),
    "training.advanced_gpus": ("max_memory_fraction", "num_processes", "sharding"),
}
RECOMMENDED = {"standard": 19.0, "t4": 14.0, "memory_optimized": 11.0, "extreme_memory_optimized": 7.5}  # by GiB of GPU
UNTOUCHED = ("num_epochs", "batch_size", "learning_rate", FREQUENCY)  # that tell whether somebody has set up a run
PATHS = {"custom_model", "train_csv", "eval_csv", *PROJECT}  # of this computer; no preset sets them
SHOWN = (*MAIN, *BOXES, FREQUENCY, *(name for names in ADVANCED.values() for name in names))

TIERS = (  # presets by the memory that they need
    *("conservative", "balanced", "aggressive", "standard"),
    *("t4", "memory_optimized", "extreme_memory_optimized", "lora_6gb"),
)
PRESETS = (*TIERS, "amharic", "amharic_200hr", "small_dataset", "tiny_cpu")  # files in configs/


# Hides the settings, and the groups, in which the text does not occur.
SEARCH = """text => {
  const wanted = text.trim().toLowerCase();
  const matches = element => element.textContent.toLowerCase().includes(wanted);
  for (const group of document.querySelectorAll("#training-tab .group")) {
    const settings = [...group.querySelectorAll("[id^=training-]")];
    for (const setting of settings) setting.closest(".fields > .form > *, .fields > *").hidden = !matches(setting);
    group.hidden = !settings.some(matches);
  }
}"""


def load_preset(name: str) -> TrainConfig:
    if name not in PRESETS:
        raise ConfigError(f"There is no preset {name!r}.", hint=f"Available presets: {', '.join(PRESETS)}.")
    return TrainConfig.load(CONFIGS / f"{name}.yaml")


def read_settings(values: Mapping[str, object], project: Project) -> TrainConfig:
    """Return the settings of a run in a project; the error lists all invalid values."""
    return TrainConfig.parse({**values, "output_path": str(project.root.resolve())}, source="The form")


def save_settings(config: TrainConfig, output: Path, project: str) -> Path:
    folder = output / UPLOADS.name / SETTINGS
    make_folder(folder)
    path = folder / f"{project}-train-{time.strftime('%Y%m%d-%H%M%S')}.yaml"
    write_atomically(path, f"# python -m utils train --config {path.name}\n{config.to_yaml()}")
    return path


def settings_error(error: AmharicTtsError, language: str) -> str:
    """Return a box with an error: each problem of a form or a file on a line, whose field the browser marks."""

    def item(problem: str) -> str:
        name = re.split(r"\W", problem, maxsplit=1)[0]
        if name in TrainConfig.model_fields:
            problem = f"{field_title(TrainConfig, name, language)} ({name}){problem.removeprefix(name)}"
        return f'<li data-setting="{escape(name)}">{escape(problem)}</li>'

    if not isinstance(error, ConfigError):
        return error_box(error, language)
    items = "".join(map(item, describe_problems(error, language)))
    title = escape(t("training.invalid_settings", language))
    return f'<div class="message error" role="alert"><p><b>{title}</b></p><ul>{items}</ul></div>'


def needs_licence(version: str, custom_model: str = "") -> bool:
    """Tell whether the licence of the published model still has to be accepted."""
    return version != TINY and not custom_model.strip() and not licence_accepted()


def start(config: TrainConfig, project: Project) -> runs.Run:
    """Start a run, or return the active one."""
    if needs_licence(config.version, config.custom_model):
        raise LicenceError(
            f"The {LICENCE} of the base model has not been accepted yet.",
            hint="Accept it below the base model, or choose the tiny base model.",
        )
    return runs.start(VERB, config, project)


def list_trainings(project: Project) -> list[runs.Run]:
    return runs.list_runs(project, VERB)


def start_blocked(project: Project, values: Mapping[str, str], language: str) -> str:
    """Return why no run can be started with version, custom_model, train_csv and eval_csv of the form, or nothing."""
    if run := runs.active_run(project, VERB):
        return t("common.name_is_running", language, name=run.name)
    for split, name in metadata.FILES.items():
        path = Path(values.get(f"{split}_csv") or project.dataset / name)
        if not path.is_file():
            return t("training.dataset_missing", language, name=path)
    if needs_licence(values.get("version") or "", values.get("custom_model") or ""):
        return t("training.licence_needed", language)
    return ""


class TrainForm:
    """The widgets of the form."""

    def __init__(self, page: PageContext) -> None:
        self.page = page
        self.widgets: dict[str, Any] = {}  # by name of the field, in the order of the form
        self.hints: dict[str, gr.HTML] = {}  # what each switch does on this device, by name of its field
        self.preset: gr.Dropdown
        self.about: gr.HTML  # the chosen preset
        self.changed: gr.HTML  # the settings that differ from the defaults
        self.licence: tuple[gr.Column, gr.Checkbox]

    @property
    def inputs(self) -> dict[str, Any]:
        """Return what a handler of the whole form reads."""
        return {"project": self.page.project, "page_language": self.page.language, **self.widgets}

    @property
    def outputs(self) -> list[Any]:
        """Return the widgets that ``form_values`` fills, in its order."""
        return [self.widgets[name] for name in SHOWN]

    def handler(
        self, act: Callable[[Project, TrainConfig, str], Any], on_error: Callable[[str], Any] = str
    ) -> Callable[..., Any]:
        """Return a handler of the whole form, which calls ``act`` with project, settings and language.

        An error becomes a box; ``on_error`` makes the values of all outputs from it.
        """

        @show_errors
        def handle(project: str, page_language: str, **values: object) -> Any:  # noqa: ANN401  # what act returns
            try:
                opened = self.page.open(project)
                return act(opened, read_settings(values, opened), page_language)
            except AmharicTtsError as error:
                return on_error(settings_error(error, page_language))

        return handle

    def lay_out(self, names: Sequence[str], classes: str = "fields") -> None:
        """Lay out the widgets of some fields, side by side where they fit."""
        with gr.Row(elem_classes=classes):
            for name in names:
                is_switch = name in SWITCHES
                with gr.Column(min_width=200) if is_switch else nullcontext():
                    self.widgets[name] = frequency_slider() if name == FREQUENCY else build_field(TrainConfig, name)
                    self.widgets[name].elem_id = f"training-{name}"
                    if is_switch:
                        self.hints[name] = gr.HTML(elem_classes="switch-hint")


def form_values(config: TrainConfig, *, keep_paths: bool) -> list[Any]:
    """Return the value of every widget; with ``keep_paths`` the paths on the form stay as they are."""
    return [gr.skip() if keep_paths and name in PATHS else getattr(config, name) for name in SHOWN]


def frequency_slider() -> gr.Slider:
    value = TrainConfig.model_fields[FREQUENCY].default
    label, text = field_title(TrainConfig, FREQUENCY), info(TrainConfig, FREQUENCY)
    return gr.Slider(1, MAX_FREQUENCY, value=value, step=1, interactive=True, label=label, info=text)


def build_main(form: TrainForm) -> None:
    """Lay out what everybody decides: model, preset, epochs, four boxes, and how often to save."""
    with gr.Row():
        form.widgets["version"] = build_field(TrainConfig, "version")
        titles = choices({name: f"preset.{name}.title" for name in PRESETS})
        preset = gr.Dropdown(titles, value=None, elem_id="preset", interactive=True, **labels("training.preset"))
        form.widgets["num_epochs"] = build_field(TrainConfig, "num_epochs")
    for name in MAIN:
        form.widgets[name].elem_id = f"training-{name}"
    about = gr.HTML(elem_id="preset-about")
    licence = build_licence()
    form.lay_out([*BOXES, FREQUENCY], classes="fields boxes")
    form.preset, form.about, form.licence = preset, about, licence


def build_licence() -> tuple[gr.Column, gr.Checkbox]:
    with gr.Column(visible=False, elem_id="licence") as box:
        gr.Markdown(t("training.licence_notice"))
        return box, gr.Checkbox(interactive=True, **labels("training.accept_licence"))


def connect_licence(form: TrainForm) -> None:
    """Ask for consent to the licence of a published base model, once on a computer."""
    box, agree = form.licence
    chosen = [form.widgets["version"], form.widgets["custom_model"]]

    def show_licence(version: str, custom_model: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(visible=needs_licence(version, custom_model or ""))

    @show_errors
    def accept(agreed: bool, version: str, custom_model: str, language: str) -> Any:  # noqa: ANN401, FBT001  # positional in gradio
        if agreed:
            accept_licence()
            notify(t("common.consent_saved", language))
        return show_licence(version, custom_model)

    changes = [widget.change for widget in chosen]
    gr.on([form.page.blocks.load, *changes], show_licence, chosen, box, **PRIVATE_EVENT)
    agree.input(accept, [agree, *chosen, form.page.language], box, api_name="accept_licence")


def recommended_preset(gpu_gib: float | None) -> str:
    """Return the preset for a GPU with this much memory, or for none."""
    if gpu_gib is None:
        return "tiny_cpu"
    return next((name for name, least in RECOMMENDED.items() if gpu_gib >= least), "lora_6gb")


def connect_presets(form: TrainForm) -> None:
    """Fill the form from a preset; choosing the tiny model on an untouched form chooses its preset."""

    def describe(name: str, page_language: str) -> str:
        if name not in PRESETS:  # the settings are those of a run
            return ""
        description = f"{t(f'preset.{name}.about', page_language)} (configs/{name}.yaml)"
        gpu = monitor.read_once(form.page.output)
        if name != recommended_preset(gpu.gpu_memory_total_gib):
            return note(description)
        device = gpu.gpu_name or t("training.no_gpu", page_language)
        return note(f"{t('training.recommended', page_language, device=device)} {description}")

    @show_errors
    def choose(name: str, page_language: str) -> list[Any]:
        values = form_values(load_preset(name), keep_paths=True) if name else [gr.skip()] * len(form.outputs)
        return [describe(name, page_language), *values]

    def suit(version: str, preset: str | None, *values: object) -> Any:  # noqa: ANN401  # gradio's updates have no type
        config = load_preset(preset) if preset in PRESETS else TrainConfig()
        is_untouched = [getattr(config, name) for name in UNTOUCHED] == list(values)
        return gr.update(value="tiny_cpu") if version == TINY and is_untouched else gr.skip()

    # "input" fires again on blur, which would discard later edits; "select" is for the mouse only.
    inputs, outputs = [form.preset, form.page.language], [form.about, *form.outputs]
    form.preset.change(choose, inputs, outputs, api_name="preset", show_progress_on=form.about, **RAW_INPUTS)
    form.page.language.change(describe, inputs, form.about, **RAW_INPUTS, **PRIVATE_EVENT)
    version = form.widgets["version"]
    inputs = [version, form.preset, *(form.widgets[name] for name in UNTOUCHED)]
    version.change(suit, inputs, form.preset, **RAW_INPUTS, **PRIVATE_EVENT)


def build_settings(form: TrainForm) -> None:
    """Lay out all other settings in groups, with a search, and a button that brings back the defaults."""
    with gr.Row(elem_classes="beside"):
        search = gr.Textbox(max_lines=1, elem_id="search-settings", **labels("training.search"))
        reset = gr.Button(t("training.reset"), elem_id="reset-settings", min_width=160, scale=0)
    form.changed = gr.HTML(elem_id="changed-settings")
    for title, names in ADVANCED.items():
        with gr.Column(elem_classes="group"):
            gr.Markdown(heading(title, level=3))
            form.lay_out(names)

    def defaults() -> list[Any]:
        return form_values(TrainConfig(), keep_paths=True)

    search.input(None, search, None, js=SEARCH, api_visibility="private")
    reset.click(defaults, None, form.outputs, **PRIVATE_EVENT)


def build_files(form: TrainForm) -> None:
    """Show the command, save the settings to a file, and load them from one."""
    page = form.page
    with gr.Row():
        show = gr.Button(t("common.show_command"), elem_id="show-command", min_width=160)
        save = gr.Button(t("training.save_settings"), elem_id="save-settings", min_width=160)
        load = gr.UploadButton(
            t("training.load_settings"), file_types=[".yaml", ".yml"], elem_id="load-settings", min_width=160
        )
    message = gr.HTML(elem_id="settings-errors")
    command = command_box("command", visible=False)
    file = gr.File(label=t("common.settings"), visible=False, interactive=False, elem_id="settings-file")

    def write_command(_project: Project, config: TrainConfig, _language: str) -> tuple[Any, ...]:
        return "", gr.update(value=command_line(VERB, config), visible=True)

    def write_file(project: Project, config: TrainConfig, _language: str) -> tuple[Any, ...]:
        path = save_settings(config, page.output, project.root.name)
        return "", gr.update(value=str(path), visible=True)

    def hide(error: str) -> tuple[Any, ...]:
        return error, gr.update(visible=False)

    @show_errors
    def read_file(path: str, page_language: str) -> list[Any]:
        try:
            config = TrainConfig.load(Path(path))
        except ConfigError as error:
            return [settings_error(error, page_language), *[gr.skip()] * len(SHOWN)]
        done = message_box("success", t("training.settings_file_loaded", page_language, name=Path(path).name))
        return [done, *form_values(config, keep_paths=False)]

    options: dict[str, Any] = {"inputs_kwargs": form.inputs, **RAW_INPUTS}
    write = form.handler(write_command, hide)
    show.click(write, outputs=[message, command], api_name="train_command", **options)
    save.click(form.handler(write_file, hide), outputs=[message, file], api_name="save_settings", **options)
    inputs, outputs = [load, page.language], [message, *form.outputs]
    load.upload(read_file, inputs, outputs, api_name="load_settings", show_progress_on=message)


def connect_restore(form: TrainForm) -> None:
    """Fill the form from the newest run of the open project, or from the preset for this computer."""
    page = form.page

    @show_errors
    def restore(project: str) -> list[Any]:
        try:
            run = next(iter(list_trainings(page.open(project))), None)
            if run:
                return [None, *form_values(TrainConfig.load(run.config), keep_paths=False)]
        except AmharicTtsError:  # not a valid name, or a run of an older version
            pass
        preset = recommended_preset(monitor.read_once(page.output).gpu_memory_total_gib)
        return [preset, *form_values(load_preset(preset), keep_paths=False)]

    events = [page.blocks.load, page.project.change]
    gr.on(events, restore, page.project, [form.preset, *form.outputs], **RAW_INPUTS, **PRIVATE_EVENT)


def changed_settings(values: Mapping[str, object], language: str) -> str:
    """Name the settings that differ from the defaults."""
    fields = TrainConfig.model_fields
    names = [field_title(TrainConfig, name, language) for name in SHOWN if values.get(name) != fields[name].default]
    return t("training.changed_settings", language, names=", ".join(names)) if names else ""
