"""A small finished model that speaks Amharic, for the tests of a module."""

from pathlib import Path

import pytest

from utils.speech.synthesizer import Synthesizer, open_voice


@pytest.fixture(scope="module")
def model(speaking_folder: Path) -> Synthesizer:
    return open_voice(speaking_folder, "cpu", "fp32")
