"""Sentences of many requests are generated together: they join and leave at every step, and nobody notices."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psutil
import pytest
import torch

from tests.speech.small_decoder import SAMPLED, prompt, sentence, sentences, talking_gpt
from tests.waiting import wait_for
from utils.config import SpeechConfig
from utils.speech import tasks
from utils.speech.batching import MAX_ROWS, Batch
from utils.speech.decoder import Decoder
from utils.speech.session import Check, SpeechSession
from utils.speech.synthesizer import Synthesizer
from utils.speech.types import Generation, Utterance
from utils.xtts.device import trim_memory

EIGHT = (*sentences(8, 9), *sentences(11, 13))  # each of its own text and length
CONFIGS = (SAMPLED, SpeechConfig(temperature=0.6, top_k=7, top_p=0.5), SpeechConfig(top_k=1, repetition_penalty=2.0))
LATENTS = 1e-4  # how far they may differ in company; their largest is above 1
GROWTH = 8e6  # bytes
SHORT, LONG = "ሰላም።", "ሰላም ለዓለም። እንዴት ነህ? " * 12
PLAIN = SpeechConfig(tries=1, trim=False, loudness=0, first_codes=4)


@pytest.fixture
def decoder() -> Decoder:
    return Decoder(talking_gpt(3, end=3.0))


@pytest.fixture
def session(model: Synthesizer) -> Iterator[SpeechSession]:
    def load(_config: SpeechConfig, check: Check) -> Synthesizer:
        model.decoder.on_step = check
        return model

    session = SpeechSession(load, max_waiting=100)
    yield session
    session.close()
    model.decoder.on_step = lambda: None


def assert_same(made: Generation, alone: Generation) -> None:
    assert made.codes == alone.codes
    torch.testing.assert_close(torch.stack(made.latents), torch.stack(alone.latents), atol=LATENTS, rtol=0)


def test_a_sentence_is_the_same_whoever_joins_and_leaves(decoder: Decoder) -> None:
    def generate(number: int) -> Generation:
        given, config = EIGHT[number % len(EIGHT)], CONFIGS[number % len(CONFIGS)]
        time.sleep(random.Random(number).random() / 50)
        return decoder.generate([given], prompt(number % 2), config)[0]

    numbers = range(3 * len(EIGHT))
    alone = [generate(number) for number in numbers]
    with ThreadPoolExecutor(8) as callers:
        for made, wanted in zip(callers.map(generate, numbers), alone, strict=True):
            assert_same(made, wanted)
    assert len({len(each.codes) for each in alone}) > len(EIGHT) // 2
    assert (decoder.batch.rows, decoder.batch.requests) == ([], [])


def test_a_short_sentence_joins_a_full_batch_at_the_next_step(decoder: Decoder) -> None:
    steps: list[int] = []
    endless = sentence(limit=500)
    decoder.on_step = lambda: steps.append(len(decoder.batch.rows))
    with closing(decoder.request(prompt(), SpeechConfig(batch_size=MAX_ROWS))) as book:
        read = [book.add(endless) for _ in range(2 * MAX_ROWS)]
        book.wait(lambda: len(read[0].codes) > 2)
        assert len(decoder.batch.rows) == MAX_ROWS
        with closing(decoder.request(prompt(), SpeechConfig())) as short:
            steps.clear()
            generation = short.add(sentence(limit=1))
            short.wait(lambda: generation.finished)
            assert len(steps) == 2  # one step, in which each request is checked once
            assert not read[0].finished


def ends(work: Callable[..., object], *values: object) -> bool:
    done = threading.Thread(target=work, args=values, daemon=True)
    done.start()
    done.join(20)
    return not done.is_alive()


def fail(*_: object) -> None:
    raise ZeroDivisionError


def test_an_error_of_one_request_is_not_that_of_another(decoder: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    read, wanted = decoder.read, decoder.generate([EIGHT[1]], prompt(), SAMPLED)[0]

    def failing(given: Any, *others: Any) -> None:
        read(given, *others)
        if EIGHT[0] in given:
            raise ZeroDivisionError

    monkeypatch.setattr(decoder, "read", failing)
    with closing(decoder.request(prompt(), SAMPLED)) as bad, closing(decoder.request(prompt(), SAMPLED)) as good:
        bad.add(EIGHT[0])
        made = good.add(EIGHT[1])
        good.wait(lambda: made.finished)
        assert_same(made, wanted)
        with pytest.raises(ZeroDivisionError):
            bad.next_finished()


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("broken", "error"), [(fail, ZeroDivisionError), (interrupt, KeyboardInterrupt)])
def test_after_a_step_that_failed_the_next_request_works(
    decoder: Decoder, broken: Any, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = decoder.generate([EIGHT[1]], prompt(), SAMPLED)[0]
    with monkeypatch.context() as patch:
        patch.setattr(decoder, "scores", broken)
        with pytest.raises(error):
            decoder.generate([EIGHT[0]], prompt(), SAMPLED)
    assert_same(decoder.generate([EIGHT[1]], prompt(), SAMPLED)[0], wanted)


def test_a_batch_that_cannot_be_tidied_up_still_takes_the_next_request(
    decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_batch: Batch) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Batch, "_leave", fail)
        with pytest.raises(MemoryError):
            decoder.generate([EIGHT[0]], prompt(), SAMPLED)
    assert ends(decoder.generate, [EIGHT[1]], prompt(), SAMPLED)


def test_a_request_may_be_closed_while_the_rows_of_another_are_freed(
    decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the thread of the GPU collects the garbage of a caller who has gone."""
    first, second = (decoder.request(prompt(), SAMPLED) for _ in range(2))

    def run(work: Any) -> None:
        monkeypatch.undo()
        with ThreadPoolExecutor(1) as owner:
            owner.submit(second.close).result()
        work()

    monkeypatch.setattr(decoder.lane, "run", run)
    assert ends(first.close)
    assert decoder.batch.requests == []
    assert len(decoder.generate([EIGHT[0]], prompt(), SAMPLED)) == 1


