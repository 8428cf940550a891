import numpy as np
import pytest

from tests.speech.made_speech import piece, tone
from utils.media.audio import faded
from utils.media.rates import OUTPUT_RATE
from utils.speech.joining import join, parts, placed, silence

PIECES = [piece("ሰላም።", 1.0, pause=0.35), piece("ደህና?", 0.5, pause=0.8), piece("አዎ።", 0.25)]


def test_pieces_are_joined_with_their_pauses() -> None:
    sound = join(PIECES)
    assert sound.size == round((1.0 + 0.35 + 0.5 + 0.8 + 0.25) * OUTPUT_RATE)
    assert not sound[OUTPUT_RATE : round(1.35 * OUTPUT_RATE)].any()
    assert np.array_equal(sound[2000:20_000], PIECES[0].samples[2000:20_000])


def test_each_piece_knows_where_it_begins() -> None:
    sound = join(PIECES)
    for one in placed(PIECES):
        begin = round(one.start * OUTPUT_RATE)
        assert np.array_equal(sound[begin : begin + one.samples.size], faded(one.samples, OUTPUT_RATE))
    assert [one.start for one in placed(PIECES)] == pytest.approx([0, 1.35, 2.65])


def test_no_joint_clicks() -> None:
    close = [piece("ሰላም", 0.3 + 1 / 440) for _ in range(5)]  # they begin and end at full loudness, without a pause
    assert np.abs(np.diff(join(close))).max() < 1.5 * np.abs(np.diff(tone(0.3))).max()
    assert np.abs(np.diff(np.concatenate([one.samples for one in close]))).max() > 0.9


def test_parts_are_the_whole_in_parts() -> None:
    assert np.array_equal(np.concatenate(list(parts(PIECES))), join(PIECES))
    assert join([]).size == 0


def test_silence_is_as_long_as_it_should_be() -> None:
    assert silence(0.5).size == OUTPUT_RATE // 2
    assert silence(-1).size == 0
