"""The words of a text are looked for in its speech, and what is not found is spoken again and replaced."""

import random

import numpy as np
import pytest

from testing.planted_words import KINDS, Take, plant, read_take, repaired
from tests.dataset.recordings import sentences
from tests.speech.made_speech import reading
from utils.config import SpeechConfig
from utils.media.audio import Samples
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE
from utils.speech.attempts import best_takes
from utils.speech.facts import Flag, WordsFound
from utils.speech.guards import AudioAnalysis
from utils.speech.types import Generation, Sentence, Utterance, silence

RANDOM = random.Random(0)


@pytest.fixture(scope="module")
def takes() -> list[Take]:
    return [take for text, sound in sentences(OUTPUT_RATE) if (take := read_take(reading(text), sound))][:12]


def words_of(takes: list[Take]) -> list[tuple[str, Samples]]:
    return [word for take in takes for word in take.words]


def best_of(text: str, *sounds: Samples, language: str = "am") -> Utterance:
    """Speak a sentence whose takes sound like this, one after the other."""
    waiting, generations = iter(sounds), list[Generation]()
    lengths = iter(sounds)

    def add(_sentence: Sentence, _attempt: int) -> Generation:
        codes = [number * 7 % 1024 for number in range(round(next(lengths).size / OUTPUT_RATE / CODE_SECONDS))]
        generations.append(Generation([*codes, 1025], [], [-1.0] * len(codes), ended=True, finished=True))
        return generations[-1]

    config = SpeechConfig(tries=len(sounds), trim=False, loudness=0, language=language)
    (spoken,) = best_takes([Sentence(reading(text))], add, lambda: (generations.pop(), next(waiting)), config)
    return spoken


def test_at_most_two_of_a_hundred_words_of_clear_speech_are_doubted(takes: list[Take]) -> None:
    assert sum(len(take.check.doubtful) for take in takes) <= 0.02 * len(words_of(takes))


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_fault_is_found(takes: list[Take], kind: str) -> None:
    faults = [plant(kind, take, words_of(takes), RANDOM) for take in takes]
    assert sum(fault.is_found for fault in faults) >= 11


def test_a_sentence_with_a_fault_is_replaced_by_another_take(takes: list[Take]) -> None:
    faults = [(plant("cut", take, words_of(takes), RANDOM), take.samples) for take in takes[:4]]
    assert all(repaired(fault, [clear]) for fault, clear in faults)


def without(take: Take, number: int) -> Samples:
    first, end = take.edges[number : number + 2]
    return np.concatenate([take.samples[:first], take.samples[end:]])


def test_two_takes_with_different_faults_are_joined_at_a_pause(takes: list[Take]) -> None:
    first, second = takes[0], takes[1]
    text = f"{first.text.written.rstrip('።?!')}፣ {second.text.written}"
    ours = np.concatenate([without(first, 1), silence(0.2), second.samples])
    theirs = np.concatenate([first.samples, silence(0.2), without(second, 2)])
    assert [bool(best_of(text, each).flags) for each in (ours, theirs)] == [True, True]
    spoken = best_of(text, ours, theirs)
    assert not spoken.flags
    assert spoken.words == len(first.check.texts) + len(second.check.texts)
    assert spoken.seconds == pytest.approx((first.samples.size + second.samples.size) / OUTPUT_RATE + 0.2, abs=0.1)


def test_a_word_that_stays_unheard_is_named(takes: list[Take]) -> None:
    take = takes[0]
    spoken = best_of(take.text.written, without(take, 1))
    (flag,) = (flag for flag in spoken.flags if flag.kind == "unheard")
    assert take.check.texts[1] in flag.words
    assert WordsFound.of([spoken]).found < WordsFound.of([spoken]).total == spoken.words
    assert take.check.texts[1] in str(flag)
    assert Flag.read({**vars(flag), "words": list(flag.words)}) == flag


def test_other_languages_are_not_judged(takes: list[Take]) -> None:
    spoken = best_of(takes[0].text.written, without(takes[0], 1), language="ti")
    assert (spoken.words, [flag for flag in spoken.flags if flag.words]) == (0, [])


def test_a_voice_that_is_hard_to_hear_is_not_judged(takes: list[Take]) -> None:
    noise = np.random.default_rng(0).standard_normal(takes[0].samples.size).astype(np.float32) * 0.05
    assert AudioAnalysis(noise, takes[0].text).words is None
