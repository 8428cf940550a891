"""Usual speech passes the guards; unusual speech gets a flag whose first word never changes."""

from collections.abc import Callable
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.dataset.recordings import babble, sentences
from tests.speech.made_speech import reading
from utils.media.arrays import Int64Array
from utils.media.audio import Samples, resample
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE
from utils.speech.facts import Flag, FlagKind
from utils.speech.guards import AudioAnalysis, SpeechLimits, judge, score, sounds, trim
from utils.speech.types import silence

LIMITS = replace(SpeechLimits.of("am"), clear=None)  # babble is no speech of a text
SENTENCE = "ሰላም፣ እንደምን አደራችሁ?"


def speech(seconds: float = 2.0, seed: int = 1) -> Samples:
    return resample(babble(seconds, seed=seed), 16_000, OUTPUT_RATE)


def noise(seconds: float, level: float) -> Samples:
    size = round(seconds * OUTPUT_RATE)
    return (np.random.default_rng(0).standard_normal(size) * level).astype(np.float32)


def joined(*parts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate(parts)


def codes(count: int = 43) -> Int64Array:
    return np.random.default_rng(0).permutation(1024)[:count].astype(np.int64)


def judged(
    samples: Samples | None = None, generated: Int64Array | None = None, text: str = SENTENCE, *, ended: bool = True
) -> tuple[Flag, ...]:
    audio = AudioAnalysis(speech() if samples is None else samples)
    return judge(reading(text), codes() if generated is None else generated, audio, LIMITS, ended=ended)


@pytest.mark.parametrize(
    ("text", "language", "count"),
    [
        ("ሰላም", "am", 5),
        ("ሳጥን", "am", 5),  # s a tʼ ɨ n: an ejective is one sound
        ("እንጨት", "am", 5),  # ɨ n t͡ʃʼ ə t
        ("አደራችሁ", "am", 9),  # a d ə r a t͡ʃ ɨ h u: what is long counts once
        ("!?…", "am", 0),
        ("hello there", "en", 10),
        ("ሰላም", "ti", 6),
    ],
)
def test_sounds_are_counted(text: str, language: str, count: int) -> None:
    assert sounds(reading(text, language)) == count


@pytest.mark.parametrize(
    ("make", "kind", "seconds"),
    [
        (lambda: joined(silence(0.3), speech(), silence(0.3)), None, 0),
        (lambda: speech(9.0), "long", 8.95),
        (lambda: speech(0.5), "short", 0.45),
        (lambda: joined(speech(), silence(1.5)), "ending", 1.45),
        (lambda: joined(silence(1.5), speech()), "ending", 1.45),
        (lambda: joined(speech(), noise(1.5, 0.02)), "noise", 1.4),
        (lambda: joined(speech(1.2), silence(1.5), speech(1.2)), "pause", 1.45),
        (lambda: np.clip(speech() * 30, -1, 1), "clipped", 0),
        (lambda: noise(2.0, 0.05), "speechless", 0),
        (lambda: noise(2.0, 1e-5), "silent", 0),
        (lambda: joined(speech(), np.array([np.nan, np.inf], np.float32)), "broken", 0),
    ],
)
def test_audio_is_judged(make: Callable[[], Samples], kind: FlagKind | None, seconds: float) -> None:
    flags = judged(make())
    assert [flag.kind for flag in flags] == ([kind] if kind else [])
    assert all(flag.seconds == pytest.approx(seconds, abs=0.15) for flag in flags)


@pytest.mark.parametrize("stored", ["1: short: 0.3 s for 12 sounds", "short: 0.3 s for 12 sounds", {"kind": "short"}])
def test_a_stored_flag_is_read(stored: str | dict[str, str]) -> None:
    assert Flag.read(stored) == Flag("short")


@pytest.mark.parametrize(
    ("generated", "flags"),
    [
        (np.repeat(7, 20), ()),
        (joined(codes(20), np.repeat(7, 25)), (Flag("loop", 25 * CODE_SECONDS, 25),)),
        (np.tile(codes(20), 2), ()),
        (np.tile(codes(20), 4), (Flag("loop", 80 * CODE_SECONDS, 4),)),
        (codes(0), (Flag("nothing"),)),
    ],
)
def test_codes_are_judged(generated: Int64Array, flags: tuple[Flag, ...]) -> None:
    assert judged(generated=generated.astype(np.int64)) == flags


def test_a_sentence_that_reached_the_limit_is_flagged_first() -> None:
    flags = judged(speech(9.0), codes(194), ended=False)
    assert [flag.kind for flag in flags] == ["endless", "long"]
    assert flags[0].count == 194


@pytest.mark.parametrize(("text", "seconds"), [("እ", 0.25), ("!", 0.6), (SENTENCE, 3.0)])
def test_short_texts_may_take_their_time(text: str, seconds: float) -> None:
    assert judged(speech(seconds), codes(round(seconds / CODE_SECONDS) + 1), text) == ()


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (([], -3.0), ([], -4.0)),
        (([], -8.0), (["loop"], -3.0)),
        ((["long", "loop"], -3.0), (["nothing"], -1.0)),
    ],
)
def test_the_better_try_has_the_higher_score(
    better: tuple[list[FlagKind], float], worse: tuple[list[FlagKind], float]
) -> None:
    audio = AudioAnalysis(speech())
    first, second = (
        score(list(map(Flag, kinds)), reading(SENTENCE), audio, chance * audio.seconds / CODE_SECONDS, LIMITS)
        for kinds, chance in (better, worse)
    )
    assert first > second


