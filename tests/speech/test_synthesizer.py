"""The whole way from a text to its sound, with a small model of random weights."""

import gc
import weakref
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch

from testing.random_model import synthetic_speech
from utils.config import SpeechConfig
from utils.core.errors import ConfigError
from utils.core.facts import Fact, Stop, StopRequested
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech import synthesizer as module
from utils.speech.attempts import best_takes
from utils.speech.facts import SentenceSpoken
from utils.speech.guards import SpeechLimits, next_seed
from utils.speech.layers import KeyValueCache
from utils.speech.synthesizer import Synthesizer, max_codes, speak
from utils.speech.types import Generation, Sentence, Utterance
from utils.xtts.tokenizer import TokenizedText

PLAIN = SpeechConfig(tries=1, trim=False, loudness=0)  # what the model generates, and nothing done to it
TEXT = "ሰላም ለዓለም። እንዴት ነህ?"


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second of a random model is enough."""
    monkeypatch.setattr(module, "max_codes", lambda *_: 12)


def test_a_text_is_spoken_sentence_by_sentence(model: Synthesizer) -> None:
    speech = model.speak(TEXT, PLAIN)
    assert [each.sentence.text for each in speech.utterances] == ["ሰላም ለዓለም።", "እንዴት ነህ?"]
    assert speech.samples.dtype == np.float32
    assert speech.seconds == pytest.approx(sum(each.seconds + each.pause for each in speech.utterances))
    assert speech.utterances[1].start == pytest.approx(speech.utterances[0].seconds + PLAIN.sentence_pause, abs=1e-3)
    assert set(speech.timings) == {"planning", "decoding", "vocoding", "total"}
    assert 0 < speech.timings["decoding"] < speech.timings["total"]
    assert "endless" in [flag.kind for flag in speech.flags]


def test_one_sentence_alone_sounds_as_in_its_text(model: Synthesizer) -> None:
    utterance = model.speak(TEXT, PLAIN, seed=5).utterances[1]
    alone = model.speak("እንዴት ነህ?", PLAIN, seed=utterance.sentence.seed).utterances[0]
    assert alone.codes.tolist() == utterance.codes.tolist()
    assert alone.codes.tolist() != model.speak("እንዴት ነህ?", PLAIN, seed=99).utterances[0].codes.tolist()
    np.testing.assert_allclose(alone.samples, utterance.samples, atol=1e-4)


def test_a_stream_sounds_as_the_whole(model: Synthesizer) -> None:
    config = PLAIN.model_copy(update={"first_codes": 3, "chunk_codes": 7})
    plan = model.plan(TEXT, config)
    whole = model.speak(plan, config)
    stream = np.concatenate(list(model.stream(plan, config)))
    assert len(stream) == len(whole.samples)
    ends = 0.01, whole.utterances[0].seconds - 0.01  # where the whole fades
    middle = slice(*(round(end * OUTPUT_RATE) for end in ends))
    np.testing.assert_allclose(stream[middle], whole.samples[middle], atol=1e-4)


def test_closing_a_stream_frees_its_cache(model: Synthesizer, monkeypatch: pytest.MonkeyPatch) -> None:
    caches: list[weakref.ref[KeyValueCache]] = []
    make = model.decoder.stack.cache

    def watched() -> KeyValueCache:
        cache = make()
        caches.append(weakref.ref(cache))
        return cache

    monkeypatch.setattr(model.decoder.stack, "cache", watched)
    stream = model.stream(TEXT, PLAIN.model_copy(update={"first_codes": 2, "chunk_codes": 2}))
    next(stream)
    assert any(cache() for cache in caches)
    stream.close()
    gc.collect()
    assert [cache() for cache in caches].count(None) == len(caches) - 1  # the empty one of the next sentence
    assert model.speak("ሰላም", PLAIN).seconds > 0  # the model is free again


def test_single_settings_are_validated(model: Synthesizer) -> None:
    slow = model.speak("ሰላም", PLAIN, speed=0.8)
    assert slow.seconds == pytest.approx(model.speak("ሰላም", PLAIN).seconds / 0.8, rel=0.02)
    with pytest.raises(ConfigError, match="speed"):
        model.speak("ሰላም", PLAIN, speed=9)


@pytest.mark.parametrize(
    ("arguments", "message"), [((None,), "The text must be a str, not NoneType"), ((TEXT, {}), "not dict.*keywords")]
)
def test_arguments_of_another_type_are_named(model: Synthesizer, arguments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        model.speak(*arguments)


def test_a_request_to_stop_is_noticed_within_a_sentence(model: Synthesizer) -> None:
    asked = count(1)
    with pytest.raises(StopRequested):
        speak(model, TEXT, PLAIN, should_stop=lambda: Stop.NOW if next(asked) > 3 else Stop.NO)
    assert next(asked) < 10


def test_each_sentence_is_reported(model: Synthesizer) -> None:
    facts: list[Fact] = []
    speech = speak(model, TEXT, PLAIN, facts.append)
    reported = [(fact.number, fact.total, fact.text) for fact in facts if isinstance(fact, SentenceSpoken)]
    assert reported == [(1, 2, "ሰላም ለዓለም።"), (2, 2, "እንዴት ነህ?")]
    assert np.array_equal(speech.samples, model.speak(TEXT, PLAIN).samples)


PHONES = "sɛlamnɛwtenastɨllɨɲ"
TOKENIZED = TokenizedText("ሰላም", "ሰላም", PHONES, PHONES, ("s",), (1,), ())
SOUND = np.interp(
    np.arange(2 * OUTPUT_RATE) / OUTPUT_RATE, np.arange(2 * 22_050) / 22_050, synthetic_speech(2, 1)
).astype(np.float32)


class FakeModel:
    """Generates nothing for some seeds, and something usual for the others; the newest sentence is ready first."""

    def __init__(self, mute: Sequence[int] = ()) -> None:
        self.mute = mute
        self.seeds: list[int] = []
        self.waiting: list[Generation] = []

    def add(self, sentence: Sentence, _attempt: int) -> Generation:
        self.seeds.append(sentence.seed)
        count = 1 if sentence.seed in self.mute else 40
        codes = [number + sentence.seed % 100 for number in range(count)]
        self.waiting.append(Generation(codes, [torch.zeros(4)] * count, [-1.0 / count] * count, True, True))
        return self.waiting[-1]

    def next_sound(self) -> tuple[Generation, Samples]:
        return self.waiting.pop(), SOUND.copy()

    def speak(self, *seeds: int, **settings: object) -> list[Utterance]:
        config = SpeechConfig.parse({"trim": False, "language": "en", **settings})  # no clarity
        return list(best_takes([Sentence(TOKENIZED, seed) for seed in seeds], self.add, self.next_sound, config))


@pytest.mark.parametrize(
    ("mute", "tries", "doubtful"), [([5], 2, False), ([5, next_seed(5, 1), next_seed(5, 2)], 3, True)]
)
def test_doubtful_sentences_are_repeated_until_the_tries_are_used(mute: list[int], tries: int, doubtful: bool) -> None:
    (utterance,) = FakeModel(mute).speak(5, tries=3)
    assert (utterance.tries, "nothing" in [flag.kind for flag in utterance.flags]) == (tries, doubtful)


def test_only_doubtful_sentences_are_repeated() -> None:
    fake = FakeModel([7])
    utterances = fake.speak(6, 7, 8, batch_size=2)
    assert sorted(fake.seeds) == sorted([6, 7, 8, next_seed(7, 1)])
    assert [(each.tries, each.sentence.seed) for each in utterances] == [(1, 6), (2, next_seed(7, 1)), (1, 8)]


def test_the_best_of_several_candidates_is_taken() -> None:
    seeds = [next_seed(3, number) for number in range(3)]
    fake = FakeModel([seeds[0], seeds[2]])
    (utterance,) = fake.speak(3, candidates=3)
    assert fake.seeds == seeds
    assert utterance.sentence.seed == seeds[1]


def test_a_sentence_is_generated_once_where_every_seed_gives_the_same() -> None:
    fake = FakeModel([5])
    (utterance,) = fake.speak(5, tries=3, candidates=2, top_k=1)
    assert (fake.seeds, utterance.tries) == ([5], 1)


def test_a_sentence_may_take_longer_than_usual_but_has_a_limit() -> None:
    assert 40 < max_codes(Sentence(TOKENIZED), SpeechLimits()) < 200
