import numpy as np
import pytest

from tests.speech.made_speech import tone, utterance
from utils.media.audio import faded
from utils.media.rates import OUTPUT_RATE
from utils.speech.types import join, start_times

PARTS = [utterance("ሰላም።", 1.0, pause=0.35), utterance("ደህና?", 0.5, pause=0.8), utterance("አዎ።", 0.25)]


def test_parts_are_joined_with_their_pauses() -> None:
    sound = join(PARTS)
    assert sound.size == round((1.0 + 0.35 + 0.5 + 0.8 + 0.25) * OUTPUT_RATE)
    assert not sound[OUTPUT_RATE : round(1.35 * OUTPUT_RATE)].any()
    assert join([]).size == 0


def test_each_part_is_where_its_start_time_says() -> None:
    sound, starts = join(PARTS), list(start_times(PARTS))
    assert starts == pytest.approx([0, 1.35, 2.65])
    for part, start in zip(PARTS, starts, strict=True):
        begin = round(start * OUTPUT_RATE)
        assert np.array_equal(sound[begin : begin + part.samples.size], faded(part.samples, OUTPUT_RATE))


def test_no_joint_clicks() -> None:
    close = [utterance("ሰላም", 0.3 + 1 / 440) for _ in range(5)]  # they begin and end at full loudness, without a pause
    assert np.abs(np.diff(join(close))).max() < 1.5 * np.abs(np.diff(tone(0.3))).max()
    assert np.abs(np.diff(np.concatenate([part.samples for part in close]))).max() > 0.9