@pytest.mark.parametrize(("before", "behind"), [(0.0, 0.0), (0.9, 1.3)])
def test_trimming_leaves_a_margin_around_the_speech(before: float, behind: float) -> None:
    spoken = speech(2.0)
    trimmed = trim(AudioAnalysis(joined(silence(before), spoken, noise(behind, 0.0005))))
    assert trimmed.size / OUTPUT_RATE == pytest.approx(2.0 + min(before, 0.08) + min(behind, 0.08), abs=0.13)
    assert (trimmed[0], trimmed[-1]) == (0.0, pytest.approx(0.0, abs=1e-3))
    assert float(np.square(trimmed).sum()) > 0.995 * float(np.square(spoken).sum())


@pytest.fixture(scope="module")
def read_aloud() -> list[tuple[str, Samples]]:
    return [spoken for spoken in sentences(OUTPUT_RATE) if len(spoken[0]) > 12]  # a few sounds fit many texts


@pytest.mark.slow
def test_speech_is_unclear_where_its_text_is_not_heard(read_aloud: list[tuple[str, Samples]]) -> None:
    def is_unclear(text: str, sound: Samples, limits: SpeechLimits) -> bool:
        spoken = reading(text)
        flags = judge(spoken, codes(), AudioAnalysis(sound, spoken), limits, ended=True)
        return Flag("unclear") in flags

    limits, (texts, sounds) = SpeechLimits.of("am"), zip(*read_aloud, strict=True)
    assert not any(map(is_unclear, texts, sounds, repeat(limits)))
    assert np.mean([*map(is_unclear, texts[1:], sounds, repeat(limits))]) > 0.8
    assert not any(map(is_unclear, texts[1:], sounds, repeat(SpeechLimits.of("en"))))


def test_of_two_takes_the_clearer_one_scores_higher(read_aloud: list[tuple[str, Samples]]) -> None:
    text, sound = read_aloud[0]
    limits, muffled = SpeechLimits.of("am"), 0.5 * sound + 0.5 * np.roll(sound, OUTPUT_RATE)
    spoken = reading(text)
    clear, other = (score((), spoken, AudioAnalysis(each, spoken), 0.0, limits) for each in (sound, muffled))
    assert clear > other
