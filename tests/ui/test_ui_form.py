"""Forms are made from the fields of a config, and read back into one."""

from typing import Any

import gradio as gr
import pytest

from utils.config import Config, DatasetConfig, RehearsalConfig, SpeechConfig, TrainConfig
from utils.core.errors import ConfigError
from utils.ui.form import build_form, fine_step, read_form

CONFIGS = [TrainConfig, DatasetConfig, SpeechConfig, RehearsalConfig]


def held(form: dict[str, Any]) -> dict[str, object]:
    """What gradio hands to a handler when nobody has touched the form."""
    return {name: widget.value for name, widget in form.items()}


@pytest.mark.parametrize("config", CONFIGS)
def test_an_untouched_form_is_the_default_config_with_titles_and_help(config: type[Config]) -> None:
    form = build_form(config)
    assert list(form) == list(config.model_fields)
    assert read_form(held(form), config) == config()
    for name, widget in form.items():
        field = config.model_fields[name]
        assert widget.label == field.title
        assert (widget.info or "").startswith(field.description or "?")


def test_the_kind_of_field_decides_the_widget() -> None:
    form = build_form(TrainConfig)
    assert type(form["enable_sdpa"]) is gr.Checkbox
    assert {type(form[name]) for name in ("version", "language")} == {gr.Dropdown}
    assert {type(form[name]) for name in ("num_epochs", "learning_rate")} == {gr.Number}
    assert {type(form[name]) for name in ("max_audio_length", "freeze_first_n_gpt_layers")} == {gr.Slider}
    assert type(form["train_csv"]) is gr.Textbox


def test_all_faults_are_reported_together() -> None:
    with pytest.raises(ConfigError) as caught:
        read_form({"num_epochs": 0, "batch_size": None, "language": "Klingonish!"}, TrainConfig)
    assert all(name in str(caught.value) for name in ("num_epochs", "batch_size", "language"))


def test_a_form_opens_with_the_values_of_a_saved_config() -> None:
    saved = RehearsalConfig(seconds=7, ticks_per_second=3)
    form = build_form(RehearsalConfig, values=saved)
    assert read_form(held(form), RehearsalConfig) == saved


def test_a_field_that_does_not_exist_is_a_fault_of_ours() -> None:
    with pytest.raises(KeyError, match="epochs"):
        build_form(TrainConfig, only=("epochs",))


def test_a_slider_has_at_least_twenty_steps() -> None:
    for span, step in ((10.6, 0.1), (0.5, 0.01), (1.0, 0.01), (64, 1.0)):
        assert fine_step(span) == pytest.approx(step)
