"""A small finished model that speaks Amharic, for the tests of a module."""

from pathlib import Path

import pytest

from utils.speech.synthesizer import Caches, Synthesizer, open_voice


@pytest.fixture(scope="module")
def model(speaking_folder: Path) -> Synthesizer:
    """The model, with a cache of voices like the programs: encoding one takes longer than speaking a sentence."""
    return open_voice(speaking_folder, "cpu", "fp32", caches=Caches(speaking_folder.with_name("voices")))
