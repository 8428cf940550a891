"""Speech becomes subtitles and chapters, and fits into the time of subtitles; utterances are joined without clicks."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.speech.made_speech import speech, tone, utterance
from utils.integrations.dubbing import fit_to_cues
from utils.media.audio import faded
from utils.media.encoding import Chapter
from utils.media.facts import AudioFileError
from utils.media.rates import OUTPUT_RATE
from utils.recognition.spans import Cue, Span
from utils.speech.facts import Flag
from utils.speech.subtitles import captions, chapters, write_captions, write_chapters
from utils.speech.types import join, start_times

LONG = "ልጆቹ ሜዳ ላይ ኳስ ሲጫወቱ ዋሉ፤ ከዚያም ሁሉም ወደ ቤት ሄደው እራት በሉና ተኙ፤ በማግስቱም እንደገና ወደ ሜዳ ሄዱ፣ ኳሱ ግን አልነበረም።"
CUES = [Cue(Span(0.0, 1.5), "ሰላም & ደህና\n3 < 4 --> 5?"), Cue(Span(3661.2504, 3662.9996), "አዎ።")]
SRT = "1\n00:00:00,000 --> 00:00:01,500\nሰላም & ደህና\n3 < 4 -> 5?\n\n2\n01:01:01,250 --> 01:01:03,000\nአዎ።\n"
VTT = (
    "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nሰላም &amp; ደህና\n3 &lt; 4 --&gt; 5?\n\n01:01:01.250 --> 01:01:03.000\nአዎ።\n"
)
CHAPTERS = [Chapter("ምዕራፍ 1", 0.0, 61.5), Chapter("The\tend", 61.5, 70.0)]
PODCAST = {"version": "1.2.0", "chapters": [{"startTime": 0.0, "endTime": 61.5, "title": "ምዕራፍ 1"}]}


def cues(*spans: tuple[float, float]) -> list[Cue]:
    return [Cue(Span(start, end), "ሰላም") for start, end in spans]


def test_utterances_are_joined_without_clicks_where_their_start_times_say() -> None:
    parts = [utterance("ሰላም።", 1.0, pause=0.35), utterance("ደህና?", 0.5, pause=0.8), utterance("አዎ።", 0.25)]
    sound, starts = join(parts), list(start_times(parts))
    assert sound.size == round((1.0 + 0.35 + 0.5 + 0.8 + 0.25) * OUTPUT_RATE)
    assert starts == pytest.approx([0, 1.35, 2.65])
    for part, start in zip(parts, starts, strict=True):
        begin = round(start * OUTPUT_RATE)
        assert np.array_equal(sound[begin : begin + part.samples.size], faded(part.samples, OUTPUT_RATE))
    assert join([]).size == 0
    close = [utterance("ሰላም", 0.3 + 1 / 440) for _ in range(5)]  # they begin and end at full loudness, without a pause
    assert np.abs(np.diff(join(close))).max() < 1.5 * np.abs(np.diff(tone(0.3))).max()
    assert np.abs(np.diff(np.concatenate([part.samples for part in close]))).max() > 0.9


def test_each_sentence_is_a_cue_or_several_of_two_short_lines() -> None:
    first, *parts = captions(speech(utterance("ደህና  ነህ?", 1.0, pause=0.5), utterance(LONG, 9.0)))
    assert first == Cue(Span(0.0, 1.0), "ደህና ነህ?")
    assert " ".join(" ".join(cue.text.split()) for cue in parts) == LONG
    assert all(len(line) <= 42 for cue in parts for line in cue.text.split("\n"))
    assert all(cue.text.count("\n") <= 1 for cue in parts)
    assert [parts[0].span.start, parts[-1].span.end] == pytest.approx([1.5, 10.5])
    assert all(first.span.end == pytest.approx(second.span.start) for first, second in pairwise(parts))
    shares = [cue.span.seconds / len(cue.text) for cue in parts]
    assert max(shares) < 1.1 * min(shares)


def test_chapters_begin_with_their_sentences() -> None:
    titles = {"ለ": "አንድ", "መ": "ሁለት"}
    spoken = speech(*(utterance(text, 1.0, pause=0.5, chapter=titles.get(text)) for text in "ሀለሐመ"))
    assert chapters(spoken) == (Chapter("አንድ", 1.5, 4.5), Chapter("ሁለት", 4.5, 6.0))
    assert chapters(speech(utterance("ሀ", 1.0))) == ()


@pytest.mark.parametrize(
    ("write", "items", "name", "content"),
    [
        (write_captions, CUES, "a.SRT", SRT),
        (write_captions, CUES, "a.vtt", VTT),
        (write_chapters, CHAPTERS, "a.txt", "0.000000\t61.500000\tምዕራፍ 1\n61.500000\t70.000000\tThe end\n"),
        (write_chapters, CHAPTERS[:1], "a.json", json.dumps(PODCAST, ensure_ascii=False, indent=2) + "\n"),
    ],
)
def test_files_are_as_players_expect_them(tmp_path: Path, write: Any, items: Any, name: str, content: str) -> None:
    write(tmp_path / name, items)
    assert (tmp_path / name).read_text(encoding="utf-8") == content
    for other, message in (("a.sub", r"a\.sub"), ("a", "must end in")):
        with pytest.raises(AudioFileError, match=message):
            write(tmp_path / other, items)
        assert not (tmp_path / other).exists()


def timing(over: float, speed: float, late: float = 0.0) -> Flag:
    return Flag("timing", over, share=speed, late=late)


@pytest.mark.parametrize(
    ("spans", "seconds", "placed"),
    [
        # a little too long: faster; a little too short: slower; far too short: as it is
        ([(0, 2)], [2.5], [(0, 2, 1.25, None)]),
        ([(0, 2)], [1.8], [(0, 2, 0.9, None)]),
        ([(0, 2)], [0.5], [(0, 0.5, 1.0, None)]),
        # too long for the maximum speed: on into the silence
        ([(0, 2), (5, 6)], [4.05, 1], [(0, 3, 1.35, timing(1.0, 1.35)), (5, 6, 1.0, None)]),
        # no silence: the next one waits, and catches up
        (
            [(0, 2), (2, 4), (4, 6)],
            [4.05, 1.2, 1.0],
            [
                (0, 3, 1.35, timing(1.0, 1.35)),
                (3.1, 3.1 + 0.9, 1.2 / 0.9, timing(0.0, 1.2 / 0.9, 1.1)),
                (4, 5, 1.0, None),
            ],
        ),
        # longer than the whole
        ([(0, 1)], [2.7], [(0, 2, 1.35, timing(1.0, 1.35))]),
        # nothing is spoken
        ([(0, 2), (3, 4)], [0, 1], [(0, 0, 1.0, Flag("nothing")), (3, 4, 1.0, None)]),
    ],
)
def test_sounds_are_fitted_into_their_time(
    spans: list[tuple[float, float]], seconds: list[float], placed: list[tuple[float, float, float, Flag | None]]
) -> None:
    sounds = [tone(length) for length in seconds]
    timeline = fit_to_cues(cues(*spans), sounds)
    for cue, (*times, flag) in zip(timeline.cues, placed, strict=True):
        assert cue[:3] == pytest.approx(times, abs=1e-3)
        assert str(cue.flag) == str(flag)  # with two digits
    assert len(timeline.flags) == sum(bool(flag) for *_, flag in placed)
    assert timeline.samples.size == pytest.approx(max(spans[-1][1], placed[-1][1]) * OUTPUT_RATE, abs=1)
    assert fit_to_cues(cues(*spans), sounds, seconds=10.0).samples.size == 10 * OUTPUT_RATE


def test_the_sound_is_where_the_timeline_says() -> None:
    timeline = fit_to_cues(cues((0.5, 2), (2, 2.5), (4, 5)), [tone(1), tone(1.5), tone(0.4)])
    loud = np.convolve(np.abs(timeline.samples), np.full(240, 1 / 240), "same") > 0.05
    expected = np.zeros_like(loud)
    for cue in timeline.cues:
        expected[round(cue.start * OUTPUT_RATE) : round(cue.end * OUTPUT_RATE)] = True
    assert (loud != expected).mean() < 0.02
    assert np.abs(np.diff(timeline.samples)).max() < 0.05  # no clicks
