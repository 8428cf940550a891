"""The form of a training: every field of its settings once, the presets, and what each switch does here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component

from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError, ConfigError
from utils.ui import error_text
from utils.ui.form import build_form
from utils.ui.i18n import field_title, t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS, PageContext, notify, show_errors
from utils.ui.run_panel import command_box
from utils.ui.tabs.training import fields, forecast, presets, start
from utils.ui.views import error_box, message_box, message_list, note
from utils.xtts.licence import accept_licence

# The browser's own memory, by hand: gradio's BrowserState reads nothing before its tab is in sight, as after a reload.
READ = "() => [JSON.parse(localStorage.getItem('amharic-training-form') ?? '{}')]"
KEEP = """(value) => {
  if (!window.trainingFormIsBack) return;
  const kept = JSON.parse(localStorage.getItem("amharic-training-form") ?? "{}");
  localStorage.setItem("amharic-training-form", JSON.stringify({ ...kept, %s: value }));
}"""


@dataclass(frozen=True)
class TrainForm:
    """The widgets of the form.

    Attributes:
        page: The frame around it.
        widgets: By the name of the field, in the order in which they stand.
        hints: What each switch does, by the name of its field.
    """

    page: PageContext
    widgets: dict[str, Component] = field(default_factory=dict)
    hints: dict[str, gr.HTML] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """Return what a handler of the whole form reads."""
        return {"project": self.page.project, "page_language": self.page.language, **self.widgets}

    @property
    def outputs(self) -> list[Any]:
        """Return the widgets that ``fill`` fills, in its order."""
        return [self.widgets[name] for name in fields.SHOWN]

    def lay(self, names: Sequence[str]) -> None:
        """Lay out the widgets of some fields, side by side where there is room."""
        with gr.Row(elem_classes="fields"):
            for name in names:
                if name in fields.SWITCHES:
                    with gr.Column():
                        self._widget(name)
                        self.hints[name] = gr.HTML(elem_classes="switch-hint")
                else:
                    self._widget(name)

    def _widget(self, name: str) -> None:
        self.widgets.update(build_form(TrainConfig, only=[name]))
        self.widgets[name].elem_id = f"training-{name}"


def fill(config: TrainConfig, *, keep_paths: bool) -> list[Any]:
    """Return what every widget shall hold; paths of this computer may stay as they are."""
    values = fields.filled(config, keep_paths=keep_paths)
    return [values.get(name, gr.skip()) for name in fields.SHOWN]


def build_model(form: TrainForm) -> None:
    """Ask what is trained, and for the consent to its licence where that is needed."""
    form.lay(fields.MODEL)
    with gr.Column(visible=False, elem_id="licence") as box:
        gr.Markdown(t("training.licence_notice"))
        agree = gr.Checkbox(
            label=t("training.accept_licence"),
            info=t("training.accept_licence_hint"),
            interactive=True,
        )
    with gr.Accordion(t("training.other_metadata"), open=False):
        form.lay(fields.LISTS)
    chosen = [form.widgets["version"], form.widgets["custom_model"]]

    def look(version: str, custom_model: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(visible=start.needs_licence(version, custom_model or ""))

    @show_errors
    def consent(agreed: bool, version: str, custom_model: str, language: str) -> Any:  # noqa: ANN401, FBT001  # gradio gives values by place
        if agreed:
            accept_licence()
            notify(t("common.consent_saved", language))
        return look(version, custom_model)

    gr.on([form.page.blocks.load, *(widget.change for widget in chosen)], look, chosen, box, **PRIVATE_EVENT)  # type: ignore[attr-defined]
    agree.input(consent, [agree, *chosen, form.page.language], box, api_name="accept_licence")


def build_presets() -> tuple[gr.Dropdown, gr.HTML]:
    """Offer the presets."""
    preset = gr.Dropdown(
        presets.choices("en"),
        value=None,
        label=t("training.preset"),
        info=t("training.preset_hint"),
        elem_id="preset",
        interactive=True,
    )
    about = gr.HTML(elem_id="preset-about")
    return preset, about


def tie_presets(form: TrainForm, preset: gr.Dropdown, about: gr.HTML) -> None:
    """Fill the form with the preset that is chosen, and offer the presets in the language of the page."""
    language = form.page.language

    @show_errors
    def choose(name: str, page_language: str) -> list[Any]:
        if name not in presets.PRESETS:
            raise ConfigError(f"There is no preset {name!r}.", hint=f"There are: {', '.join(presets.PRESETS)}.")
        words = f"{presets.about(name, page_language)} (configs/{name}.yaml)"
        return [note(words), *fill(presets.load(name), keep_paths=True)]

    # "input" comes once more when it is left, and what was typed since would be lost; "select" is for the mouse alone.
    preset.change(
        choose,
        [preset, language],
        [about, *form.outputs],
        api_name="preset",
        show_progress_on=about,
        **RAW_INPUTS,
    )
    language.change(lambda spoken: gr.update(choices=presets.choices(spoken)), language, preset, **PRIVATE_EVENT)


def build_settings(form: TrainForm) -> None:
    """Lay out all other settings in groups."""
    form.lay(fields.BASIC)
    with gr.Accordion(t("training.optimizations"), open=True, elem_id="switches"):
        form.lay(fields.FIRST_SWITCHES)
        form.lay(fields.SWITCHES[len(fields.FIRST_SWITCHES) :])
    for title, names in fields.ADVANCED.items():
        with gr.Accordion(t(title), open=False):
            form.lay(names)


def build_checkpoints(form: TrainForm) -> None:
    """Ask how often is saved and how much is kept, and say what that takes of the disk."""
    form.lay(fields.CHECKPOINTS)
    shown = gr.HTML(elem_id="disk-forecast")
    names = [
        *("version", "custom_model", "train_csv", "num_epochs", "batch_size", "grad_acumm", "max_steps"),
        *("save_step", "save_n_checkpoints", "enable_ema", "optimizer"),
    ]

    @show_errors
    def calculate(project: str, page_language: str, **values: object) -> str:
        try:
            found = forecast.forecast(values, form.page.open(project))
        except AmharicTtsError as error:  # asked at every change: it stays in its place
            return note(error_text.describe(error, page_language))
        return note(forecast.sentence(found, page_language))

    page = form.page
    gr.on(
        [
            page.blocks.load,
            page.project.change,
            page.language.change,
            *(form.widgets[name].change for name in names),  # type: ignore[attr-defined]
        ],
        calculate,
        inputs_kwargs={
            "project": page.project,
            "page_language": page.language,
            **{name: form.widgets[name] for name in names},
        },
        outputs=shown,
        api_name="disk_forecast",
        trigger_mode="always_last",
        **RAW_INPUTS,
        **QUIET_EVENT,
    )


def build_files(form: TrainForm) -> None:
    """Show the command, save the settings to a file and load them from one."""
    page = form.page
    with gr.Row():
        show = gr.Button(t("common.show_command"), elem_id="show-command", min_width=160)
        save = gr.Button(t("training.save_settings"), elem_id="save-settings", min_width=160)
        load = gr.UploadButton(
            t("training.load_settings"), file_types=[".yaml", ".yml"], elem_id="load-settings", min_width=160
        )
    said = gr.HTML(elem_id="settings-errors")
    command = command_box("command", visible=False)
    file = gr.File(label=t("common.settings"), visible=False, interactive=False, elem_id="settings-file")

    def read(project: str, values: Mapping[str, object]) -> TrainConfig:
        return start.complete(values, page.open(project))

    @show_errors
    def write_command(project: str, page_language: str, **values: object) -> tuple[Any, ...]:
        try:
            return "", gr.update(value=start.command(read(project, values)), visible=True)
        except ConfigError as error:
            return faulty(error, page_language), gr.update(visible=False)

    @show_errors
    def write_file(project: str, page_language: str, **values: object) -> tuple[Any, ...]:
        try:
            path = start.save_settings(read(project, values), page.output, page.open(project).root.name)
        except ConfigError as error:
            return faulty(error, page_language), gr.update(visible=False)
        return "", gr.update(value=str(path), visible=True)

    @show_errors
    def read_file(path: str, page_language: str) -> list[Any]:
        try:
            config = TrainConfig.load(Path(path))
        except ConfigError as error:
            return [faulty(error, page_language), *[gr.skip()] * len(fields.SHOWN)]
        sentence = "training.settings_file_loaded"
        done = message_box("success", t(sentence, page_language, name=Path(path).name))
        return [done, *fill(config, keep_paths=False)]

    show.click(write_command, inputs_kwargs=form.given, outputs=[said, command], api_name="train_command", **RAW_INPUTS)
    save.click(write_file, inputs_kwargs=form.given, outputs=[said, file], api_name="save_settings", **RAW_INPUTS)
    load.upload(
        read_file, [load, page.language], [said, *form.outputs], api_name="load_settings", show_progress_on=said
    )


def faulty(error: AmharicTtsError, language: str) -> str:
    """Show what is wrong: every fault of a form or a file in a line, under the name that the form gives its field."""
    if not isinstance(error, ConfigError):
        return error_box(error, language)
    sentences = [_titled(fault, language) for fault in error_text.describe_each(error, language)]
    return message_list("error", t("training.invalid_settings", language), sentences)


def _titled(fault: str, language: str) -> str:
    name = re.split(r"\W", fault, maxsplit=1)[0]
    known = name in TrainConfig.model_fields
    return f"{field_title(TrainConfig, name, language)} ({name}){fault.removeprefix(name)}" if known else fault


def tie_memory(form: TrainForm) -> None:
    """Let the browser remember what was filled in, so that a reload loses nothing."""
    kept = gr.JSON(label=t("common.settings"), visible=False)
    # Widgets also tell of a change when the page opens; until what was kept is back, that must not overwrite it.
    restored = form.page.blocks.load(remembered, kept, form.outputs, js=READ, **PRIVATE_EVENT)
    restored.then(None, None, None, js="() => { window.trainingFormIsBack = true; }", **PRIVATE_EVENT)
    # One event a field: a preset changes sixty at once, and the browser asks all triggers and inputs of each event.
    for name, widget in zip(fields.SHOWN, form.outputs, strict=True):
        widget.change(None, widget, None, js=KEEP % name, **PRIVATE_EVENT)


def remembered(values: object) -> list[Any]:
    """Return what every widget shall hold of what a browser kept; what no longer fits is left as it is."""
    known = values if isinstance(values, dict) else {}
    defaults = TrainConfig().model_dump()
    return [known[name] if _is_alike(known.get(name), defaults[name]) else gr.skip() for name in fields.SHOWN]


def _is_alike(value: object, default: object) -> bool:
    """Tell whether two values are of one kind; a browser writes the number 32.0 as 32."""
    return type(value) is type(default) or (type(default) is float and type(value) is int)
