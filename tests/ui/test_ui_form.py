"""Forms are made from the fields of a config, and read back into one."""

from typing import Any

import pytest

from utils.config import Config, DatasetConfig, RehearsalConfig, SpeechConfig, TrainConfig
from utils.core.errors import ConfigError
from utils.ui.form import build_form, read_form


def values_of(form: dict[str, Any]) -> dict[str, object]:
    """What gradio hands to a handler when nobody has touched the form."""
    return {name: widget.value for name, widget in form.items()}


@pytest.mark.parametrize("config", [TrainConfig, DatasetConfig, SpeechConfig, RehearsalConfig])
def test_an_untouched_form_is_the_default_config_with_titles_and_help(config: type[Config]) -> None:
    form = build_form(config)
    assert list(form) == list(config.model_fields)
    assert read_form(values_of(form), config) == config()
    for name, widget in form.items():
        field = config.model_fields[name]
        assert widget.label == field.title
        assert (widget.info or "").startswith(field.description or "?")


def test_a_form_opens_with_saved_values_and_reports_all_problems_together() -> None:
    saved = RehearsalConfig(seconds=7, ticks_per_second=3)
    assert read_form(values_of(build_form(RehearsalConfig, values=saved)), RehearsalConfig) == saved
    with pytest.raises(ConfigError) as caught:
        read_form({"num_epochs": 0, "batch_size": None, "language": "Klingonish!"}, TrainConfig)
    assert all(name in str(caught.value) for name in ("num_epochs", "batch_size", "language"))
