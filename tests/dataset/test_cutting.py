"""Recordings are cut in pauses, and subtitles are joined with their speech."""

import itertools
import random
from collections.abc import Iterator

import pytest

from utils.config import DatasetConfig
from utils.dataset.cutting import cut_cues, cut_speech
from utils.recognition.spans import Cue, Span

SETTINGS = DatasetConfig()


def cues(written: str) -> list[Cue]:
    """Read cues from ``1-2.5 text | 3-4 text``, in seconds."""
    parts = (cue.partition(" ") for cue in written.split(" | "))
    return [Cue(Span(*map(float, times.split("-"))), text) for times, _, text in parts]


def spans(written: str) -> list[Span]:
    return [cue.span for cue in cues(written)]


def write(clips: list[Cue]) -> str:
    return " | ".join(f"{clip.span.start:.4g}-{clip.span.end:.4g} {clip.text}".strip() for clip in clips)


@pytest.mark.parametrize(
    ("speech", "seconds", "expected"),
    [
        ("0-3", 3.05, "0-3.05"),  # padding ends with the recording
        ("1-3 | 3.2-5", 10, "0.85-5.15"),  # short neighbours are merged
        ("1-3 | 4-6", 10, "0.85-3.15 | 3.85-6.15"),  # a long pause separates
        ("1-7 | 7.2-13", 20, "0.85-7.1 | 7.1-13.15"),  # padding never reaches a neighbour
        ("1-5 | 5.2-9 | 9.4-13", 20, "0.85-9.15 | 9.25-13.15"),  # long speech is split at the deepest pause
        ("1-3 | 4.2-4.6", 10, "0.85-4.75"),  # a clip that is too short joins its neighbour
        ("1-3 | 8-8.4", 10, "0.85-3.15 | 7.85-8.55"),  # but not over a long pause
        ("1-12.5", 20, "0.95-12.55"),  # padding yields to the limit
        ("1-14", 20, "1-14"),  # speech that is too long stays whole, for the filters to exclude
    ],
)
def test_speech_is_cut(speech: str, seconds: float, expected: str) -> None:
    assert write([Cue(clip, "") for clip in cut_speech(spans(speech), seconds, SETTINGS)]) == expected


def random_speech(seed: int) -> tuple[list[Span], float]:
    chance = random.Random(seed)
    at, speech = chance.choice([0.0, 0.5]), []
    for _ in range(chance.randrange(40)):
        speech.append(Span(at, at + chance.uniform(0.1, 11.3)))
        at = speech[-1].end + chance.choice([0.0, chance.uniform(0.1, 0.6), chance.uniform(0.1, 5)])
    return speech, at


def test_every_segment_is_in_one_clip_within_the_limits() -> None:
    for seed in range(60):
        speech, seconds = random_speech(seed)
        clips = cut_speech(speech, seconds, SETTINGS)
        for span in speech:
            assert sum(clip.start <= span.start and span.end <= clip.end for clip in clips) == 1
        assert all(clip.end <= following.start for clip, following in itertools.pairwise(clips))
        assert all(clip.start >= 0 and clip.end <= seconds and clip.seconds <= 11.6 + 1e-6 for clip in clips)


SPEECH = spans("1-3 | 3.3-5 | 8-10 | 10.2-12 | 20-22")
MERGED = "0.85-5.15 a b | 7.85-12.15 c | 19.85-22.15 d"  # over short pauses, not over long ones


@pytest.mark.parametrize(
    ("subtitles", "expected", "warned"),
    [
        ("1-3 a", "0.85-3.15 a | 3.15-5.15 | 7.85-12.15 | 19.85-22.15", 0),
        ("1-3 a | 3.3-5 b | 8-12 c | 20-22 d", MERGED, 0),
        ("0.7-3.2 a | 3.2-5.3 b | 7.6-12.4 c | 20.3-21.6 d", MERGED, 0),
        ("1-5 a | 8-11 c | 9-12 d", "0.85-5.15 a | 7.85-12.15 c d | 19.85-22.15", 0),
        ("1-5 a | 14-16 x", "0.85-5.15 a | 7.85-12.15 | 13.85-16.15 x | 19.85-22.15", 0),
        ("1-5 a | 8-12 c | 20-20.7 e", "0.85-5.15 a | 7.85-12.15 c | 19.85-22.15", 1),
    ],
    ids=[
        "speech without a subtitle has no text",
        "merged over short pauses",
        "inexact times are snapped to the pauses",
        "overlapping ones stay together",
        "a subtitle over silence keeps its times",
        "a subtitle that ends within speech",
    ],
)
def test_subtitles_are_joined_with_their_speech(subtitles: str, expected: str, warned: int) -> None:
    clips, warnings = cut_cues(cues(subtitles), SPEECH, 30, SETTINGS)
    assert (write(clips), len(warnings)) == (expected, warned)


def test_too_long_subtitles_without_a_pause_give_no_text() -> None:
    subtitles = cues("0-4 a | 4-9 b | 9-15 c | 15-18 d")
    clips, (warning,) = cut_cues(subtitles, spans("0-6 | 6.2-12 | 12.2-18"), 18, SETTINGS)
    assert {clip.text for clip in clips} == {""}
    assert all(clip.span.seconds <= 11.6 for clip in clips)
    assert (warning.issue, warning.text) == ("no_pause", "a b c d")


def random_cues(speech: list[Span], chance: random.Random) -> Iterator[Cue]:
    for number, span in enumerate(speech):
        for part in range(chance.choice([0, 1, 1, 1, 2])):
            start = span.start + part * span.seconds / 2 + chance.uniform(-0.6, 0.6)
            yield Cue(Span(max(0.0, start), start + chance.uniform(0.7, 1.5) * span.seconds), f"<{number}/{part}>")


def test_every_subtitle_is_in_one_clip_or_in_a_warning() -> None:
    for seed in range(100):
        speech, seconds = random_speech(seed)
        subtitles = sorted(random_cues(speech, random.Random(1000 + seed)), key=lambda cue: cue.span.start)
        clips, warnings = cut_cues(subtitles, speech, seconds, SETTINGS)
        texts = [*(clip.text for clip in clips), *(warning.text for warning in warnings)]
        assert all(sum(cue.text in text for text in texts) == 1 for cue in subtitles)
        for span in speech:
            assert sum(clip.span.start <= span.start and span.end <= clip.span.end for clip in clips) == 1
        for clip in clips:
            assert clip.span.seconds <= 11.6 + 1e-6 or clip.text.count("<") == 1
            assert all(not span.start < edge < span.end for span in speech for edge in (clip.span.start, clip.span.end))
        assert all(clip.span.end <= following.span.start for clip, following in itertools.pairwise(clips))
