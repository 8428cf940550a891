"""A small finished model that speaks Amharic, for the tests of a module."""

import pytest

from tests.speech import amharic_model
from utils.speech.synthesizer import Synthesizer, open_voice


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    return open_voice(amharic_model.build(tmp_path_factory.mktemp("amharic")), "cpu", "fp32")
