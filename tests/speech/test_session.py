"""The speech session: its queue, cancelling, errors and the model in memory, with a fake model."""

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.waiting import wait_for
from tests.worded import worded
from utils.config import SpeechConfig
from utils.core.errors import RunBusyError, RunError
from utils.speech.facts import QueueFullError, SessionClosedError
from utils.speech.session import Check, SpeechSession

CONFIG = SpeechConfig(model="a")


@pytest.fixture
def session() -> Iterator[SpeechSession]:
    session = SpeechSession(load, max_active=2, max_waiting=1)
    yield session
    session.close()


def load(config: SpeechConfig, check: Check) -> Any:
    if config.model == "missing":
        raise worded(RunError, "There is no such model.")
    return SimpleNamespace(check=check)


def endless(model: Any) -> Iterator[str]:
    """Compute for ever, as for a sentence that never ends."""
    yield "started"
    while True:
        time.sleep(0.005)
        model.check()


def two_events(name: str, order: list[str]) -> Any:
    def task(_model: Any) -> Iterator[str]:
        for _ in range(2):
            order.append(name)
            yield name

    return task


def test_requests_over_the_limit_wait_in_order(session: SpeechSession) -> None:
    both, order = threading.Barrier(2), list[str]()

    def meet(_model: Any) -> Iterator[str]:
        both.wait(10)  # for the other one
        yield "met"

    first, second = (session.submit(meet, CONFIG) for _ in range(2))
    third = session.submit(two_events("a", order), CONFIG)
    assert [list(filter(None, each.events())) for each in (first, second, third)] == [["met"], ["met"], ["a", "a"]]
    assert order == ["a", "a"]
    assert session.loaded is not None
    assert session.loaded.choice == ("a", "auto", "auto")


def test_a_caller_who_stops_listening_cancels(session: SpeechSession) -> None:
    closed = threading.Event()

    def task(model: Any) -> Iterator[str]:
        try:
            yield from endless(model)
        finally:
            closed.set()

    events = session.submit(task, CONFIG).events()
    assert next(filter(None, events)) == "started"
    events.close()
    assert session.users == 0
    assert closed.wait(2)
    wait_for(lambda: session.counts() == {"speaking": 0, "waiting": 0}, 10)


def test_a_cancelled_waiting_request_never_runs(session: SpeechSession) -> None:
    running = [session.submit(endless, CONFIG) for _ in range(2)]
    order: list[str] = []
    waiting = session.submit(two_events("x", order), CONFIG)
    with pytest.raises(QueueFullError) as full:
        session.submit(endless, CONFIG)
    assert full.value.retry_after >= 1
    waiting.cancel()
    session.submit(endless, CONFIG).cancel()
    for request in running:
        request.cancel()
    wait_for(lambda: session.counts()["speaking"] == 0, 10)
    assert order == []


def test_a_second_request_of_an_owner_cancels_the_first(session: SpeechSession) -> None:
    first = session.submit(endless, CONFIG, owner="visitor")
    second = session.submit(endless, CONFIG, owner="visitor")
    assert (first.cancelled, second.cancelled) == (True, False)
    assert session.cancel("visitor")
    assert not session.cancel("visitor")


def speaks(session: SpeechSession) -> bool:
    return "x" in list(session.submit(two_events("x", []), CONFIG).events())


def test_an_error_ends_only_its_own_request(session: SpeechSession) -> None:
    def fails(_model: Any) -> Iterator[str]:
        yield "first"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(session.submit(fails, CONFIG).events())
    with pytest.raises(RunError, match="no such model"):
        list(session.submit(endless, SpeechConfig(model="missing")).events())
    assert session.loaded is None
    assert speaks(session)


def test_a_model_in_use_is_neither_replaced_nor_unloaded(session: SpeechSession) -> None:
    finish = threading.Event()

    def long(_model: Any) -> Iterator[str]:
        yield "started"
        finish.wait(10)

    using = session.submit(long, CONFIG)
    wait_for(lambda: session.loaded, 10)
    with pytest.raises(RunBusyError):
        list(session.submit(two_events("x", []), SpeechConfig(model="b")).events())
    with pytest.raises(RunBusyError):
        session.unload()
    finish.set()
    list(using.events())
    list(session.submit(two_events("x", []), SpeechConfig(model="b")).events())
    assert session.loaded is not None
    assert session.loaded.choice[0] == "b"
    session.unload()
    assert session.loaded is None


def test_a_model_that_nobody_uses_makes_room(session: SpeechSession) -> None:
    list(session.submit(two_events("x", []), CONFIG).events())
    session.make_room()
    assert session.loaded is None


def test_closing_the_session_ends_every_request(session: SpeechSession) -> None:
    requests = [session.submit(endless, CONFIG) for _ in range(2)]
    session.close()
    for request in requests:
        with pytest.raises(SessionClosedError):
            list(request.events())
    with pytest.raises(SessionClosedError):
        session.submit(endless, CONFIG)


def test_what_fails_while_a_closed_session_stops_is_no_error_of_the_request(session: SpeechSession) -> None:
    def task(model: Any) -> Iterator[str]:
        try:
            yield from endless(model)
        finally:
            raise RuntimeError("cannot schedule new futures after shutdown")

    delivered: list[object] = []
    session.submit(task, CONFIG, deliver=delivered.append)
    wait_for(lambda: delivered, 10)
    session.close()
    wait_for(lambda: delivered[-1] is None, 10)
    assert [type(each) for each in delivered] == [str, SessionClosedError, type(None)]


def test_a_worker_that_fails_after_a_request_takes_the_next_one(
    session: SpeechSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError("malloc_trim is not there")

    monkeypatch.setattr("utils.xtts.device.trim_memory", fail)
    monkeypatch.setattr("utils.speech.session.TRIM_SECONDS", 0.0)
    for _ in range(6):
        assert list(filter(None, session.submit(two_events("x", []), CONFIG).events())) == ["x", "x"]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_request_that_would_end_its_worker_gets_an_error(session: SpeechSession, error: type[BaseException]) -> None:
    def leave(_model: Any) -> Iterator[str]:
        raise error
        yield ""

    for _ in range(3):
        with pytest.raises(RunError, match=error.__name__):
            list(session.submit(leave, CONFIG).events())
    assert speaks(session)


def test_a_receiver_that_fails_silences_nobody_else(session: SpeechSession) -> None:
    def fail(_item: object) -> None:
        raise ValueError("the client is gone")

    for _ in range(3):
        session.submit(two_events("x", []), CONFIG, deliver=fail)
        wait_for(lambda: session.counts() == {"speaking": 0, "waiting": 0}, 10)
    assert speaks(session)


def test_a_request_waits_for_no_thread_that_could_not_start(
    session: SpeechSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError, match="new thread"):
            session.submit(two_events("x", []), CONFIG)
    assert session.users == 0
    assert speaks(session)