def utterances(session: SpeechSession, text: str, task: Any = tasks.speak_each, **settings: object) -> list[Utterance]:
    config = PLAIN.model_copy(update=settings)
    events = session.submit(lambda model: task(model, text, config), config).events()
    return [event for event in events if isinstance(event, Utterance)]


def test_a_short_phrase_sounds_while_a_book_is_read(session: SpeechSession) -> None:
    wanted = [each.codes.tolist() for each in utterances(session, LONG)]
    events = session.submit(lambda model: tasks.speak_each(model, LONG, PLAIN), PLAIN).events()
    next(filter(None, events))
    (phrase,) = utterances(session, SHORT, tasks.stream)
    assert phrase.samples.any()
    assert session.counts()["speaking"] == 1
    assert [event.codes.tolist() for event in events if isinstance(event, Utterance)] == wanted


@pytest.mark.slow
def test_a_storm_of_requests_and_cancels_loses_none(session: SpeechSession) -> None:
    wanted = {seed: utterances(session, SHORT, seed=seed)[0].codes.tolist() for seed in range(4)}
    process = psutil.Process()

    def ask(number: int) -> bool:
        if number % 3:
            made = utterances(session, SHORT, (tasks.speak_each, tasks.stream)[number % 2], seed=number % 4)[0]
            return made.samples.size > 0 and (number % 2 > 0 or made.codes.tolist() == wanted[number % 4])
        config = PLAIN.model_copy(update={"seed": number})
        with closing(session.submit(lambda model: tasks.stream(model, LONG, config), config).events()) as events:
            return next(filter(None, events)) is not None

    def storm() -> None:
        with ThreadPoolExecutor(12) as callers:
            assert all(callers.map(ask, range(48)))

    def memory() -> int:
        trim_memory()  # free memory counts or not, depending on when the session last returned it
        return int(process.memory_info().rss)

    for _ in range(4):  # until the memory that is used again is there
        storm()
    before, threads = memory(), threading.active_count()
    growth = []
    for _ in range(3):  # a leak shows after each of them
        storm()
        growth.append(memory() - before)
    wait_for(lambda: session.counts() == {"speaking": 0, "waiting": 0}, 10)
    assert min(growth) < GROWTH
    assert threading.active_count() == threads
    assert session.loaded is not None
    assert session.loaded.synthesizer.decoder.batch.rows == []


def test_free_rows_go_to_the_request_that_has_the_fewest(decoder: Decoder) -> None:
    with closing(decoder.request(prompt(), SAMPLED)) as first, closing(decoder.request(prompt(), SAMPLED)) as second:
        for request in (first, second):
            made = [request.add(sentence(limit=40)) for _ in range(2 * MAX_ROWS)]
        second.wait(lambda: bool(made[0].codes))
        counts = [sum(row.request is request for row in decoder.batch.rows) for request in (first, second)]
        assert counts == [MAX_ROWS // 2] * 2


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "cancelled"])
def test_rows_of_a_cancelled_request_are_free_after_one_step(decoder: Decoder, is_closed: bool) -> None:
    with closing(decoder.request(prompt(), SAMPLED)) as request:
        made = [request.add(sentence(limit=400)) for _ in range(4)]
        request.wait(lambda: len(made[0].codes) == 3)
        if is_closed:
            request.close()
        else:
            decoder.on_step = fail
            with pytest.raises(ZeroDivisionError):
                request.wait(lambda: made[0].finished)
        assert decoder.batch.rows == []
        assert len(made[0].codes) <= 4
