"""Forms are made from the fields of a config."""

import gradio as gr
import pytest
from markupsafe import escape  # as templates do

from utils.config import Config, DatasetConfig, SpeechConfig, TrainConfig
from utils.studio.page_settings import PageSettings
from utils.ui.settings_form import SettingsForm


@pytest.mark.parametrize("config", [TrainConfig, DatasetConfig, SpeechConfig, PageSettings])
def test_an_untouched_form_is_the_default_config(config: type[Config]) -> None:
    with gr.Blocks():
        form = SettingsForm(config, {"": [*config.model_fields]}, "form")
    assert config.parse(form.value(config()), source="The form") == config()
    shown = form.render("en")
    for name, field in config.model_fields.items():
        assert f'name="{name}"' in shown
        assert escape(field.title or "?") in shown
        assert escape(field.description or "?") in shown
