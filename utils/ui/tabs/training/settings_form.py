"""The form of a training run: all settings, presets, settings files, and the browser's memory of the form."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component

from utils.config import TrainConfig
from utils.core.errors import ConfigError
from utils.ui.form import build_form
from utils.ui.i18n import heading, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, notify, show_errors
from utils.ui.run_panel import command_box
from utils.ui.tabs.training import settings
from utils.ui.tabs.training.settings import settings_error
from utils.ui.views import message_box, note
from utils.xtts.licence import accept_licence

# By hand: gradio's BrowserState reads nothing before its tab is visible, as after a reload.
READ_SAVED = "() => [JSON.parse(localStorage.getItem('amharic-training-form') ?? '{}')]"
SAVE = """(value) => {
  if (!window.trainingFormIsBack) return;
  const saved = JSON.parse(localStorage.getItem("amharic-training-form") ?? "{}");
  localStorage.setItem("amharic-training-form", JSON.stringify({ ...saved, %s: value }));
}"""


@dataclass(frozen=True)
class TrainForm:
    """The widgets of the form.

    Attributes:
        page: The frame around it.
        widgets: By name of the field, in the order of the form.
        hints: What each switch does on this device, by name of its field.
    """

    page: PageContext
    widgets: dict[str, Component] = field(default_factory=dict)
    hints: dict[str, gr.HTML] = field(default_factory=dict)

    @property
    def inputs(self) -> dict[str, Any]:
        """Return what a handler of the whole form reads."""
        return {"project": self.page.project, "page_language": self.page.language, **self.widgets}

    @property
    def outputs(self) -> list[Any]:
        """Return the widgets that ``form_values`` fills, in its order."""
        return [self.widgets[name] for name in settings.SHOWN]

    def lay_out(self, names: Sequence[str]) -> None:
        """Lay out the widgets of some fields, side by side where they fit."""
        with gr.Row(elem_classes="fields"):
            for name in names:
                if name in settings.SWITCHES:
                    with gr.Column():
                        self._widget(name)
                        self.hints[name] = gr.HTML(elem_classes="switch-hint")
                else:
                    self._widget(name)

    def _widget(self, name: str) -> None:
        self.widgets.update(build_form(TrainConfig, only=[name]))
        self.widgets[name].elem_id = f"training-{name}"


def form_values(config: TrainConfig, *, keep_paths: bool) -> list[Any]:
    """Return the value of every widget; with ``keep_paths`` the paths on the form stay as they are."""
    return [gr.skip() if keep_paths and name in settings.PATHS else getattr(config, name) for name in settings.SHOWN]


def build_model(form: TrainForm) -> None:
    """Lay out base model and data, and the consent to the licence where it is needed."""
    form.lay_out(settings.MODEL)
    with gr.Column(visible=False, elem_id="licence") as box:
        gr.Markdown(t("training.licence_notice"))
        agree = gr.Checkbox(
            label=t("training.accept_licence"), info=t("training.accept_licence_hint"), interactive=True
        )
    with gr.Accordion(t("training.other_metadata"), open=False):
        form.lay_out(settings.LISTS)
    chosen = [form.widgets["version"], form.widgets["custom_model"]]

    def show_licence(version: str, custom_model: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(visible=settings.needs_licence(version, custom_model or ""))

    @show_errors
    def accept(agreed: bool, version: str, custom_model: str, language: str) -> Any:  # noqa: ANN401, FBT001  # positional in gradio
        if agreed:
            accept_licence()
            notify(t("common.consent_saved", language))
        return show_licence(version, custom_model)

    changes = [widget.change for widget in chosen]  # type: ignore[attr-defined]
    gr.on([form.page.blocks.load, *changes], show_licence, chosen, box, **PRIVATE_EVENT)
    agree.input(accept, [agree, *chosen, form.page.language], box, api_name="accept_licence")


def build_presets() -> tuple[gr.Dropdown, gr.HTML]:
    """Lay out the presets."""
    preset = gr.Dropdown(
        settings.preset_choices("en"),
        value=None,
        label=t("training.preset"),
        info=t("training.preset_hint"),
        elem_id="preset",
        interactive=True,
    )
    return preset, gr.HTML(elem_id="preset-about")


def connect_presets(form: TrainForm, preset: gr.Dropdown, about: gr.HTML) -> None:
    """Fill the form with the selected preset; translate the presets."""
    language = form.page.language

    @show_errors
    def choose(name: str, page_language: str) -> list[Any]:
        config = settings.load_preset(name)
        description = f"{settings.preset_description(name, page_language)} (configs/{name}.yaml)"
        return [note(description), *form_values(config, keep_paths=True)]

    # "input" fires again on blur, which would discard later edits; "select" is for the mouse only.
    outputs = [about, *form.outputs]
    preset.change(choose, [preset, language], outputs, api_name="preset", show_progress_on=about, **RAW_INPUTS)
    language.change(
        lambda chosen: gr.update(choices=settings.preset_choices(chosen)), language, preset, **PRIVATE_EVENT
    )


def build_settings(form: TrainForm) -> None:
    """Lay out the other settings in groups."""
    form.lay_out(settings.BASIC)
    with gr.Accordion(t("training.optimizations"), open=True, elem_id="switches"):
        form.lay_out(settings.FIRST_SWITCHES)
        form.lay_out(settings.SWITCHES[len(settings.FIRST_SWITCHES) :])
    for title, names in settings.ADVANCED.items():
        with gr.Accordion(t(title), open=False):
            form.lay_out(names)
    gr.Markdown(heading("training.checkpoints_and_memory"))
    form.lay_out(settings.CHECKPOINTS)


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

    @show_errors
    def write_command(project: str, page_language: str, **values: object) -> tuple[Any, ...]:
        try:
            config = settings.read_settings(values, page.open(project))
        except ConfigError as error:
            return settings_error(error, page_language), gr.update(visible=False)
        return "", gr.update(value=settings.command(config), visible=True)

    @show_errors
    def write_file(project: str, page_language: str, **values: object) -> tuple[Any, ...]:
        place = page.open(project)
        try:
            path = settings.save_settings(settings.read_settings(values, place), page.output, place.root.name)
        except ConfigError as error:
            return settings_error(error, page_language), gr.update(visible=False)
        return "", gr.update(value=str(path), visible=True)

    @show_errors
    def read_file(path: str, page_language: str) -> list[Any]:
        try:
            config = TrainConfig.load(Path(path))
        except ConfigError as error:
            return [settings_error(error, page_language), *[gr.skip()] * len(settings.SHOWN)]
        done = message_box("success", t("training.settings_file_loaded", page_language, name=Path(path).name))
        return [done, *form_values(config, keep_paths=False)]

    show.click(
        write_command, inputs_kwargs=form.inputs, outputs=[message, command], api_name="train_command", **RAW_INPUTS
    )
    save.click(write_file, inputs_kwargs=form.inputs, outputs=[message, file], api_name="save_settings", **RAW_INPUTS)
    load.upload(
        read_file,
        [load, page.language],
        [message, *form.outputs],
        api_name="load_settings",
        show_progress_on=message,
    )


def save_form_in_browser(form: TrainForm) -> None:
    """Save the form in the browser, so that a reload loses nothing."""
    saved = gr.JSON(label=t("common.settings"), visible=False)
    # Widgets also report a change while the page opens; that must not overwrite what was saved.
    restored = form.page.blocks.load(restored_values, saved, form.outputs, js=READ_SAVED, **PRIVATE_EVENT)
    restored.then(None, None, None, js="() => { window.trainingFormIsBack = true; }", **PRIVATE_EVENT)
    # One event for each field: a preset changes sixty at once, and the browser reads all inputs of each event.
    for name, widget in zip(settings.SHOWN, form.outputs, strict=True):
        widget.change(None, widget, None, js=SAVE % name, **PRIVATE_EVENT)


def restored_values(saved: object) -> list[Any]:
    """Return the value of every widget from what a browser saved; values of another type are skipped."""
    values = saved if isinstance(saved, dict) else {}
    defaults = TrainConfig().model_dump()
    return [values[name] if _same_type(values.get(name), defaults[name]) else gr.skip() for name in settings.SHOWN]


def _same_type(value: object, default: object) -> bool:
    """Compare types; a browser writes the number 32.0 as 32."""
    return type(value) is type(default) or (type(default) is float and type(value) is int)
