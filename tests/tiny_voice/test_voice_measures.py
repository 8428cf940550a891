"""The measures of the small voice say what they claim, on sounds of which the answer is known."""

import shutil

import numpy as np
import pytest

from tools.tiny_voice import checks
from tools.tiny_voice.audio import render
from tools.tiny_voice.corpus import read_sentences
from tools.tiny_voice.speakers import SPEAKERS
from tools.tiny_voice.stages import Progress
from utils.media.audio import Samples, resample
from utils.media.rates import OUTPUT_RATE, RATE

QUIET = Progress("measures", lambda _: None)


def said(text: str, speaker: int) -> Samples:
    return resample(render(text, SPEAKERS[speaker]), RATE, OUTPUT_RATE)


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not here")
@pytest.mark.slow
def test_another_voice_at_another_pace_is_nearest_to_the_same_sentence() -> None:
    texts = [text for text in read_sentences()["eval"] if 15 < len(text) < 40][:12]
    found = checks.nearest([said(text, 1) for text in texts], [said(text, 2) for text in texts], QUIET)
    assert np.mean([one == number for number, one in enumerate(found)]) >= 0.9
