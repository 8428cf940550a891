import numpy as np
import pytest

from tests.speech.made_speech import tone
from utils.dataset.clip import Cue, Span
from utils.speech.subtitles import fit_to_cues

RATE = 24_000


def cues(*spans: tuple[float, float]) -> list[Cue]:
    return [Cue(Span(start, end), "ሰላም") for start, end in spans]


@pytest.mark.parametrize(
    ("spans", "seconds", "placed"),
    [
        # fits as it is
        ([(1, 3)], [1.5], [(1, 2.5, 1.0, "")]),
        # a little too long: faster; a little too short: slower; far too short: as it is
        ([(0, 2)], [2.5], [(0, 2, 1.25, "")]),
        ([(0, 2)], [1.8], [(0, 2, 0.9, "")]),
        ([(0, 2)], [1.98], [(0, 1.98, 1.0, "")]),
        ([(0, 2)], [0.5], [(0, 0.5, 1.0, "")]),
        # neighbours that fill their time touch and do not push each other
        ([(0, 2), (2, 4)], [2.2, 2.2], [(0, 2, 1.1, ""), (2, 4, 1.1, "")]),
        # too long for the maximum speed: on into the silence
        ([(0, 2), (5, 6)], [4.05, 1], [(0, 3, 1.35, "1.00 s late"), (5, 6, 1.0, "")]),
        # no silence: the next one waits, and catches up
        (
            [(0, 2), (2, 4), (4, 6)],
            [4.05, 1.2, 1.0],
            [(0, 3, 1.35, "delays"), (3.1, 3.1 + 0.9, 1.2 / 0.9, "1.10 s late"), (4, 5, 1.0, "")],
        ),
        # nothing is spoken
        ([(0, 2), (3, 4)], [0, 1], [(0, 0, 1.0, "Nothing"), (3, 4, 1.0, "")]),
        # the last one needs more than there is
        ([(0, 1)], [2.7], [(0, 2, 1.35, "1.00 s late")]),
    ],
)
def test_sounds_are_fitted_into_their_time(
    spans: list[tuple[float, float]], seconds: list[float], placed: list[tuple[float, float, float, str]]
) -> None:
    timeline = fit_to_cues(cues(*spans), [tone(length) for length in seconds])
    for cue, (start, end, speed, note) in zip(timeline.cues, placed, strict=True):
        assert cue[:3] == pytest.approx((start, end, speed), abs=1e-3)
        assert (note in cue.note) if note else not cue.note
    assert [note.partition(":")[0] for note in timeline.notes] == [
        f"Cue {number}" for number, (*_, note) in enumerate(placed, 1) if note
    ]


@pytest.mark.parametrize(
    ("spans", "seconds", "whole", "total"),
    [
        ([(1, 3), (4, 6)], [1, 1], None, 6.0),
        ([(1, 3), (4, 6)], [1, 1], 10.0, 10.0),
        ([(0, 1)], [2.7], None, 2.0),
        ([(0, 3)], [2], 1.0, 3.0),
        ([], [], None, 0.0),
        ([], [], 2.0, 2.0),
    ],
)
def test_the_whole_is_as_long_as_the_subtitles_unless_words_would_be_lost(
    spans: list[tuple[float, float]], seconds: list[float], whole: float | None, total: float
) -> None:
    timeline = fit_to_cues(cues(*spans), [tone(length) for length in seconds], seconds=whole)
    assert timeline.samples.size == pytest.approx(total * RATE, abs=1)
    assert timeline.samples.dtype == np.float32


def test_the_sound_is_where_the_timeline_says() -> None:
    timeline = fit_to_cues(cues((0.5, 2), (2, 2.5), (4, 5)), [tone(1), tone(1.5), tone(0.4)])
    loud = np.convolve(np.abs(timeline.samples), np.full(240, 1 / 240), "same") > 0.05
    expected = np.zeros_like(loud)
    for cue in timeline.cues:
        expected[round(cue.start * RATE) : round(cue.end * RATE)] = True
    assert (loud != expected).mean() < 0.02
    assert np.abs(np.diff(timeline.samples)).max() < 0.05  # no clicks


def test_no_two_sounds_overlap_and_none_is_cut() -> None:
    random = np.random.default_rng(1)
    starts = np.cumsum(random.uniform(0.3, 3, 60))
    spans = [(float(start), float(start + random.uniform(0.2, 2))) for start in starts]
    sounds = [tone(length) for length in random.uniform(0.05, 3, 60)]
    dubbed = fit_to_cues(cues(*spans), sounds).cues
    for cue, following, sound, (start, end) in zip(dubbed, [*dubbed[1:], None], sounds, spans, strict=True):
        assert cue.end - cue.start == pytest.approx(sound.size / RATE / cue.speed, abs=1e-3)
        assert 0.8 <= cue.speed <= 1.35
        assert following is None or cue.end <= following.start + 1e-9
        assert cue.start >= start - 1e-4
        assert bool(cue.note) == (cue.start - start > 0.05 or cue.end - end > 0.05)
