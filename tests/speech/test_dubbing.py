from pathlib import Path

import numpy as np
import pytest

from tests.speech.made_speech import tone
from utils.core.errors import AudioError
from utils.dataset.clip import Cue, Span
from utils.dataset.subtitles import read_cues
from utils.speech.dubbing import FitLimits, PlacedCue, fit_to_cues

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
        # too long for the greatest speed: on into the silence
        ([(0, 2), (5, 6)], [4.05, 1], [(0, 3, 1.35, "into the silence after it"), (5, 6, 1.0, "")]),
        # no silence: the next one waits, and catches up
        (
            [(0, 2), (2, 4), (4, 6)],
            [4.05, 1.2, 1.0],
            [(0, 3, 1.35, "too little time"), (3.1, 3.1 + 0.9, 1.2 / 0.9, "1.10 s late"), (4, 5, 1.0, "")],
        ),
        # nothing to say
        ([(0, 2), (3, 4)], [0, 1], [(0, 0, 1.0, "Nothing is said"), (3, 4, 1.0, "")]),
        # the last one needs more than there is
        ([(0, 1)], [2.7], [(0, 2, 1.35, "too little time")]),
    ],
)
def test_sounds_are_laid_into_their_time(
    spans: list[tuple[float, float]], seconds: list[float], placed: list[tuple[float, float, float, str]]
) -> None:
    found = fit_to_cues(cues(*spans), [tone(length) for length in seconds]).placed
    for place, (start, end, speed, note) in zip(found, placed, strict=True):
        assert place[:3] == pytest.approx((start, end, speed), abs=1e-3)
        assert (note in place.note) if note else not place.note


@pytest.mark.parametrize(
    ("spans", "seconds", "whole", "total"),
    [
        ([(1, 3), (4, 6)], [1, 1], None, 6.0),
        ([(1, 3), (4, 6)], [1, 1], 10.0, 10.0),
        ([(0, 1)], [2.7], None, 2.0),
        ([(0, 1)], [2.7], 5.0, 5.0),
        ([(0, 3)], [2], 1.0, 3.0),
        ([], [], None, 0.0),
        ([], [], 2.0, 2.0),
    ],
)
def test_the_whole_is_as_long_as_the_subtitles_unless_words_would_be_lost(
    spans: list[tuple[float, float]], seconds: list[float], whole: float | None, total: float
) -> None:
    limits = FitLimits(slowest=0.5)
    timeline = fit_to_cues(cues(*spans), [tone(length) for length in seconds], seconds=whole, limits=limits)
    assert timeline.samples.size == pytest.approx(total * RATE, abs=1)
    assert timeline.samples.dtype == np.float32


def test_the_sound_lies_where_it_is_said_to_lie() -> None:
    timeline = fit_to_cues(cues((0.5, 2), (2, 2.5), (4, 5)), [tone(1), tone(1.5), tone(0.4)])
    heard = np.convolve(np.abs(timeline.samples), np.full(240, 1 / 240), "same") > 0.05
    said = np.zeros_like(heard)
    for place in timeline.placed:
        said[round(place.start * RATE) : round(place.end * RATE)] = True
    assert (heard != said).mean() < 0.02
    assert np.abs(np.diff(timeline.samples)).max() < 0.05  # no clicks


def test_no_two_sounds_lie_over_each_other_and_none_is_cut() -> None:
    random = np.random.default_rng(1)
    starts = np.cumsum(random.uniform(0.3, 3, 60))
    spans = [(float(start), float(start + random.uniform(0.2, 2))) for start in starts]
    sounds = [tone(length) for length in random.uniform(0.05, 3, 60)]
    found = fit_to_cues(cues(*spans), sounds).placed
    for place, following, sound, (start, end) in zip(found, [*found[1:], None], sounds, spans, strict=True):
        assert place.end - place.start == pytest.approx(sound.size / RATE / place.speed, abs=1e-3)
        assert 0.8 <= place.speed <= 1.35
        assert following is None or place.end <= following.start + 1e-9
        assert place.start >= start - 1e-4
        assert bool(place.note) == (place.start - start > 0.05 or place.end - end > 0.05)


def test_notes_name_their_cue() -> None:
    assert fit_to_cues(cues((0, 1), (2, 3)), [tone(1), tone(0)]).notes == ("Cue 2: Nothing is said.",)


def test_limits_can_be_set() -> None:
    stiff = FitLimits(slowest=1.0, fastest=1.0)
    assert fit_to_cues(cues((0, 1)), [tone(1.2)], limits=stiff).placed[0].speed == 1.0
    assert fit_to_cues(cues((0, 1)), [tone(0.9)], limits=stiff).placed == (PlacedCue(0, 0.9, 1.0, ""),)


@pytest.mark.parametrize(("slowest", "fastest"), [(0.4, 1.3), (0.8, 2.5), (1.1, 1.3), (0.8, 0.9)])
def test_impossible_limits_are_refused(slowest: float, fastest: float) -> None:
    with pytest.raises(AudioError, match="cannot be fitted") as caught:
        FitLimits(slowest=slowest, fastest=fastest)
    assert caught.value.hint


def test_every_cue_needs_its_sound() -> None:
    with pytest.raises(AudioError, match="2 cues, and sounds for 1"):
        fit_to_cues(cues((0, 1), (1, 2)), [tone(1)])


def test_a_subtitle_file_is_dubbed(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_text(
        "1\n00:00:01,000 --> 00:00:02,000\nሰላም\n\n2\n00:00:03,000 --> 00:00:04,500\nደህና\n", encoding="utf-8"
    )
    read = read_cues(path).cues
    timeline = fit_to_cues(read, [tone(1.1), tone(0.7)])
    assert timeline.samples.size == round(4.5 * RATE)
    assert [place.start for place in timeline.placed] == [1.0, 3.0]
